"""Everything kgbench tells a user as an error, with the exit code it ends the command with.

A candidate's failure is never an exception; it is an ``Outcome``. What is raised from here is somebody else's: a wrong
command line, a wrong problem file, a machine that cannot do what was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar


class KgbenchError(Exception):
    """Base of all errors that the command line prints without a traceback."""

    exit_code: ClassVar[int] = 2

    @property
    def message(self) -> str:
        """What, where and the next step, in one text."""
        return str(self)


class UsageError(KgbenchError):
    """What the user asked for does not exist or contradicts itself; exit code 2."""


class ExpressionError(UsageError):
    """An expression of a problem file cannot be parsed or evaluated; exit code 2."""


class ProblemFileError(UsageError):
    """A problem file says something wrong; exit code 2."""

    def __init__(self, file: Path | str, line: int, key: str, what: str, step: str = "") -> None:
        """``step`` is what to write instead; ``line`` counts from 1."""
        self.file = str(file)
        self.line = line
        self.key = key
        self.what = what
        self.step = step
        where = f"{shown_path(file)}:{line}: " + (f"{key}: " if key else "")
        super().__init__(where + what + (f"; {step}" if step else ""))


class ProblemFileErrors(UsageError):
    """A problem file says several things wrong, one line each; exit code 2."""

    def __init__(self, complaints: Sequence[ProblemFileError | ExpressionError]) -> None:
        self.complaints = tuple(complaints)
        super().__init__("\n".join(map(str, complaints)))


class MachineError(KgbenchError):
    """This machine cannot do what was asked, however it is spelled; exit code 3."""

    exit_code: ClassVar[int] = 3


def shown_path(path: Path | str) -> str:
    """``path`` relative to the working directory where it lies below it, as it is otherwise."""
    resolved = Path(path).resolve()
    here = Path.cwd()
    return str(resolved.relative_to(here)) if resolved.is_relative_to(here) else str(path)
