"""Steady latency of the real firmware: no fault, no allocation, and the same work for every token of a length."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.builds import build_tiny, quick_board
from support.tiny_checkpoint import write_tiny_checkpoint

ROOT = Path(__file__).parents[2]
CONTEXT = 1024  # many pages of KV cache, of which a prompt touches few
EMULATOR = ["qemu-aarch64-static", "-cpu", "cortex-a53"]
COUNTER = ["qemu-aarch64", "-cpu", "cortex-a53", "-d", "plugin", "-plugin"]
# What the C library may be asked for: nothing here allocates, and none of malloc's family is among it.
LIBRARY = """
__errno_location __sysconf _exit cfsetispeed cfsetospeed clock_gettime close dl_iterate_phdr fcntl getauxval getpid
getrusage ioctl isatty madvise memchr memcmp memcpy memmove memset mlockall mmap mount mprotect mremap munmap nanosleep
open pause pipe poll pthread_attr_destroy pthread_attr_getstack pthread_attr_init pthread_attr_setstacksize
pthread_create pthread_getaffinity_np pthread_getattr_np pthread_join pthread_self pthread_setaffinity_np
pthread_setschedparam read reboot sigaction sigemptyset sqrtf stat strchr strcmp strcspn strerror strlen strncmp strspn
strtod sync syscall sysconf tcdrain tcgetattr tcsetattr vsnprintf waitpid write
""".split()


@dataclass(frozen=True)
class Firmware:
    """A built firmware and how it is started here."""

    folder: Path
    prefix: tuple[str, ...]

    def status(self, *arguments: str, before: tuple[str, ...] = (), exit_code: int = 0) -> dict[str, Any]:
        command = [*before, *self.prefix, str(self.folder / "colibri_inference"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == exit_code, done.stderr
        status: dict[str, Any] = json.loads(done.stderr.splitlines()[-1].removeprefix("COLIBRI_STATUS "))
        return status


@pytest.fixture(scope="module")
def firmwares(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Firmware]]:
    folder = tmp_path_factory.mktemp("steady")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLIBRI_CACHE", str(folder / "cache"))
        write_tiny_checkpoint(folder / "tiny", max_position_embeddings=CONTEXT)
        native = build_tiny(folder, quick_board(folder), out=folder / "native", context=CONTEXT)
        a53 = build_tiny(folder, "cortex-a53", out=folder / "a53", context=CONTEXT)
        yield {"native": Firmware(native.out, ()), "cortex-a53": Firmware(a53.out, tuple(EMULATOR))}


@pytest.fixture(params=["native", "cortex-a53"])
def firmware(request: pytest.FixtureRequest, firmwares: dict[str, Firmware]) -> Firmware:
    return firmwares[request.param]


def test_a_prefaulted_firmware_decodes_without_a_page_fault(firmwares: dict[str, Firmware]) -> None:
    """A fault costs microseconds, with a read from the storage milliseconds: at any token."""
    native = firmwares["native"]
    n_tokens = str(CONTEXT - 40)
    plain = native.status("--bench", n_tokens, "--threads", "2")
    assert plain["bench"]["minor_faults"] > 0, "the figure would not show a fault"
    for options in (["--prefault"], ["--prefault", "--lock-memory", "--huge-pages"]):
        # The kernel may move a page just then, hence three tries.
        runs = [native.status("--bench", n_tokens, "--threads", "2", *options) for _ in range(3)]
        faults = [(run["bench"]["major_faults"], run["bench"]["minor_faults"]) for run in runs]
        assert (0, 0) in faults
        assert {run["logits_hash"] for run in runs} == {plain["logits_hash"]}


def without_rights() -> tuple[str, ...]:
    """A command prefix: no capability, no memory to lock, no real-time priority."""
    drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()
    return ("prlimit", "--memlock=0:0", "--rtprio=0:0", "--", *drop)


def test_what_the_system_refuses_is_in_the_status_line_and_the_run_goes_on(firmware: Firmware) -> None:
    options = ["--lock-memory", "--realtime", "10", "--prefault", "--threads", "2"]
    status = firmware.status("--selftest", *options, before=without_rights())
    assert sorted(status["refused"]) == ["lock-memory", "realtime"]
    assert status["refused"]["realtime"] == "Operation not permitted"
    assert status["logits_hash"] == status["expected_hash"]
    assert "prefault" in status


def test_a_page_that_cannot_be_mapped_is_told_and_does_not_end_the_run(firmwares: dict[str, Firmware]) -> None:
    """A stack that may not grow by what is prefaulted: touching it would end the program without a status line."""
    status = firmwares["native"].status("--selftest", "--prefault", before=("prlimit", "--stack=65536:65536", "--"))
    assert status["refused"] == {"prefault": "Cannot allocate memory"}
    assert status["logits_hash"] == status["expected_hash"]


def test_peak_memory_is_that_of_the_firmware_alone(firmwares: dict[str, Firmware]) -> None:
    """The kernel's own count of a process begins with what its parent had, here a host program with 64 MiB."""
    ballast = b"x" * (64 << 20)
    native = firmwares["native"]
    peak_kib = native.status("--bench", "2")["bench"]["max_rss_kib"]
    assert 0 < peak_kib * 1024 < len(ballast) / 4


