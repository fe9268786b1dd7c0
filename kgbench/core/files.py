"""Writing files so that a reader, a crash or a full disk never sees half of one, and removing hostile folders."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Final


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replaces a file whole: a reader sees the old content or the new one."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        with temporary.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LEVELS: Final = 1 << 17
"""Folders in each other that are removed at most; more than a tmpfs of a worker's can hold."""


def remove_tree(folder: Path | str) -> None:
    """Remove a folder with all in it, also where its owner made it so deep that ``shutil.rmtree``, which calls itself
    once a level, raises RecursionError.

    What cannot be removed stays, without an error. No link is followed, whoever changes the folder meanwhile.
    """
    with contextlib.suppress(OSError):
        top = os.open(folder, _FOLDER)
        try:
            for _ in range(_MOST_LEVELS):
                if not _a_level_less(top):
                    break
        finally:
            os.close(top)
        os.rmdir(folder)


def _a_level_less(top: int) -> bool:
    """Remove files and folders of a folder, whose folders' folders are moved up to it; whether there were any."""
    moved = False
    for name in _without_files(top):
        with contextlib.suppress(OSError):
            inner = os.open(name, _FOLDER, dir_fd=top)
            try:
                for deeper in _without_files(inner):
                    os.rename(deeper, secrets.token_hex(8), src_dir_fd=inner, dst_dir_fd=top)
                    moved = True
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)
    return moved


def _without_files(folder: int) -> list[str]:
    """Remove what is no folder in an open one; the names of the folders. Raises OSError."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if not is_folder:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
    return [name for name, is_folder in found if is_folder]
