"""Folders that a worker must see, folders hidden from every worker, and folders hidden from candidates only."""

from __future__ import annotations

import importlib.util
import os
import pwd
import stat
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_HIDDEN_PACKAGES: Final = ("vllm",)
"""Libraries hidden from candidates, which are compared with them."""
_LISTS: Final = ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME")
"""Environment variables whose folders workers see."""


def covered() -> tuple[str, ...]:
    """Folders covered in every worker: the user's home and the temporary folders, except what Python needs."""
    homes = (pwd.getpwuid(os.getuid()).pw_dir, *(str(Path(name).resolve()) for name in ("/tmp", tempfile.gettempdir())))
    found = {home for home in homes if home != "/" and os.path.isdir(home)}
    return tuple(sorted(path for path in found if not any(path.startswith(other + "/") for other in found)))


def python() -> tuple[str, ...]:
    """Folders of this interpreter and its packages, and of the compilers and libraries the environment names."""
    named = [path for name in _LISTS for path in os.environ.get(name, "").split(os.pathsep)]
    inside = set(covered())
    return as_called([*_interpreter(), *(path for path in named if path not in inside)])


def modules() -> tuple[str, ...]:
    """Where trusted code is imported from beside Python's own: kgbench's folder. A session adds its own problems'."""
    return as_called(sys.path)


def hidden() -> tuple[str, ...]:
    """kgbench itself and the libraries that are compared with, for candidates."""
    places = _package("kgbench")
    for name in _HIDDEN_PACKAGES:
        places += _package(name)
    return as_called(map(str, places))


def folders_of(package: str) -> tuple[str, ...]:
    """An installed package's folders, as ``hidden`` has them; empty where it is not installed."""
    return as_called(map(str, _package(package)))


def closed_to_others() -> str | None:
    """A folder that Python needs and another uid cannot read; None when there is none."""
    torch = [str(path) for path in _package("torch")]
    return next((folder for folder in [*_interpreter(), *torch] if not _open_to_all(folder)), None)


def _interpreter() -> list[str]:
    own = {os.path.realpath(path) for path in (os.getcwd(), *(str(each.parent) for each in _package("kgbench")))}
    prefixes = [sys.prefix, sys.base_prefix, sys.exec_prefix]
    # kgbench may be installed among all other packages; the folder of a checkout is not Python's.
    beside = [path for path in sys.path if "-packages" in path or os.path.realpath(path) not in own]
    return [path for path in (*prefixes, *beside) if os.path.isdir(path)]


def _package(name: str) -> list[Path]:
    """A package's folders, without importing it; empty where it is not installed."""
    spec = importlib.util.find_spec(name)
    return [Path(path).resolve() for path in (spec.submodule_search_locations or ())] if spec else []


def as_called(paths: Iterable[str]) -> tuple[str, ...]:
    """The existing ones of these paths, absolute, both as written and with links resolved."""
    existing = [path for path in paths if path and os.path.isdir(path)]
    return tuple(sorted({form(path) for path in existing for form in (os.path.abspath, os.path.realpath)}))


def _open_to_all(folder: str) -> bool:
    path = Path(folder).resolve()
    return all(part.stat().st_mode & stat.S_IXOTH for part in (path, *path.parents))