def test_huge_pages_leave_every_bit_as_it_is(firmware: Firmware) -> None:
    status = firmware.status("--selftest", "--huge-pages")
    assert status["logits_hash"] == status["expected_hash"]
    assert "huge_pages" in status


def test_pinned_threads_run_where_they_were_put(firmwares: dict[str, Firmware]) -> None:
    cpus = sorted(os.sched_getaffinity(0))[:2]
    pin = ",".join(map(str, cpus))
    program = str(firmwares["native"].folder / "colibri_inference")
    command = [program, "--stdin", "--pin", pin, "--threads", str(len(cpus))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"turn\n")
        process.stdin.flush()
        process.stdout.readline()
        tasks = sorted(int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir())
        assert [os.sched_getaffinity(task) for task in tasks] == [{cpu} for cpu in cpus]
        process.stdin.close()
        process.wait(timeout=30)


def test_the_firmware_asks_the_c_library_for_no_memory(firmware: Firmware) -> None:
    """malloc may take a lock, a system call or a page fault: at any token."""
    objects = sorted((firmware.folder / "objects").rglob("*.o"))
    assert len(objects) > 30
    listing = subprocess.run(["nm", "-A", *objects], capture_output=True, text=True, check=True).stdout
    undefined = set(re.findall(r" U (\S+)$", listing, re.MULTILINE))
    defined = set(re.findall(r" [A-TV-Z] (\S+)$", listing, re.MULTILINE))
    foreign = undefined - defined
    assert "pthread_create" in foreign, "nothing was looked at"
    assert foreign - set(LIBRARY) == set()


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plugin") / "count.so"
    source = ROOT / "benchmarks" / "instruction_plugin.c"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", source, "-o", path], check=True)
    return path


def instructions(firmware: Firmware, plugin: Path, prompt: str, n_tokens: int) -> int:
    command = [*COUNTER, str(plugin), str(firmware.folder / "colibri_inference"), "--tokens", prompt]
    options = ["--threads", "1", "--max-tokens", str(n_tokens)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=60, check=True)
    assert f'"tokens":{n_tokens},' in done.stderr, "the answer ended early"
    match = re.search(r"instructions (\d+)", done.stderr)
    assert match is not None, "qemu-aarch64 loads no plugin: install the package qemu-user"
    return int(match[1])


def test_tokens_of_equal_length_take_equal_work(firmwares: dict[str, Firmware], plugin: Path) -> None:
    """Work that depends on the words would make a deadline that holds in the test fail in the car."""
    counts = [
        instructions(firmwares["cortex-a53"], plugin, prompt, 24)
        - instructions(firmwares["cortex-a53"], plugin, prompt, 4)
        for prompt in ("40,41,42,43,44", "99,7,250,180,3", "5,5,5,5,5")
    ]
    assert max(counts) - min(counts) < 0.001 * min(counts), counts
