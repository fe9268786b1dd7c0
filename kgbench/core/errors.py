"""All errors that kgbench reports to a user, with their numbers and exit codes.

A candidate's failure is never an exception; it is an ``Outcome``. These exceptions are about a wrong command line, a
wrong problem file, or a machine that cannot do what was asked. ``messages.py`` explains the numbers.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

INTERRUPTED: Final = 130
"""Exit code of a command that a signal ended."""


class KgbenchError(Exception):
    """Base of all errors that the command line prints without a traceback."""

    exit_code: ClassVar[int] = 2

    def __init__(self, number: str, text: str) -> None:
        """``number`` is one of ``messages.py``; ``text`` says what, where and the next step."""
        super().__init__(number, text)
        self.number = number
        self.text = text
        self.add_note(f"{number}: see docs/errors.md")

    def __str__(self) -> str:
        return self.text

    @property
    def printed(self) -> str:
        """The text as the command line prints it, with its number in front."""
        return numbered(self.number, self.text)


class UsageError(KgbenchError):
    """What the user asked for does not exist or contradicts itself; exit code 2."""


class ExpressionError(UsageError):
    """An expression of a problem file cannot be parsed or evaluated; exit code 2."""

    def __init__(self, number: str, text: str, line: int = 0) -> None:
        """``line`` counts from 1; 0 where the expression is in no file."""
        super().__init__(number, text)
        self.line = line
        self.args = (number, text, line)


class ProblemFileError(UsageError):
    """A problem file says something wrong; exit code 2."""

    def __init__(self, number: str, file: Path | str, line: int, key: str, what: str, step: str = "") -> None:
        """``step`` is what to write instead; ``line`` counts from 1."""
        self.file = str(file)
        self.line = line
        self.key = key
        self.what = what
        self.step = step
        where = f"{shown_path(file)}:{line}: " + (f"{key}: " if key else "")
        super().__init__(number, where + what + (f"; {step}" if step else ""))
        self.args = (number, file, line, key, what, step)


class ProblemFileErrors(UsageError):
    """A problem file says several things wrong, one line each; exit code 2."""

    def __init__(self, complaints: Sequence[ProblemFileError | ExpressionError]) -> None:
        self.complaints = tuple(complaints)
        super().__init__(complaints[0].number, "\n".join(map(str, complaints)))
        self.args = (complaints,)

    @property
    def printed(self) -> str:
        return "\n".join(each.printed for each in self.complaints)


class MachineError(KgbenchError):
    """This machine cannot do what was asked, whatever the command line; exit code 3."""

    exit_code: ClassVar[int] = 3


def to_stderr(words: str) -> None:
    """Print a message on stderr, for programs that have no terminal output of their own."""
    print(f"kgbench: {words}", file=sys.stderr, flush=True)


def numbered(number: str, text: str) -> str:
    """A message with its number in front; also for warnings, for which no exception is raised."""
    return f"{number}: {text}"


def shown_path(path: Path | str) -> str:
    """``path`` relative to the working directory where it lies below it and that is not ``/``; as it is otherwise."""
    return _shown(str(path), os.getcwd())


@functools.lru_cache
def _shown(path: str, here: str) -> str:
    """Cached, since reading a problem asks for the same path a hundred times and resolving links is slow."""
    resolved = Path(path).resolve()
    return str(resolved.relative_to(here)) if here != "/" and resolved.is_relative_to(here) else path
