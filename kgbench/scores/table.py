"""The table of scores. Whoever computes, prints, draws again or compares scores iterates it; a new one is one entry.

What each means stands in docs/scores.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kgbench.scores.samples import OfProblem, Scored, over_all, pass_at_k
from kgbench.scores.score import Basis, Number, Over, Place, Resample, Score, Unit
from kgbench.scores.speedups import CLAMP, geometric_mean, median


def count(score: Score, problems: Sequence[OfProblem]) -> float:
    """How many problems count in a share; with several samples the mean over them."""
    assert score.resample is not None, f"{score.name} is no share of samples"
    counts = score.resample.number.of
    return sum(each.count(counts) / each.asked for each in problems)


def _share(
    name: str,
    of_sample: Callable[[Scored], bool],
    places: Mapping[Place, int],
    *,
    heads: Mapping[Place, str] | None = None,
    timed: bool = False,
    counted: bool = False,
) -> Score:
    """The mean over problems of the share of their samples; one without a result does not count."""

    def value(basis: Basis) -> float | None:
        return None if timed and basis.interpreted else count(score, basis.scored) / len(basis.scored)

    score = Score(
        name,
        name,
        Unit.SHARE,
        value,
        Resample(Number(of_sample)),
        places=places,
        heads=heads or {},
        timed=timed,
        counted=counted,
    )
    return score


@functools.cache
def fast(p: float, *, by_point: bool = False) -> Score:
    """fast_p, by the lower end of the clock's interval or by the point estimate."""
    name = f"fast_{p:g}{' (point)' if by_point else ''}"
    tables = {Place.COUNTED: 2, Place.TERMINAL: 2, Place.TERMINAL_SAMPLES: 2, Place.TEXT: 2, Place.PAGE: 2}
    tables |= {Place.SUMMARY: 2, Place.ROUNDS: 2, Place.COMPARED: 2, Place.RANKING: 1, Place.RANK: 1}
    return _share(
        name,
        lambda sample: sample.is_fast(p, by_point=by_point),
        dict.fromkeys((Place.COUNTED, Place.TEXT, Place.PAGE, Place.COMPARED), 3) if by_point else tables,
        heads={Place.COUNTED: name.replace(" ", "\n")},
        timed=p > 0,
    )


@functools.cache
def sol(p: float) -> Score:
    """Share of problems whose kernel is correct and reaches at least p of the speed of light; those whose work takes
    less than an empty launch, or has no known bound, stand apart.
    """
    name = f"sol_{100 * p:g}"
    number = Number(lambda sample: sample.light is not None and sample.light >= p, of_problem=lambda each: each.bounded)
    return _share_of_some(
        name,
        number,
        place=round(100 * p),
        legend=f"correct and at {100 * p:g} % of the least time that the device's measured peaks allow",
        footnote=f"{name}: correct, and at {100 * p:g} % of the least time that the device's measured peaks allow.",
    )


@functools.cache
def library_sol(p: float) -> Score:
    """The same of the library, over the problems of which it was timed beside some sample; several samples have the
    middle one of its shares."""

    def value(basis: Basis) -> float | None:
        shares = [[each.library_light for each in problem.samples if each.library_light] for problem in basis.scored]
        known = [median(each) for each in shares if each]
        return None if basis.interpreted or not known else sum(share >= p for share in known) / len(known)

    name = f"sol_{100 * p:g} (library)"
    legend = f"the library at {100 * p:g} % of that time, of the problems of which it was timed"
    places = dict.fromkeys((Place.TEXT, Place.PAGE), round(100 * p) + 1)
    return Score(name, name, Unit.SHARE, value, places=places, optional=True, legend=legend)


@functools.cache
def record(p: float) -> Score:
    """Share of problems whose kernel is correct and more than p times as fast as the record, by the lower end; problems
    without a record stand apart."""
    name = f"record_{p:g}"
    number = Number(lambda sample: sample.record is not None and sample.record > p, of_problem=lambda o: o.has_record)
    return _share_of_some(
        name,
        number,
        place=100 + round(100 * p),
        legend=f"correct and more than {p:g} times as fast as the record of this device",
        footnote=f"{name}: correct, and more than {p:g} times as fast as the record, of the problems that have one.",
    )


