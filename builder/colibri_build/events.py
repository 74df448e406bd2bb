"""What a caller may want to see while the stages run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from colibri_build.artifacts import BuildPlan


class Events:
    """The methods do nothing; override what is needed."""

    def stage(self, text: str) -> None:
        """Report that a stage starts."""

    def note(self, text: str) -> None:
        """Report what the user may want to know, in one line."""

    def planned(self, plan: BuildPlan) -> None:
        """Report the budget of a build, before it is held against the board's."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Report that `done` of `total` steps of the current stage are finished."""

    def command(self, argv: Sequence[str]) -> None:
        """Report a process that is about to run."""


SILENT = Events()
