"""An interruption arrives once, wherever the signal finds the program."""

from __future__ import annotations

import os
import signal
import sys
import time
import weakref

import pytest

from kgbench.core.interruption import ended_by_signals


class Thing:
    pass


class Stubborn:
    def __del__(self) -> None:
        ended()


def ended() -> None:
    """The signal comes here."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.05)


def in_a_callback() -> None:
    thing = Thing()
    reference = weakref.ref(thing, lambda _: ended())
    del thing
    assert reference() is None


def in_a_destructor() -> None:
    Stubborn()


@pytest.mark.parametrize("where", [ended, in_a_callback, in_a_destructor])
def test_a_signal_interrupts_once(where: object) -> None:
    assert callable(where)
    before, hook = signal.getsignal(signal.SIGTERM), sys.unraisablehook
    times = 0
    with ended_by_signals():
        try:
            where()
            time.sleep(5.0)
        except KeyboardInterrupt:
            times += 1
            # Cleaning up is not interrupted again.
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
    assert times == 1
    assert signal.getsignal(signal.SIGTERM) is before
    assert sys.unraisablehook is hook


def test_what_else_a_destructor_raises_goes_where_it_went(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __del__(self) -> None:
            raise RuntimeError("broken")

    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: told.append(what.exc_type))
    with ended_by_signals():
        Broken()
    assert told == [RuntimeError]
