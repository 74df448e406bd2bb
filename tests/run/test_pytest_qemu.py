"""The pytest plugin in a user's own test session (pytest inside pytest), with real QEMU."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]


PLAIN = ("-p", "no:xdist", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")


def run_tests(pytester: pytest.Pytester, source: str, *options: str) -> pytest.RunResult:
    """Run a user's test file."""
    pytester.makepyfile(source)
    return pytester.runpytest_inprocess(*PLAIN, *options)


def run_in_new_process(pytester: pytest.Pytester, source: str, *options: str) -> pytest.RunResult:
    """The same where it matters what was imported before."""
    pytester.makepyfile(source)
    return pytester.run(sys.executable, "-m", "pytest", *PLAIN, *options, timeout=60)


def test_a_users_tests_pass(pytester: pytest.Pytester, fake_a53: Path) -> None:
    source = r"""
        def test_prompt(dut):
            dut.start(["--prompt", "abc"])
            assert dut.expect(r"d(e)f").group(1) == "e"
            dut.expect("z\n", timeout=5)
            status = dut.status()
            assert (status["status"], status["stop"], status["tokens"]) == ("ok", "eos", 24)
            assert dut.runner.prefix[1:3] == ("-cpu", "cortex-a53")

        def test_console_dialogue(dut):
            dut.start(["--stdin"])
            dut.write("wx\n")
            dut.expect("yz\n")
            dut.write("abc\n")
            assert dut.expect(["nothing", "defg"]).group() == "defg"
            dut.end_input()
            assert dut.status()["prompts"] == 2
            assert "\r" not in dut.console

        def test_a_fault_is_a_status(dut):
            dut.start(["--tokens", "9999"])
            assert dut.status()["status"] == "unknown_token"

        def test_interrupt(dut, monkeypatch):
            monkeypatch.setenv("FAKE", "slow")
            dut.start(["--prompt", "!"])
            dut.expect("#")
            dut.interrupt()
            assert dut.status()["exit_code"] == 130

        def test_start_again(dut):
            dut.start(["--stdin"])
            dut.start(["--version"])
            dut.expect("colibri_inference")
            assert dut.status()["exit_code"] == 0
    """
    result = run_tests(pytester, source, "--board", "cortex-a53", "--firmware", str(fake_a53))
    result.assert_outcomes(passed=5)


def test_what_goes_wrong_is_reported_at_once(pytester: pytest.Pytester, fake_a53: Path) -> None:
    source = r"""
        import time

        import pytest
        from colibri_build.errors import DeadlineError, RunError

        @pytest.fixture(autouse=True)
        def at_once():
            start = time.monotonic()
            yield
            assert time.monotonic() - start < 5

        def test_deadline(dut):
            dut.start(["--stdin"])
            with pytest.raises(DeadlineError, match=r"no 'never' within 0\.2 s; the console is empty"):
                dut.expect("never", timeout=0.1)
            with pytest.raises(DeadlineError, match="no the end of the run within 0.2 s"):
                dut.status(timeout=0.1)

        def test_a_dead_peer(dut):
            dut.start(["--prompt", "wx"])
            with pytest.raises(RunError, match="the firmware ended before 'never' came; the console's end: 'yz"):
                dut.expect("never", timeout=50)
            assert dut.status()["status"] == "ok"

        def test_a_bad_pattern(dut):
            dut.start(["--tokens", "69", "--max-tokens", "30"])
            dut.bad_patterns = ("STU",)
            with pytest.raises(RunError, match="the console says 'STU'"):
                dut.expect("never", timeout=50)

        def test_an_earlier_match_is_a_match(dut):
            dut.start(["--tokens", "69", "--max-tokens", "30"])
            dut.bad_patterns = ("STU",)
            dut.expect("IJK", timeout=50)
            with pytest.raises(RunError):
                dut.expect("XYZ", timeout=50)

        def test_not_started(dut):
            with pytest.raises(RunError, match="was not started"):
                dut.expect("x")

        def test_its_failure_shows_the_console(dut):
            dut.start(["--prompt", "abc"])
            dut.expect("z\n")
            assert False
    """
    options = ["--board", "cortex-a53", "--firmware", str(fake_a53), "--timeout-multiplier", "2"]
    result = run_tests(pytester, source, *options)
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(["*firmware console*", "defghijklmnopqrstuvwxyz"])


