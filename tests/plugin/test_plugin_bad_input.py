"""Options that are wrong: one line, before anything is collected or flashed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.plugin_session import PLAIN

pytest_plugins = ["pytester"]

BOARD = {"id": "a", "platform": "cortex-a53", "serial": "/dev/ttyUSB0"}
OTHER = {"id": "b", "platform": "cortex-a53", "serial": "/dev/ttyUSB1"}


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    pytester.makepyfile("def test_it(dut): pass")
    return pytester.runpytest_inprocess(*PLAIN, *options)


def usage_error(pytester: pytest.Pytester, *options: str) -> str:
    """The line of a session that does not begin."""
    result = run(pytester, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.errlines if line.strip()]
    assert line.startswith("ERROR: ")
    assert not [line for line in result.outlines if "test_it" in line]
    return line.removeprefix("ERROR: ")


@pytest.mark.parametrize(
    "options,message",
    [
        ("--device-type serial", "--device-type serial without a line; try: --device-serial URL, "),
        ("--device-type native --device-serial /dev/x", "--device-serial with --device-type native; try: "),
        ("--device-serial x --device-serial-pty y", "--device-serial and --device-serial-pty name two lines"),
        ("--device-id a", "--device-id without a hardware map; try: --hardware-map FILE"),
        ("--hardware-map none.yaml", "cannot read none.yaml: No such file or directory; try: --hardware-map FILE"),
        ("--flash-before", "--flash-before without an image; try: --image DIR"),
        ("--flash-before --image x", "--flash-before with --device-type auto; try: --device-type serial"),
        ("--flash-before --image x --device-serial y", "--flash-before without a device; try: --flash-device DEV"),
        (
            "--flash-before --image none --device-serial y --flash-device z",
            "colibri-build flash: none/SHA256SUMS cannot be read: no folder of an image",
        ),
        ("--instruction-plugin x", "--instruction-plugin counts under QEMU's user mode only; try: --device-type"),
        ("--device-serial x --device-serial-baud 0", "--device-serial-baud 0; try: 50 or more"),
        ("--timeout-multiplier 0", "--base-timeout and --timeout-multiplier are more than 0"),
        ("--firmware build/x --board tda4vm", "build/x is built for cortex-a53, --board is tda4vm; try: colibri-build"),
    ],
)
def test_options_that_contradict_each_other(pytester: pytest.Pytester, options: str, message: str) -> None:
    (pytester.mkdir("build") / "build.json").write_text('{"board": "cortex-a53"}')
    assert usage_error(pytester, *options.split()).startswith(message)


def test_an_unknown_device_type_lists_the_known_ones(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--device-type", "jtag")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*invalid choice: 'jtag' (choose from 'auto', 'native', 'qemu-user', 'qemu-system', 'serial')"]
    )


@pytest.mark.parametrize(
    "text,options,message",
    [
        ([BOARD, {**OTHER, "id": "a"}], "", "map.yaml has 2 boards with id 'a'; try: an id for each board"),
        ([BOARD, OTHER], "--device-id c", "map.yaml has no board with id 'c'; try: one of: a (cortex-a53), b (cort"),
        ([BOARD, OTHER], "", "map.yaml has 2 connected boards; try: --device-id, one of: a (cortex-a53), b"),
        ([BOARD, OTHER], "--board tda4vm", "map.yaml has no connected board for tda4vm; try: its boards: a ("),
        ([BOARD], "--board tda4vm --device-id a", "'a' is a cortex-a53, the firmware is for tda4vm; try: another"),
        ([{**BOARD, "connected": False}], "--device-id a", "'a' is not connected, says map.yaml"),
        ([{**BOARD, "serial_pty": "x"}], "", "map.yaml, entry 1 (a): neither or both of serial and serial_pty"),
        ([{"id": "a", "platform": "x"}], "", "map.yaml, entry 1 (a): neither or both of serial and serial_pty"),
        ([{"platform": "x", "serial": "y"}], "", "map.yaml, entry 1: no id; try: "),
        ([{**BOARD, "speed": 1}], "", "map.yaml, entry 1: unknown key 'speed'; try: one of: id, platform, "),
        ([{**BOARD, "baud": "fast"}], "", "map.yaml, entry 1: baud is 'fast'; try: baud is a number from 50 on"),
        ([{**BOARD, "id": 7}], "", "map.yaml, entry 1: id is 7; try: id is a text (in quotes where it is all digits)"),
        ({"boards": []}, "", "map.yaml is no hardware map; try: a list of boards with id, platform and serial"),
        ([], "", "map.yaml is no hardware map"),
        ("- id: a\n  serial: x\n  id: b\n", "", "map.yaml, line 1: the entry has 'id' twice; try: an entry for each"),
        ("- id: [a\n", "", "map.yaml is no YAML: while parsing a flow sequence in "),
        ("!!python/object/apply:os.getcwd []", "", "map.yaml is no YAML: could not determine a constructor"),
        (
            [{**BOARD, "runner": "openocd", "flash-device": "x"}],
            "--flash-before --image x",
            "'a' is flashed by openocd; try: runner: colibri-build",
        ),
        (
            [{**BOARD, "pre_script": "false", "flash-device": "x"}],
            "--flash-before --image x",
            "'false' ended with 1: ; try: the scripts of the hardware map",
        ),
    ],
)
def test_hardware_maps_that_are_wrong(pytester: pytest.Pytester, text: object, options: str, message: str) -> None:
    Path("map.yaml").write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    assert usage_error(pytester, "--hardware-map", "map.yaml", *options.split()).startswith(message)


@pytest.mark.parametrize(
    "options,message",
    [
        ("", "the fixture dut needs a firmware; try: --firmware PATH"),
        ("--firmware none --board cortex-a53", "no firmware at none; try: "),
        ("--device-type qemu-system --firmware none --board x86-64-v3", "no kernel for x86_64: "),
        ("--device-type qemu-system --image none --board cortex-a53", "none holds no image; try: colibri-build image"),
        ("--device-type native --firmware map.yaml --board cortex-a53", "this machine (x86_64) cannot run cortex-a53"),
        (
            "--device-type qemu-user --firmware map.yaml --board cortex-a53 --instruction-plugin none",
            "no plugin at none; try: docs/testing-firmware.md",
        ),
    ],
)
def test_a_device_that_is_not_there_is_one_line_a_test(pytester: pytest.Pytester, options: str, message: str) -> None:
    """And no traceback through the plugin."""
    Path("map.yaml").touch()
    result = run(pytester, *options.split())
    result.assert_outcomes(errors=1)
    (at,) = [number for number, line in enumerate(result.outlines) if "ERROR at setup of test_it" in line]
    assert result.outlines[at + 1].startswith(message)
    assert result.outlines[at + 2].startswith("=====")


def test_a_variant_of_the_firmwares_board_is_accepted(pytester: pytest.Pytester) -> None:
    """Generic A53 firmware is made for every A53 board, but not the other way round."""
    (pytester.mkdir("build") / "build.json").write_text('{"board": "cortex-a53"}')
    (pytester.mkdir("variant") / "build.json").write_text('{"board": "cortex-a53/imx8mm"}')
    Path("map.yaml").write_text(
        json.dumps([{**BOARD, "platform": "cortex-a53/imx8mm"}, {**OTHER, "platform": "tda4vm"}])
    )
    for options in ("--board cortex-a53/imx8mm", "--hardware-map map.yaml"):
        result = run(pytester, "--collect-only", "--firmware", "build/x", *options.split())
        assert result.ret == pytest.ExitCode.OK, options
    assert "built for cortex-a53/imx8mm" in usage_error(pytester, "--firmware", "variant/x", "--board", "cortex-a53")
