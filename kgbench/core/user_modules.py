"""Where the functions that the user's own problem files name are imported from: the problem folders themselves.

A file says ``reference: "my_module:reference"``, and ``my_module.py`` lies in the folder given with ``--problem-dir``,
beside the folders of its sources. Referee and library worker are other processes; the folders reach them through an
environment variable, which is read here only. A candidate's process imports nothing from there and cannot see them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

VARIABLE: Final = "KGBENCH_PROBLEM_DIRS"


def offer(folders: Iterable[Path | str]) -> None:
    """Let every process that is started from now on import from these folders, and from no other of the user's."""
    os.environ[VARIABLE] = as_text(folders)


def as_text(folders: Iterable[Path | str]) -> str:
    """The variable's value."""
    return json.dumps([str(Path(folder).resolve()) for folder in folders])


def folders() -> tuple[str, ...]:
    return tuple(json.loads(os.environ.get(VARIABLE) or "[]"))


def make_importable() -> None:
    """Append to the end of the import path, so that no module of Python or of a package is hidden."""
    sys.path += [folder for folder in folders() if folder not in sys.path]
