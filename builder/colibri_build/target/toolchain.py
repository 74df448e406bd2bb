"""Finds the compiler for a board and says which one, why, and with what flags."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from colibri_build.errors import ToolchainError
from colibri_build.target.board import Board, Flags
from colibri_build.target.commands import Outcome, disassembles, environment, find_command, run_quietly, shown
from colibri_build.target.static_link import check_toolchain
from colibri_build.target.toolchain_profile import (
    Command,
    Toolchain,
    ToolchainProfile,
    list_toolchains,
    load_toolchain,
)

__all__ = [
    "COMMON_CFLAGS",
    "COMMON_LDFLAGS",
    "Toolchain",
    "check_toolchain",
    "environment",
    "list_toolchains",
    "resolve_toolchain",
]

AUTO_ORDER = ("debian-gcc", "zig", "clang")
VENDOR = "vendor-gnu"

# No fused multiply-add anywhere: every board computes the same bits (docs/numerics.md).
COMMON_CFLAGS = (
    "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O3", "-g0", "-ffp-contract=off",
    "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror",
    "-ffunction-sections", "-fdata-sections",
)  # fmt: skip
COMMON_LDFLAGS = (
    "-static", "-Wl,-z,noexecstack", "-Wl,--build-id=sha1", "-Wl,--gc-sections", "-Wl,--fatal-warnings",
    "-pthread", "-lm",
)  # fmt: skip
# zig takes -fstack-usage but leaves the file in its cache.
_FAMILY_CFLAGS = {"gcc": ("-fstack-usage",), "clang": ("-fstack-usage",), "zig": ()}
# Words of an SDK's $CC that say where its C library is. The others (-mcpu, -O2, hardening) are the board's business.
_SDK_KEEPS = ("--sysroot=", "-B", "-isystem", "-L", "-specs=", "--specs=")


@dataclass(frozen=True)
class _Request:
    """One candidate: a profile, and where its {prefix} or whole command comes from."""

    profile: ToolchainProfile
    prefix: str = ""
    sdk_cc: Command = ()
    origin: str = ""  # for people: "$CROSS_COMPILE=..."


def resolve_toolchain(
    board: Board, request: str = "auto", environ: Mapping[str, str] | None = None, *, check: bool = True
) -> Toolchain:
    """Find the toolchain for a board.

    `request`: `auto`, the name of a profile, or `prefix:PREFIX` (a GNU toolchain, as `prefix:aarch64-none-linux-gnu-`).
    `auto` takes the first that works: the one the environment names ($CROSS_COMPILE), debian-gcc, zig, clang. `check`
    links a static program first (once a process). Raises ToolchainError for one that is missing, for another machine,
    or cannot link; TargetError for an unknown name.
    """
    env = os.environ if environ is None else environ
    if request != "auto":
        toolchain = _resolve(board, _requested(request, env), env)
        return _checked(toolchain, env) if check else toolchain
    return _resolve_auto(board, env, check)


def _checked(toolchain: Toolchain, env: Mapping[str, str]) -> Toolchain:
    check_toolchain(toolchain, env)
    return toolchain


def _requested(request: str, env: Mapping[str, str]) -> _Request:
    if request.startswith("prefix:"):
        prefix = request.removeprefix("prefix:")
        if not prefix:
            raise ToolchainError("--toolchain prefix: names no prefix", hint="prefix:aarch64-none-linux-gnu-")
        return _Request(load_toolchain(VENDOR), prefix=prefix, origin=f"the prefix {prefix}")
    if request == VENDOR:
        return _from_environment(env)
    return _Request(load_toolchain(request))


def _from_environment(env: Mapping[str, str]) -> _Request:
    """Return the vendor toolchain that $CROSS_COMPILE, or $CC of an SDK, names."""
    prefix = env.get("CROSS_COMPILE", "").strip()
    words = _words_of_cc(env.get("CC", ""))
    if words and (not prefix or Path(words[0]).name.startswith(Path(prefix).name)):
        kept, dropped = _sdk_words(words[1:])
        without = f", without its {' '.join(dropped)}" if dropped else ""
        return _Request(load_toolchain(VENDOR), prefix, (words[0], *kept), f"$CC{without}")
    if prefix:
        return _Request(load_toolchain(VENDOR), prefix=prefix, origin=f"$CROSS_COMPILE={prefix}")
    raise ToolchainError(
        "toolchain vendor-gnu: neither $CROSS_COMPILE nor $CC is set",
        hint="source the SDK's environment-setup script, or --toolchain prefix:aarch64-none-linux-gnu-",
    )


def _words_of_cc(value: str) -> Command:
    try:
        return tuple(shlex.split(value))
    except ValueError as error:
        raise ToolchainError(f"$CC is {value!r}: {error}", hint="mend its quotes, or unset CC") from None


def _sdk_words(words: Command) -> tuple[Command, Command]:
    """Split $CC's arguments into those that locate the C library, and the rest."""
    kept: list[str] = []
    dropped: list[str] = []
    pending = iter(words)
    for word in pending:
        if word in ("--sysroot", "-isystem", "-B", "-L"):
            kept += [word, next(pending, "")]
        else:
            (kept if word.startswith(_SDK_KEEPS) else dropped).append(word)
    return tuple(kept), tuple(dropped)


