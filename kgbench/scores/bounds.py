"""``--fail-under``: bounds on fast_p, and which of them a run breaks. The shares are those of ``rows.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kgbench.core.errors import UsageError
from kgbench.core.kinds import Kind
from kgbench.core.text import number_of
from kgbench.core.types import Result
from kgbench.scores.samples import Selected, by_problem, latest
from kgbench.scores.score import Basis
from kgbench.scores.table import fast

_BOUND: Final = re.compile(r"(?:(?P<source>[\w-]+):)?(?:fast_(?P<p>\d+(?:\.\d+)?)|correct|right)=(?P<least>\d*\.?\d+)")
_ROUNDING: Final = 1e-9
"""Difference by which a share may miss a bound through rounding."""


@dataclass(frozen=True)
class Bound:
    """The least share, 0 to 1, of all problems or of a source's."""

    text: str
    source: str | None
    p: float
    """0 asks for correctness alone, of every kind of problem; otherwise the bound is on those of kind compute."""
    least: float


def parse_bounds(text: str) -> tuple[Bound, ...]:
    """``fast_0=1.0,cublas:fast_1=0.5``; ``correct`` and ``right`` are other words for ``fast_0``. Raises UsageError."""
    bounds = []
    for part in filter(None, map(str.strip, text.split(","))):
        match = _BOUND.fullmatch(part)
        if match is None or not 0 <= float(match["least"]) <= 1:
            raise UsageError(
                "KGB107",
                f"--fail-under '{part}': expected [SOURCE:]fast_P=SHARE with a share from 0 to 1, "
                "for example --fail-under 'fast_0=1.0,cublas:fast_1=0.5'",
            )
        bounds.append(Bound(part, match["source"], float(match["p"] or 0), float(match["least"])))
    return tuple(bounds)


def check_sources(bounds: Sequence[Bound], ids: Sequence[str]) -> None:
    """Raises UsageError for a bound on a source of which nothing is selected."""
    sources = list(dict.fromkeys(each.partition("/")[0] for each in ids))
    for bound in bounds:
        if bound.source is not None and bound.source not in sources:
            raise UsageError(
                "KGB108",
                f"--fail-under '{bound.text}': no problem of {bound.source} is selected; "
                f"there are {', '.join(sources)}",
            )


def broken(bounds: Sequence[Bound], selected: Sequence[Selected], results: Sequence[Result]) -> Iterator[str]:
    """A line on each bound that does not hold, with both numbers. A share that is not known holds no bound."""
    check_sources(bounds, [problem.id for problem in selected])
    best = by_problem(latest(results))
    for bound in bounds:
        meant = [
            problem
            for problem in selected
            if bound.source in (None, problem.source) and (bound.p == 0 or problem.kind == Kind.COMPUTE)
        ]
        basis = Basis.of(meant, best)
        share = fast(bound.p).value(basis) if basis.scored else None
        if share is None:
            yield f"--fail-under '{bound.text}': {_unknown(meant, basis)}"
        elif share < bound.least - _ROUNDING:
            count = number_of(len(basis.scored), "problem")
            yield f"--fail-under '{bound.text}': it is {share:.4g} of {count}, below {bound.least:g}"


def _unknown(meant: Sequence[Selected], basis: Basis) -> str:
    if not meant:
        return "no problem of kind compute is selected, so there is no speed"
    if not basis.scored:
        return "no problem of it can be judged on this machine"
    return "the speed is not known, since kernels ran in Triton's interpreter; bounds on fast_0 hold everywhere"