def _share_of_some(name: str, number: Number, *, place: int, legend: str, footnote: str) -> Score:
    """A share of the problems that ``number`` is about; None where there are none, or where times mean nothing."""

    def value(basis: Basis) -> float | None:
        some = [each for each in basis.scored if number.of_problem(each)]
        return None if basis.interpreted or not some else count(score, some) / len(some)

    places = dict.fromkeys((Place.TEXT, Place.PAGE), place)
    score = Score(
        name, name, Unit.SHARE, value, Resample(number), places=places, optional=True, legend=legend, footnote=footnote
    )
    return score


@functools.cache
def best_of(k: int, score: Score) -> Score:
    """The chance that of k samples one counts in another share: pass@k, fast_p@k."""
    one = score.resample
    assert one is not None, f"{score.name} is no share of samples"
    number, name = one.number, f"{'pass' if score is CORRECT else score.name}@{k}"

    def value(basis: Basis) -> float | None:
        if score.timed and basis.interpreted:
            return None
        return sum(pass_at_k(each.asked, each.count(number.of), k) for each in basis.scored) / len(basis.scored)

    passes = {Place.TERMINAL_SAMPLES: 5, Place.TEXT: 8, Place.PAGE: 6}
    return Score(
        name,
        name,
        Unit.SHARE,
        value,
        Resample(number, best_of=k),
        places=passes if score is CORRECT else {Place.TEXT: 9},
        timed=score.timed,
        optional=True,
    )


SOL: Final = (0.5, 0.8)
"""Shares of the speed of light at which problems are counted."""
RECORD: Final = (0.9, 1.0)
"""The p of record_p."""
_BEST: Final = "the fastest of the library and the packages that were judged on this device, by timed case"
BEST_FAST: Final = Score(
    "fast_1 (best library)",
    "fast_1 (best library)",
    Unit.SHARE,
    lambda basis: _best_share(basis),
    Resample(Number(lambda sample: sample.best is not None and not sample.interpreted and sample.best.low > 1)),
    places={Place.TEXT: 3, Place.PAGE: 3, Place.RANKING: 1},
    optional=True,
    legend=f"correct and faster than {_BEST}",
    footnote=f"Best library: {_BEST}.",
)
BEST_SPEEDUP: Final = Score(
    "speedup (best library)",
    "speedup (best library)",
    Unit.RATIO,
    lambda basis: basis.best_speedup,
    Resample(
        Number(lambda sample: math.log(sample.best.point) if sample.best else None, missing=None), Over.GEOMETRIC_MEAN
    ),
    places={Place.TEXT: 4, Place.PAGE: 4, Place.RANKING: 3},
    of_correct=True,
    optional=True,
)


def _best_share(basis: Basis) -> float | None:
    compared = any(each.has_packages for each in basis.scored)
    return None if basis.interpreted or not compared else count(BEST_FAST, basis.scored) / len(basis.scored)


LOG_SPEEDUP: Final = Number(lambda sample: math.log(sample.library.point) if sample.library else None, missing=None)


def _roofline(basis: Basis) -> float | None:
    known = [basis.rooflines[problem.id] for problem in basis.problems if problem.id in basis.rooflines]
    return geometric_mean(known) if known else None


def _usd_per_solved(basis: Basis) -> float | None:
    cost = basis.cost
    return cost.usd / cost.solved if cost and cost.usd is not None and cost.solved else None


