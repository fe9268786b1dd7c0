"""Turns signals that end a program into KeyboardInterrupt, so that it cleans up and keeps what is finished."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN_S: Final = 0.01
"""Seconds after which an interruption that Python dropped is raised again."""


@contextlib.contextmanager
def ended_by_signals() -> Iterator[Callable[[], None]]:
    """Inside, the first signal that ends a program raises KeyboardInterrupt; the function given turns them off.

    Once is enough: a second one would interrupt the cleaning up. They are turned off by a handler that does nothing,
    since an ignored signal would be inherited by child processes.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        handle(nothing)
        raise KeyboardInterrupt

    def nothing(number: int, frame: FrameType | None) -> None:
        pass

    def handle(handler: Callable[[int, FrameType | None], None]) -> None:
        for number in before:
            signal.signal(number, handler)

    def dropped(what: Any) -> None:
        # Python drops what is raised in a destructor or in a weak reference's callback: raise it again elsewhere.
        if before and isinstance(what.exc_value, KeyboardInterrupt):
            handle(interrupt)
            # A signal, not `_thread.interrupt_main`: it ends a wait in the main thread as well.
            again = (threading.main_thread().ident, next(iter(before)))
            threading.Timer(_AGAIN_S, signal.pthread_kill, again).start()
        else:
            hook_before(what)

    # A signal that was ignored from outside (nohup) stays ignored.
    before = {n: handler for n in _ENDING if (handler := signal.getsignal(n)) is not signal.SIG_IGN}
    hook_before, sys.unraisablehook = sys.unraisablehook, dropped
    handle(interrupt)
    try:
        yield lambda: handle(nothing)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook_before
