"""One exception class a stage; each carries what went wrong, what to try, and the exit code of the command."""

from __future__ import annotations


class ColibriError(Exception):
    """A fault that the user can mend.

    `what` is one line: what, where and how much. `hint` says what to try. `exit_code` is the documented one:
    1 a check failed, 2 usage or bad profile/model, 3 toolchain or compile, 4 device or serial I/O,
    5 read-back differs, 124 deadline, 130 Ctrl-C, 143 SIGTERM.
    """

    exit_code = 2

    def __init__(self, what: str, *, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.what}; try: {self.hint}" if self.hint else self.what


class CheckpointError(ColibriError):
    """A checkpoint that cannot be read, or whose mathematics we do not implement."""


class TokenizerError(CheckpointError):
    """A tokenizer that cannot be compiled exactly."""


class QuantizeError(ColibriError):
    """A quantization that cannot be done as asked."""


class PackError(ColibriError):
    """A model folder that is damaged, of another version, or cannot be written."""


class TargetError(ColibriError):
    """A board or toolchain profile that is unknown or malformed."""


class PlanError(ColibriError):
    """A model that does not fit the board."""

    exit_code = 1


class RenderError(ColibriError):
    """A value that the C templates cannot express."""


class ToolchainError(ColibriError):
    """A toolchain that is missing or not what was asked for."""

    exit_code = 3


class CompileError(ColibriError):
    """A compiler, assembler or linker that failed."""

    exit_code = 3


class InspectError(ColibriError):
    """A binary that breaks a promise (not static, wrong ISA, changed weights ...)."""

    exit_code = 1


class RunError(ColibriError):
    """A firmware that could not be started, or a console that was lost."""

    exit_code = 4


class DeadlineError(RunError):
    """A firmware that did not finish in time."""

    exit_code = 124


class VerifyError(ColibriError):
    """A firmware whose answer is not the reference's."""

    exit_code = 1


class ImageError(ColibriError):
    """An image that cannot be made as asked, or an image folder that is damaged."""


class FlashError(ColibriError):
    """A device that must not be written, or that failed while it was."""

    exit_code = 4


class ReadBackError(FlashError):
    """A device that does not hold what was written to it."""

    exit_code = 5


class TraceError(ColibriError):
    """A trace that holds nothing to report, contradicts itself, or is of another model."""
