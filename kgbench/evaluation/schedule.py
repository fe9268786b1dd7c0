"""The order in which problems are judged: the longest first, by their durations on this device before.

Otherwise a long problem that comes last runs alone at the end, while the other slots have nothing to do.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kgbench.core.device_facts import DURATIONS, device_key, keep, known
from kgbench.core.kinds import DeviceKind
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.evaluation.usual_durations import USUAL_DURATIONS
from kgbench.problem.model import Problem


def longest_first(problems: Sequence[Problem], seconds: Mapping[str, float]) -> list[Problem]:
    """The problems by falling duration; one whose duration is unknown counts as the median of the others.

    Args:
        problems: in the order of the run, which those of the same duration keep.
        seconds: what a candidate of a problem took, by the problem's id.
    """
    usual = statistics.median(seconds.values()) if seconds else 0.0
    return sorted(problems, key=lambda problem: -seconds.get(problem.id, usual))


def known_durations(device: Mapping[str, Any]) -> dict[str, float]:
    """Seconds a candidate of each problem took on a device like this one; on a GPU, of problems that it has not judged
    yet those on another, which have the same order.

    ``device``: the session's facts, of which ``kind`` and ``name`` are used.
    """
    usual = _usual() if device.get("kind") == DeviceKind.CUDA else {}
    return {**usual, **_kept(device)}


def _kept(device: Mapping[str, Any]) -> dict[str, float]:
    found = known(DURATIONS, _key(device)) or {}
    return {name: float(value) for name, value in found.items() if isinstance(value, int | float)}


def _usual() -> dict[str, float]:
    return {f"{source}/{name}": float(s) for source, each in USUAL_DURATIONS.items() for name, s in each.items()}


def remember_durations(device: Mapping[str, Any], results: Iterable[Result]) -> None:
    """Store candidates' durations, without waiting times; the longest of a problem's candidates counts.

    One that failed may have been judged in a few calls alone: it says only that the problem takes as long at least.
    """
    before = known_durations(device)
    longest: dict[str, float] = {}
    for result in results:
        if "total" in result.seconds:
            least = 0.0 if result.outcome is Outcome.PASSED else before.get(result.problem, 0.0)
            longest[result.problem] = max(longest.get(result.problem, 0.0), result.seconds["total"], least)
    if longest:
        keep(DURATIONS, _key(device), {**_kept(device), **longest})


def _key(device: Mapping[str, Any]) -> str:
    return device_key(str(device.get("kind", "")), str(device.get("name", "")))