def test_a_crash_is_seen_under_qemu(pytester: pytest.Pytester, compiled, tmp_path: Path) -> None:
    elf = compiled("aarch64-linux-gnu-gcc", 'int main(void) { __asm__ volatile(".inst 0x4e829420"); }')
    source = r"""
        import pytest
        from colibri_build.errors import RunError

        def test_expect(dut):
            dut.start()
            with pytest.raises(RunError, match="the console says 'uncaught target signal 4'"):
                dut.expect("hello", timeout=50)

        def test_status(dut):
            dut.start()
            with pytest.raises(RunError, match="an instruction that cortex-a53 does not have"):
                dut.status()
    """
    run_tests(pytester, source, "--board", "cortex-a53", "--firmware", str(elf)).assert_outcomes(passed=2)


def test_the_board_is_read_from_the_build_and_the_firmware_ends_with_the_test(
    pytester: pytest.Pytester, fake_native: Path
) -> None:
    build = pytester.mkdir("build")
    (build / "firmware").symlink_to(fake_native)
    (build / "build.json").write_text('{"board": "x86-64-v3"}')
    source = r"""
        from pathlib import Path

        seen = []

        def test_starts(dut):
            dut.start(["--stdin"])
            assert dut.runner.board == "x86-64-v3"
            assert dut.runner.prefix == ()
            seen.append(dut._child.pid)

        def test_has_ended():
            assert not Path(f"/proc/{seen[0]}").exists()
    """
    options = ["--firmware", str(build / "firmware"), "--device-type", "native"]
    run_tests(pytester, source, *options).assert_outcomes(passed=2)


@pytest.mark.parametrize(
    "options,message",
    [
        ([], "the fixture dut needs a firmware; try: --firmware PATH"),
        (["--firmware", "none"], "no build.json beside none names its board; try: --board BOARD"),
        (["--firmware", "none", "--board", "x86-64-v3"], "no firmware at none"),
        (["--firmware", "none", "--board", "cortex-a35"], "unknown board 'cortex-a35'"),
    ],
)
def test_missing_options_say_what_to_give(pytester: pytest.Pytester, options: list[str], message: str) -> None:
    result = run_tests(pytester, "def test_it(dut): pass", *options)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{message}*"])


def test_a_session_that_does_not_use_it_loads_nothing_heavy(pytester: pytest.Pytester) -> None:
    source = """
        import sys

        def test_light():
            ours = {name for name in sys.modules if name.startswith("colibri_build")}
            assert ours == {"colibri_build", "colibri_build.run", "colibri_build.run.pytest_qemu"}
            assert not {"pexpect", "numpy", "pydantic", "click", "elftools"} & set(sys.modules)
    """
    run_in_new_process(pytester, source).assert_outcomes(passed=1)


def test_without_pexpect_only_dut_fails(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import sys; sys.modules['pexpect'] = None")
    result = run_in_new_process(pytester, "def test_other(): pass\ndef test_dut(dut): pass")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*the fixture dut needs pexpect; try: pip install 'colibri-build?pytest?'*"])


def test_another_plugin_that_owns_an_option_keeps_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        other="def pytest_addoption(parser):\n"
        "    parser.addoption('--board', default='theirs')\n"
        "    parser.addoption('--device-type', default='theirs')\n"
    )
    source = "def test_it(pytestconfig): assert pytestconfig.getoption('--board') == 'theirs'"
    run_in_new_process(pytester, source, "-p", "other").assert_outcomes(passed=1)


def test_help_lists_the_options(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess("--help")
    for option in ("--board=", "--firmware=", "--device-type=", "--base-timeout=", "--timeout-multiplier="):
        result.stdout.fnmatch_lines([f"*{option}*"])
