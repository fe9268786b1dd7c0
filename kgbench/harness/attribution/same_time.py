"""Whether a watched window took the time that was scored: else the candidate did something else when it was timed.

Pure functions.
"""

from __future__ import annotations

import statistics
from typing import Final

from kgbench.core.types import Timing, Window
from kgbench.harness.attribution.account import Observation
from kgbench.harness.clock.estimate import overhead

HOST_DIFFERENCE: Final = 3.0
"""Factor on a window's scored time that it may take on the CPU when watched, beside HOST_SLACK_US."""
HOST_SLACK_US: Final = 3000.0
"""Time in µs that a watched window may take on the CPU on top; the tracer costs a microsecond an operator."""
HOST_CALL_US: Final = 20.0
"""Time in µs of a watched window on the CPU that every call of numpy's functions may add, which are counted there."""
DIFFERENCE: Final = 1.15
"""Factor by which a call's device times with and without an observer may differ, beside SLACK_US and GAP_US."""
SLACK_US: Final = 3.0
"""Time in µs by which a call's device times with and without an observer may differ on top."""
GAP_US: Final = 6.0
"""Time in µs between two things that a device does one after the other, at most: a launch, a copy, joined streams."""
MOST_CALLS: Final = 32
"""Calls of a watched window at most."""


def unlike(seen: Observation, calls: int, timing: Timing) -> str:
    """How the device's time in a watched window of so many calls differs from what was scored; empty where it does
    not.
    """
    scored = window_us(timing)
    if scored is None or seen.lost:
        return ""
    busy, records = seen.busy_us / calls, seen.records / calls
    if busy > DIFFERENCE * scored + SLACK_US:
        return f"its device time is {busy:.1f} µs per call when observed, {scored:.1f} µs when timed"
    explained = busy if timing.queued else max(busy, seen.wall_us / calls)
    if scored > DIFFERENCE * explained + SLACK_US + GAP_US * (records + 1):
        return f"what was seen on the device accounts for {explained:.1f} of {scored:.1f} µs per call"
    return ""


def unlike_on_host(seen: Observation, calls: int, timing: Timing) -> str:
    """How much longer a watched window of so many calls took on the CPU than one that was scored; empty where it did
    not.
    """
    # What an empty window takes is not taken off: on a busy machine it can be longer than one with calls.
    mine = [window.done_us / window.calls for window in timing.windows if _is_candidates(window)]
    scored, took = statistics.median(mine) if mine else None, min(seen.wall_us, seen.cpu_us)
    slack_us = HOST_SLACK_US + HOST_CALL_US * seen.host_calls
    if scored is None or seen.lost or took <= HOST_DIFFERENCE * scored * calls + slack_us:
        return ""
    return f"a call takes {took / calls:.1f} µs when observed, {scored:.1f} µs when timed"


def window_us(timing: Timing) -> float | None:
    """Device time of one candidate's call in windows of several, in µs, whatever was scored in the end."""
    mine = [window for window in timing.windows if _is_candidates(window)]
    overheads = [window for window in timing.windows if window.kind == "overhead"]
    if not mine or not overheads:
        return None
    empty_us = overhead(overheads, timing.queued)
    return statistics.median((window.done_us - empty_us) / window.calls for window in mine)


def _is_candidates(window: Window) -> bool:
    return window.side == "candidate" and window.kind == "window"


def window_calls(timing: Timing) -> int:
    """How many calls its windows had, as far as they are watched."""
    return min(MOST_CALLS, max(window.calls for window in timing.windows if window.kind == "window"))
