"""A worker's own account of the calls in which it was watched. It may be anything; what is malformed counts as none."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kgbench.core.details.where import Purpose, Where
from kgbench.core.text import told
from kgbench.harness.wire.requests import Observe, Observed
from kgbench.harness.workers.handle import WorkerFailed
from kgbench.harness.workers.started import Worker, WorkerSide

WAIT_S: Final = 60.0
"""Seconds that a worker may take to switch its observer on, or to give its account."""
LISTS: Final = ("operators", "kernels", "launched", "host", "placing", "compiled")
"""Keys of an account whose values are named entries."""
MOST_ENTRIES: Final = 1000
"""Operators, or kernels, that an account names at most; the stub's own has far fewer."""

SLACK_US: Final = 10_000.0
"""Time in µs by which clocks of two processes may differ."""
MOST_NESTED: Final = 4
"""Functions of numpy's, or launches, that lie in each other at most: each counts all of its time."""


@dataclass
class Observation:
    """A worker's own account of the calls in which it was watched."""

    calls: int = 0
    lost: bool = True
    """True where the observer was switched off meanwhile, or does not work."""
    wall_us: float = 0.0
    cpu_us: float = 0.0
    """CPU time of the worker's threads in µs, summed over threads; other programs on the machine do not lengthen it."""
    busy_us: float = 0.0
    """Time in µs in which the device was busy."""
    records: int = 0
    operators: dict[str, tuple[int, float, float]] = field(default_factory=dict)
    """Count, µs on the host and µs on the device, by name."""
    kernels: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    """Count and µs, by name and the operator that launched it."""
    launched: dict[str, int] = field(default_factory=dict)
    host: dict[str, int] = field(default_factory=dict)
    placing: dict[str, int] = field(default_factory=dict)
    """Operators and kernels, by name, that ran while outputs were copied, after the calls."""

    operators_us: float = 0.0
    """Time in µs on the host in which at least one operator ran."""
    host_us: float = 0.0
    """CPU time in µs in functions of numpy that the candidate called."""
    host_calls: int = 0
    """How often such a function was called."""
    launched_us: float = 0.0
    """CPU time in µs in launches of Triton kernels; where they are interpreted, in the kernels themselves."""

    compiled: frozenset[str] = frozenset()
    """Names of functions whose kernels Triton launched."""
    impossible: str = ""
    """What it says that cannot be, by the referee's clock; empty where there is nothing."""

    @classmethod
    def from_reply(cls, reply: Mapping[str, Any]) -> Observation:
        """The account in an untrusted reply. A malformed one becomes an empty account."""
        try:
            if any(len(reply[name]) > MOST_ENTRIES for name in LISTS):
                return cls()
            return cls(
                _count(reply["calls"]),
                reply["lost"] is not False,
                _time(reply["wall_us"]),
                _time(reply["cpu_us"]),
                _time(reply["busy_us"]),
                _count(reply["records"]),
                {_text(name): (_count(n), _time(host), _time(device)) for name, n, host, device in reply["operators"]},
                {(_text(name), _text(by)): (_count(n), _time(us)) for name, by, n, us in reply["kernels"]},
                {_text(name): _count(n) for name, n in reply["launched"].items()},
                {_text(name): _count(n) for name, n in reply["host"].items()},
                {_text(name): _count(n) for name, n in reply["placing"].items()},
                _time(reply["operators_us"]),
                _time(reply["host_us"]),
                _count(reply["host_calls"]),
                _time(reply["launched_us"]),
                frozenset(map(_text, reply["compiled"])),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            return cls()


@contextlib.contextmanager
def watching(side: WorkerSide, kernels: bool, places: bool = True) -> Iterator[Observation]:
    """Watch the calls inside the block; afterwards the account is filled in. Raises WorkerFailed.

    ``places``: also watch how outputs are copied.
    """
    seen = Observation()
    begun_ns = time.perf_counter_ns()
    side.handle.request(_observe(kernels, places), WAIT_S, Where(Purpose.OBSERVED))
    yield seen
    told = Observation.from_reply(side.handle.request(Observed(), WAIT_S, Where(Purpose.OBSERVED)))
    told.impossible = impossible(told, (time.perf_counter_ns() - begun_ns) / 1e3, os.cpu_count() or 1)
    seen.__dict__.update(told.__dict__)


def impossible(seen: Observation, passed_us: float, processors: int) -> str:
    """What takes longer, by an account, than it can have in the time that passed; empty where nothing does."""
    most_us = passed_us + SLACK_US
    if seen.wall_us > most_us or seen.operators_us > most_us:
        return f"its calls took {max(seen.wall_us, seen.operators_us):.3g} µs by its account, of {passed_us:.3g} µs"
    spent_us = max(seen.cpu_us, seen.host_us / MOST_NESTED, seen.launched_us / MOST_NESTED)
    if spent_us > most_us * processors:
        return f"its calls took {spent_us:.3g} µs of a processor by its account, in {passed_us:.3g} µs"
    return ""


def tracer_works(start: Callable[[], Worker], kernels: bool) -> bool:
    """Whether a fresh worker's observer sees anything. ``start`` starts one. Raises HarnessFailed."""
    worker = start()
    try:
        return worker.handle.request(_observe(kernels, False), WAIT_S, Where(Purpose.OBSERVED)).get("works") is True
    except WorkerFailed:
        return False
    finally:
        worker.close()


def _observe(kernels: bool, places: bool) -> Observe:
    return Observe(kernels, places, secrets.token_hex(8))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return told(value)


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise TypeError
    return value


def _time(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise TypeError
    return float(value)
