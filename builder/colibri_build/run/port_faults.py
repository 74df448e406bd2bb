"""Why a port cannot be opened, or was lost, in one line that says what to try."""

from __future__ import annotations

import errno
import grp
import os
import stat
from contextlib import suppress
from pathlib import Path

from serial.tools import list_ports

from colibri_build.errors import RunError

_SHOWN_PORTS = 4
_LOCK_FOLDERS = (Path("/run/lock"), Path("/var/lock"))
# Parts of pyserial's messages, and what they mean.
_PLAIN_WORDS = {
    "returned no data": "the line was hung up",
    "socket disconnected": "the other end closed the connection",
    "reader thread died": "the other end closed the connection",
}
_SCHEMES = "socket://HOST:PORT, rfc2217://HOST:PORT, unix:PATH, loop:// or a device"


class DisconnectedError(RunError):
    """A line that was lost while it was open: unplugged, or its server gone."""


def check(url: str) -> None:
    """Raise RunError for a device path that is no serial port, or that a program has locked by the old custom."""
    scheme, is_url, place = url.partition("://")
    if is_url:
        if scheme in ("socket", "rfc2217") and not place.partition("?")[0].rpartition(":")[2].isdecimal():
            raise RunError(f"{url} names no port number", hint=f"{scheme}://HOST:PORT")
        return
    path = Path(url)
    try:
        mode = path.stat().st_mode
    except PermissionError as error:
        raise cannot_open(url, error, 0) from error
    except (OSError, ValueError):
        raise RunError(f"there is no port {url}", hint=_ports_hint()) from None
    if not stat.S_ISCHR(mode):
        raise RunError(f"{url} is no serial port", hint=_ports_hint())
    locked_by = _lock_file_owner(path)
    if locked_by:
        raise _held(url, [locked_by])


def cannot_open(url: str, error: Exception, baud: int) -> RunError:
    """Return what to tell about a port that does not open. `baud` is the rate that was asked for."""
    number = getattr(error, "errno", None)
    reason = _reason(error)
    if "://" in url:
        return _no_connection(url, reason)
    if url.startswith("unix:"):
        return RunError(
            f"cannot open {url}: {reason}", hint="start the program that listens there, or unix:PATH,listen"
        )
    if number in (errno.EACCES, errno.EPERM):
        return _no_permission(url)
    if number in (errno.EBUSY, errno.EAGAIN):
        return _held(url, holders(url) or holders(url, with_us=True))
    if number == errno.ENOENT:
        return RunError(f"there is no port {url}", hint=_ports_hint())
    if number in (errno.EIO, errno.ENXIO, errno.ENODEV):
        return RunError(f"no device is behind {url} ({reason})", hint=_ports_hint())
    if "Inappropriate ioctl" in reason:
        return RunError(f"{url} is no serial port", hint=_ports_hint())
    if isinstance(error, ValueError | OverflowError):
        return RunError(f"{url} cannot be set to {baud} baud", hint="--baud 115200, or what the board's profile says")
    return RunError(f"cannot open {url}: {reason}", hint=_ports_hint())


def disconnected(url: str, error: Exception) -> DisconnectedError:
    """Return what to tell about a line that was lost while it was open."""
    others = holders(url) if "://" not in url and not url.startswith("unix:") else []
    hint = (
        f"end {', '.join(others)}, which reads the port, too" if others else "check plug, power and cable; run it again"
    )
    return DisconnectedError(f"device disconnected: {url} ({_reason(error)})", hint=hint)


def holders(url: str, with_us: bool = False) -> list[str]:
    """Return "program (pid N)" of each process but ours that has a device open, as far as /proc lets us look."""
    device = os.path.realpath(url)
    found = []
    for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        if int(process.name) == os.getpid() and not with_us:
            continue
        with suppress(OSError):
            if any(_points_to(link, device) for link in (process / "fd").iterdir()):
                found.append(_named(int(process.name)))
    return found


def _points_to(link: Path, device: str) -> bool:
    try:
        return str(link.readlink()) == device
    except OSError:
        return False


def _named(pid: int) -> str:
    with suppress(OSError):
        return f"{Path(f'/proc/{pid}/comm').read_text(encoding='utf-8').strip()} (pid {pid})"
    return f"pid {pid}"


def _held(url: str, by: list[str]) -> RunError:
    if not by:
        return RunError(f"{url} is held by another program", hint=f"find it with: sudo fuser -v {url}")
    return RunError(f"{url} is held by {', '.join(by)}", hint="end it, or use another port")


def _lock_file_owner(path: Path) -> str | None:
    """The living owner of a lock file LCK..NAME, as minicom and picocom write them."""
    for folder in _LOCK_FOLDERS:
        with suppress(OSError, ValueError):
            pid = int((folder / f"LCK..{path.name}").read_text(encoding="ascii").split()[0])
            if pid != os.getpid() and Path(f"/proc/{pid}").exists():
                return _named(pid)
    return None


def _no_permission(url: str) -> RunError:
    with suppress(OSError, KeyError):
        info = Path(url).stat()
        group = grp.getgrgid(info.st_gid).gr_name
        if info.st_mode & stat.S_IRGRP and info.st_mode & stat.S_IWGRP and group != "root":
            return _permission_error(url, group)
    return _permission_error(url, "dialout")


def _permission_error(url: str, group: str) -> RunError:
    hint = f"sudo usermod -aG {group} $USER, then log in again"
    return RunError(f"no permission to open {url}", hint=hint)


def _no_connection(url: str, reason: str) -> RunError:
    scheme = url.partition("://")[0]
    if "not known" in reason:
        return RunError(f"{url}: no such kind of port as {scheme}://", hint=_SCHEMES)
    shown = reason.removeprefix(f"Could not open port {url}: ")
    return RunError(
        f"cannot connect to {url}: {shown}", hint="start the server there (ser2net, QEMU), check host and port"
    )


def _reason(error: Exception) -> str:
    """The system's words for an error, without Python's decoration, on one line."""
    inner = getattr(error, "__context__", None)
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror
    number = getattr(error, "errno", None)
    if isinstance(number, int):
        return os.strerror(number)
    text = " ".join(str(error).split())
    return next((words for part, words in _PLAIN_WORDS.items() if part in text), text or type(error).__name__)


def _ports_hint() -> str:
    """The ports of this machine, for a user who named another."""
    ports = sorted(list_ports.comports(), key=lambda port: port.device)
    real = [port for port in ports if port.hwid != "n/a"] or ports
    if not real:
        return "plug the adapter in (no serial port is on this machine; dmesg shows whether it was seen)"
    shown = [f"{port.device} ({port.description})" if port.description != "n/a" else port.device for port in real]
    more = f" and {len(shown) - _SHOWN_PORTS} more" if len(shown) > _SHOWN_PORTS else ""
    return f"one of {', '.join(shown[:_SHOWN_PORTS])}{more}"
