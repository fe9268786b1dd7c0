"""System calls that Python has no function for, through libc. No package covers them all."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import signal
import struct
from collections.abc import Callable
from typing import Any

PR_SET_PDEATHSIG, PR_SET_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP = 1, 36, 38, 24
_CAPABILITIES_VERSION, _MOST_CAPABILITIES = 0x20080522, 64


def libc_call(name: str, *arguments: Any) -> None:
    """Raises OSError with the function's name when it does not return 0."""
    if getattr(_libc(), name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name} refused ({os.strerror(code)})")


def system_call(name: str, number: int, *arguments: Any) -> int:
    """The call's result. Integers are passed as C longs. Raises OSError."""
    passed = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = int(_libc().syscall(ctypes.c_long(number), *passed))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name} refused ({os.strerror(code)})")
    return result


def prctl(option: int, value: int) -> None:
    libc_call("prctl", option, value, 0, 0, 0)


def become_subreaper() -> None:
    """Orphans among this process's descendants become its children instead of init's."""
    prctl(PR_SET_SUBREAPER, 1)


def die_with_parent() -> None:
    """This process is killed when the process (the thread) that forked it ends."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def drop_capabilities() -> None:
    """What root may do beyond what it owns, for this process and all below it, for good. Raises OSError."""
    for number in range(_MOST_CAPABILITIES):
        # This kernel may not know it, and who may not drop it has none to hand on.
        with contextlib.suppress(OSError):
            prctl(PR_CAPBSET_DROP, number)
    header = struct.pack("=Ii", _CAPABILITIES_VERSION, 0)
    libc_call("capset", ctypes.create_string_buffer(header), bytes(24))


def machine() -> str:
    """``x86_64``, ``aarch64`` or another name for which no system call numbers are known here."""
    return {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())


def try_in_child(action: Callable[[], None]) -> str | None:
    """Run in a fork; None when it worked, else what went wrong in words."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        words = "ended without output"
        try:
            action()
            words = ""
        except OSError as error:
            words = error.strerror or str(error)
        finally:
            os.write(write_end, words.encode()[:500])
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        words = pipe.read().decode()
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return words or (f"the attempt was ended by signal {-ended}" if ended else None)


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc
