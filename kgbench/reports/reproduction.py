"""A run's stored candidates, judged again: which outcomes changed, and which speedups left their interval. Torch-free.

``kgbench reproduce`` appends to ``reproduction.jsonl`` in the run's folder; the run's own results stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kgbench.core.types import Result
from kgbench.reports.words import estimate_text, numbered_as, result_line
from kgbench.scores.speedups import Estimate, speedup

FILE: Final = "reproduction.jsonl"
MOST_OUTSIDE: Final = 0.05
"""Share of the speedups that may leave a 95 % interval."""


@dataclass(frozen=True)
class Reproduced:
    """A result of the run, and what the same candidate did this time."""

    before: Result
    again: Result

    @property
    def changed(self) -> bool:
        return self.before.outcome is not self.again.outcome

    @property
    def speeds(self) -> tuple[Estimate, Estimate] | None:
        """Both speedups; None where either time has no speedup that means anything."""
        before, after = (None if each.interpreted else speedup(each) for each in (self.before, self.again))
        return (before, after) if before and after else None

    @property
    def outside(self) -> bool:
        """Whether the new speedup lies outside the interval that the run gave it."""
        return self.speeds is not None and not self.speeds[0].low <= self.speeds[1].point <= self.speeds[0].high


def reproduced(results: Iterable[Result], again: Iterable[Result]) -> list[Reproduced]:
    """Each result that was judged again with the same text, beside its last such judgement."""
    last = {each.key: each for each in again}
    pairs = [(result, last[result.key]) for result in results if result.key in last]
    return [Reproduced(*pair) for pair in pairs if pair[0].candidate_sha256 == pair[1].candidate_sha256]


def holds(found: Sequence[Reproduced]) -> bool:
    """Whether no outcome changed, and no more speedups left their interval than chance explains."""
    compared = [each for each in found if each.speeds]
    return not any(each.changed for each in found) and sum(each.outside for each in found) <= MOST_OUTSIDE * len(
        compared
    )


def summary(found: Sequence[Reproduced], differences: Sequence[str], of: int) -> dict[str, Any]:
    """JSON-ready. ``of``: results of the run that have a candidate."""
    return {
        "machine_differs": list(differences),
        "candidates": of,
        "judged_again": len(found),
        "outcomes_changed": [
            {**_named(each), "before": str(each.before.outcome), "after": str(each.again.outcome)}
            for each in found
            if each.changed
        ],
        "speedups_compared": sum(each.speeds is not None for each in found),
        "speedups_outside": [
            {**_named(each), "before": _ends(each.speeds[0]), "after": _ends(each.speeds[1])}
            for each in found
            if each.outside and each.speeds
        ],
        "holds": holds(found),
    }


def lines(found: Sequence[Reproduced], differences: Sequence[str], of: int) -> Iterable[str]:
    """Lines of the report: first how the machine differs, since that may explain other speedups."""
    yield "machine: " + ("; ".join(differences) or "device, driver and versions are those of the run")
    yield f"judged again: {len(found)} of {of} candidates"
    changed = [each for each in found if each.changed]
    yield f"outcomes changed: {len(changed)} (aim 0)"
    for each in changed:
        yield f"  {_name(each)}: was {result_line(each.before)}, now {result_line(each.again)}"
    compared = [each for each in found if each.speeds]
    outside = [each for each in compared if each.outside]
    share = f", {len(outside) / len(compared):.1%}" if compared else ""
    yield f"speedups outside their interval: {len(outside)} of {len(compared)}{share} (aim at most {MOST_OUTSIDE:.0%})"
    for each in outside:
        if each.speeds:
            yield f"  {_name(each)}: was {estimate_text(each.speeds[0])}, now {estimate_text(each.speeds[1])}"


def _name(each: Reproduced) -> str:
    return each.before.problem + numbered_as(each.before.sample, each.before.round)


def _named(each: Reproduced) -> dict[str, Any]:
    before = each.before
    return {"problem": before.problem, "model": before.model, "sample": before.sample, "round": before.round}


def _ends(estimate: Estimate) -> list[float]:
    return [estimate.point, estimate.low, estimate.high]
