"""One lock per GPU for all users of a machine: two runs on one GPU would disturb each other's times.

It is an advisory lock on a file in a folder that everybody may write. The lock ends with the process that holds it,
however that ends; the file stays, and says who has the GPU.
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kgbench.core.errors import MachineError

FOLDER: Final = Path("/tmp")
"""Folder of the lock files of all users; TMPDIR may be each user's own."""
POLL_S: Final = 0.5
"""Seconds between two attempts to take a lock."""


class GpuLock:
    """Not held until ``try_take`` or ``wait`` succeeds; ``release`` may be called at any time."""

    def __init__(self, uuid: str, folder: Path = FOLDER) -> None:
        self.path = folder / f"kgbench-{uuid}.lock"
        self._fd: int | None = None

    def try_take(self) -> bool:
        """Whether the GPU is this process's now. Raises MachineError where the file cannot be used."""
        fd = self._open()
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        self._fd = fd
        with contextlib.suppress(OSError):
            os.ftruncate(fd, 0)
            words = {"pid": os.getpid(), "user": _user(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
            os.pwrite(fd, json.dumps(words).encode(), 0)
        return True

    def wait(self, tell: Callable[[str], None]) -> None:
        """Block until the GPU is free; ``tell`` is told once who has it."""
        told = False
        while not self.try_take():
            if not told:
                tell(f"waiting for {self.holder()} (Ctrl-C gives up)")
                told = True
            time.sleep(POLL_S)

    def holder(self) -> str:
        """Who has it, in words."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            words = json.loads(self.path.read_text())
            return f"the kgbench of user {words['user']} (process {words['pid']}, since {words['since']})"
        return "another kgbench"

    def release(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def _open(self) -> int:
        """Opens without creating first: in a sticky folder Linux refuses O_CREAT on somebody else's file."""
        try:
            for _ in range(3):
                with contextlib.suppress(FileNotFoundError):
                    fd = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                    if not stat.S_ISREG(os.fstat(fd).st_mode):
                        os.close(fd)
                        raise OSError(0, "it is not a regular file")
                    return fd
                with contextlib.suppress(FileExistsError):
                    fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
                    # Whatever the umask is, everybody must be able to open it.
                    os.fchmod(fd, 0o666)
                    return fd
        except OSError as error:
            words = error.strerror or str(error)
            raise MachineError(
                "KGB307", f"{self.path}: cannot lock the GPU: {words}; ask its owner to remove it"
            ) from error
        raise MachineError("KGB308", f"{self.path}: cannot lock the GPU: the file keeps disappearing; try again")


def _user() -> str:
    """Their name; in a container a user may have none."""
    with contextlib.suppress(OSError, KeyError):
        return getpass.getuser()
    return str(os.geteuid())