def _resolve_auto(board: Board, env: Mapping[str, str], check: bool) -> Toolchain:
    candidates = [_from_environment(env)] if env.get("CROSS_COMPILE", "").strip() else []
    candidates += [_Request(load_toolchain(name)) for name in AUTO_ORDER]
    passed_over: list[ToolchainError] = []
    for candidate in candidates:
        try:
            found = _resolve(board, candidate, env, "; ".join(error.what for error in passed_over))
            return _checked(found, env) if check else found
        except ToolchainError as error:
            if candidate.origin and not isinstance(error, _OtherMachineError):
                raise  # what the environment asked for is broken: taking another one would hide it
            passed_over.append(error)
    raise ToolchainError(
        f"no toolchain for {board.arch}: " + "; ".join(error.what for error in passed_over),
        hint=", or: ".join(str(error.hint) for error in passed_over[-len(AUTO_ORDER) :][:2]),
    )


class _OtherMachineError(ToolchainError):
    """A compiler that works, for another machine than the board's."""


def _resolve(board: Board, request: _Request, env: Mapping[str, str], passed_over: str = "") -> Toolchain:
    profile = request.profile
    tools = profile.tools(board.arch)
    commands = [request.sdk_cc] if request.sdk_cc else [_fill(command, request) for command in tools.cc]
    cc, machine = _first_compiler(board.arch, profile.name, commands, tools.install, env)
    version = _version(cc, profile, tools.install, env)
    flags: Flags = getattr(board.flags, profile.family)
    cflags = (*COMMON_CFLAGS, *_FAMILY_CFLAGS[profile.family], *profile.cflags, *tools.cflags, *flags.compile)
    ldflags = (*flags.compile, *flags.link, *COMMON_LDFLAGS)
    named = " ".join(cflags + ldflags)
    return Toolchain(
        name=profile.name,
        family=profile.family,
        libc=profile.libc,
        arch=board.arch,
        cc=cc,
        objdump=_objdump(board.arch, profile.name, [_fill(command, request) for command in tools.objdump], env),
        cflags=cflags,
        ldflags=ldflags,
        version=version,
        machine=machine,
        install=tools.install,
        why=_why(request, passed_over),
        unfixed_errata=tuple(number for number in board.cpu.errata if number not in named),
    )


def _fill(command: Command, request: _Request) -> Command:
    return tuple(word.format(prefix=request.prefix, python=sys.executable) for word in command)


def _why(request: _Request, passed_over: str) -> str:
    return "; ".join(part for part in (request.origin, passed_over and f"passed over: {passed_over}") if part)


def _first_compiler(
    arch: str, name: str, commands: list[Command], install: str, env: Mapping[str, str]
) -> tuple[Command, str]:
    """Return the first command that is there, and the machine it compiles for. Raises ToolchainError."""
    present = [command for command in commands if find_command(command, env)]
    if not present:
        wanted = " or ".join(shown(command) for command in commands)
        raise ToolchainError(f"toolchain {name}: {wanted} is not there", hint=install)
    said = ""
    for command in present:
        answer = run_quietly((*command, "-dumpmachine"), env)
        said = answer.first_line
        if answer.ok and said.startswith(f"{arch}-") and "linux" in said:
            return command, said
    compiler = shown(present[-1])
    if not answer.ok:
        raise ToolchainError(f"toolchain {name}: {compiler} does not run: {said}", hint=install)
    raise _OtherMachineError(
        f"toolchain {name}: {compiler} compiles for {said}, the board is {arch} Linux", hint=install
    )


def _version(cc: Command, profile: ToolchainProfile, install: str, env: Mapping[str, str]) -> str:
    """First line of `cc --version`; zig's own version before it. Raises ToolchainError if it is another compiler."""
    answer: Outcome = run_quietly((*cc, "--version"), env)
    if not answer.ok:
        raise ToolchainError(
            f"toolchain {profile.name}: {shown(cc)} --version failed: {answer.first_line}", hint=install
        )
    is_clang = "clang" in answer.first_line
    if is_clang == (profile.family == "gcc"):
        raise ToolchainError(
            f"toolchain {profile.name}: {shown(cc)} is not {profile.family}: {answer.first_line}", hint=install
        )
    if profile.family == "zig":
        zig = run_quietly((*cc[: cc.index("cc")], "version"), env).first_line
        return f"zig {zig} ({answer.first_line})"
    return answer.first_line


def _objdump(arch: str, name: str, commands: list[Command], env: Mapping[str, str]) -> Command:
    for command in commands:
        if disassembles(command, arch, env):
            return command
    package = "binutils-aarch64-linux-gnu" if arch == "aarch64" else "binutils"
    raise ToolchainError(
        f"toolchain {name}: no objdump that can disassemble {arch}, so the binary could not be checked",
        hint=f"sudo apt-get install {package}",
    )