CORRECT: Final = _share(
    "correct",
    lambda sample: sample.correct,
    {
        Place.COUNTED: 1,
        Place.TERMINAL: 1,
        Place.TERMINAL_SAMPLES: 1,
        Place.TEXT: 1,
        Place.PAGE: 1,
        Place.SUMMARY: 1,
        Place.ROUNDS: 1,
        Place.COMPARED: 1,
        Place.RANKING: 2,
        Place.RANK: 2,
    },
    heads={Place.COUNTED: "correct\n= fast_0"},
    counted=True,
)
COMPILED: Final = _share("compiled", lambda sample: sample.compiled, {Place.TERMINAL: 5, Place.TEXT: 6})
REJECTED: Final = _share(
    "rejected",
    lambda sample: sample.rejected,
    {Place.TERMINAL: 6, Place.TERMINAL_SAMPLES: 6, Place.TEXT: 7},
)
SPEEDUP: Final = Score(
    "speedup",
    "speedup",
    Unit.RATIO,
    lambda basis: basis.speedup.point if basis.speedup else None,
    Resample(LOG_SPEEDUP, Over.GEOMETRIC_MEAN),
    clock=lambda basis: (basis.speedup.low, basis.speedup.high) if basis.speedup else None,
    places={
        Place.COUNTED: 4,
        Place.TERMINAL: 3,
        Place.TERMINAL_SAMPLES: 3,
        Place.TEXT: 4,
        Place.PAGE: 4,
        Place.SUMMARY: 3,
        Place.COMPARED: 5,
        Place.RANKING: 3,
    },
    heads={
        Place.COUNTED: "geometric\nmean",
        **dict.fromkeys((Place.PAGE, Place.SUMMARY), "geometric mean"),
    },
    of_correct=True,
    legend="geometric mean of the correct ones",
)
MEDIAN: Final = Score(
    "median speedup",
    "median",
    Unit.RATIO,
    lambda basis: median([each.point for each in basis.speedups]) if basis.speedups else None,
    Resample(LOG_SPEEDUP, Over.MEDIAN),
    places={Place.TEXT: 4, Place.PAGE: 4, Place.COMPARED: 6},
    heads={Place.PAGE: "median speedup"},
    of_correct=True,
    legend="the middle one of them",
)
OVER_ALL: Final = Score(
    "speedup over all",
    "over all",
    Unit.RATIO,
    lambda basis: over_all(basis.problems, basis.scored),
    Resample(Number(Scored.log_over_all, missing=math.log(CLAMP[0])), Over.GEOMETRIC_MEAN),
    places={
        Place.TERMINAL: 4,
        Place.TERMINAL_SAMPLES: 4,
        Place.TEXT: 5,
        Place.PAGE: 5,
        Place.COMPARED: 4,
        Place.RANK: 3,
    },
    heads={Place.COMPARED: "speedup over all"},
    legend="a failure counts as 1/1000",
    footnote="Over all: the geometric mean where a failure counts as 1/1000.",
)
CLOCK_LOW: Final = Score(
    "speedup clock low",
    "clock low",
    Unit.RATIO,
    lambda basis: basis.speedup.low if basis.speedup else None,
    of_correct=True,
)
CLOCK_HIGH: Final = Score(
    "speedup clock high",
    "clock high",
    Unit.RATIO,
    lambda basis: basis.speedup.high if basis.speedup else None,
    of_correct=True,
)
FALLBACK: Final = Score(
    "speedup against fallback",
    "against fallback",
    Unit.RATIO,
    lambda basis: basis.fallback_speedup.point if basis.fallback_speedup else None,
    places={Place.COUNTED: 5, Place.PAGE: 8},
    heads={Place.COUNTED: "against\nfallback"},
    of_correct=True,
    over_sources=False,
    optional=True,
    in_data=False,
)
ROOFLINE: Final = Score("roofline share", "roofline", Unit.SHARE, _roofline, places={Place.TEXT: 10})
USD: Final = Score("usd", "$", Unit.USD, lambda basis: basis.cost.usd if basis.cost else None, timed=False)
USD_PER_SOLVED: Final = Score(
    "usd per solved",
    "$ per solved",
    Unit.USD,
    _usd_per_solved,
    places={Place.TEXT: 11, Place.PAGE: 7},
    heads={Place.PAGE: "per solved problem"},
    timed=False,
    optional=True,
)


@functools.cache
def all_scores(thresholds: tuple[float, ...] = (1.0,), ks: tuple[int, ...] = ()) -> tuple[Score, ...]:
    """The whole table in the order of CSV, with fast_p at each of ``thresholds`` and the best of each of ``ks``."""
    return (
        *(CORRECT, COMPILED, REJECTED),
        *(fast(p, by_point=by_point) for p in thresholds for by_point in (False, True)),
        *(BEST_FAST, SPEEDUP, BEST_SPEEDUP, MEDIAN, OVER_ALL, CLOCK_LOW, CLOCK_HIGH),
        *(best_of(k, CORRECT) for k in ks),
        *(best_of(k, fast(1.0)) for k in ks if 1.0 in thresholds),
        *(FALLBACK, ROOFLINE, *(each(p) for p in SOL for each in (sol, library_sol)), *map(record, RECORD)),
        *(USD, USD_PER_SOLVED),
    )


SCORES: Final = all_scores()
"""Those that every row can have."""


def score_of(name: str) -> Score:
    """The score of this name. Raises KeyError."""
    return {score.name: score for score in SCORES}[name]


def scores_in(place: Place, ks: tuple[int, ...] = ()) -> tuple[Score, ...]:
    """The scores of a table, in its order."""
    shown = (score for score in all_scores(ks=ks) if place in score.places)
    return tuple(sorted(shown, key=lambda score: score.places[place]))
