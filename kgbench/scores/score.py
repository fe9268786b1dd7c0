"""What a score is: one number of a row of problems, with its unit, where it is printed, and how it is drawn again.

The scores there are stand in ``table.py``. No numpy here: what is drawn again is computed in ``bootstrap.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from kgbench.core.types import Result
from kgbench.scores.costs import Cost
from kgbench.scores.samples import OfProblem, Scored, Selected, any_interpreted, samples_of
from kgbench.scores.speedups import Estimate, geometric_mean, mean_estimate


class Unit(StrEnum):
    SHARE = "share"
    """A number from 0 to 1."""
    RATIO = "ratio"
    """Library time / kernel time."""
    USD = "usd"


class Over(StrEnum):
    """How the numbers of problems become one. Problems without a number are left out."""

    MEAN = "mean"
    GEOMETRIC_MEAN = "geometric mean"
    """The exponential of the mean of logarithms."""
    MEDIAN = "median"
    """The same; of two in the middle the geometric mean."""


class Place(StrEnum):
    """Where scores stand side by side. CSV and frames for pandas have all of them, in the order of ``SCORES``."""

    COUNTED = "counted"
    """The first table of a terminal, with the clock's intervals."""
    TERMINAL = "terminal"
    """The second one, with bootstrap intervals, of rows with one sample of each problem."""
    TERMINAL_SAMPLES = "terminal, samples"
    """The same of rows with several samples."""
    TEXT = "text"
    """Markdown and LaTeX."""
    PAGE = "page"
    """The headline of a page."""
    SUMMARY = "summary"
    """The summary of a step of GitHub Actions."""
    ROUNDS = "rounds"
    """Shares after so many rounds."""
    COMPARED = "compared"
    """Two runs side by side."""
    RANKING = "ranking"
    """The columns of a leaderboard."""
    RANK = "rank"
    """What the order of a leaderboard goes by."""


@dataclass(frozen=True)
class Basis:
    """What the scores of a row are computed from."""

    problems: Sequence[Selected]
    scored: Sequence[OfProblem]
    """The samples of each problem, in the same order."""
    cost: Cost | None = None
    rooflines: Mapping[str, float] = field(default_factory=dict)
    """Share of the device's measured peak by problem, of those where it is known."""

    @classmethod
    def of(
        cls,
        problems: Sequence[Selected],
        best: Mapping[str, Sequence[Result]],
        cost: Cost | None = None,
        rooflines: Mapping[str, float] | None = None,
    ) -> Basis:
        """Of the problems that count; ``best`` has the results by problem, of each sample's best round."""
        pairs = [(problem, samples_of(problem, best.get(problem.id, ()))) for problem in problems]
        known = [(problem, samples) for problem, samples in pairs if samples.asked]
        return cls([problem for problem, _ in known], [samples for _, samples in known], cost, rooflines or {})

    @cached_property
    def interpreted(self) -> bool:
        """A correct kernel ran in Triton's interpreter, so speed means nothing."""
        return any_interpreted(self.scored)

    @cached_property
    def speedups(self) -> list[Estimate]:
        """Of each problem that has one the geometric mean of its correct samples; none where speed means nothing."""
        return self._means([[each.library for each in of_problem.samples] for of_problem in self.scored])

    @cached_property
    def speedup(self) -> Estimate | None:
        """Their geometric mean: each problem has equal weight."""
        return mean_estimate(self.speedups) if self.speedups else None

    @cached_property
    def best_speedup(self) -> float | None:
        """The same against the best library; None where no package is compared with."""
        compared = any(each.has_packages for each in self.scored)
        means = self._means([[each.best for each in of_problem.samples] for of_problem in self.scored])
        return mean_estimate(means).point if compared and means else None

    @cached_property
    def fallback_speedup(self) -> Estimate | None:
        """The same against the fallback."""
        means = self._means([[each.fallback for each in of_problem.samples] for of_problem in self.scored])
        return mean_estimate(means) if means else None

    def _means(self, estimates: Iterable[Sequence[Estimate | None]]) -> list[Estimate]:
        known = ([each for each in of_problem if each] for of_problem in estimates)
        return [] if self.interpreted else [mean_estimate(of_problem) for of_problem in known if of_problem]


@dataclass(frozen=True, eq=False)
class Number:
    """What one sample contributes to a score: 0 or 1 to a share, its logarithm to a ratio."""

    of: Callable[[Scored], float | None]
    """None where the sample has none."""
    missing: float | None = 0.0
    """The value for a requested sample that has no result."""
    of_problem: Callable[[OfProblem], bool] = lambda each: True
    """Whether a problem counts; one that does not is left out, with all its samples."""


@dataclass(frozen=True)
class Resample:
    """How a draw of the bootstrap has a score: a problem's numbers are averaged first, or the best of k counts."""

    number: Number
    over: Over = Over.MEAN
    best_of: int | None = None


@dataclass(frozen=True, eq=False)
class Score:
    """One number of a row of problems."""

    name: str
    """The score's name in JSON and CSV."""
    head: str
    """The column's head in tables."""
    unit: Unit
    value: Callable[[Basis], float | None]
    """None where it is not known or means nothing."""
    resample: Resample | None = None
    """None where it has no bootstrap interval."""
    clock: Callable[[Basis], tuple[float, float] | None] | None = None
    """The ends of its interval by the clock's noise alone; None where it has none."""
    places: Mapping[Place, int] = field(default_factory=dict)
    """The tables that have it, with its place there: smaller numbers stand further left, or above."""
    heads: Mapping[Place, str] = field(default_factory=dict)
    """Its head in tables where that is another one."""
    counted: bool = False
    """The first table of a terminal says above it how many problems that is: the field of this name of ``Row``."""
    timed: bool = True
    """It says something of speed, so it is compared over problems of kind compute only."""
    of_correct: bool = False
    """It is over the correct problems that were timed. Rows are compared over those that are so in both, and a mean
    over sources leaves out a source without any."""
    over_sources: bool = True
    """The macro average has it."""
    optional: bool = False
    """Tables that print a dash for what is not known leave it out instead."""
    in_data: bool = True
    """CSV and frames have it."""
    legend: str = ""
    """What Markdown and LaTeX say of it below the table."""
    footnote: str = ""
    """What a terminal says of it below the tables, where a row has it."""

    def __post_init__(self) -> None:
        if Place.COMPARED in self.places and self.resample is None:
            raise ValueError(f"score '{self.name}': one that runs are compared by needs resample, for its interval")

    def over_the_sources(self, of_sources: Sequence[float | None], of_all: float | None) -> float | None:
        """Its value in the macro average, given those of the sources and that of all problems together."""
        known = [value for value in of_sources if value is not None]
        if not self.over_sources or of_all is None or not known:
            return None
        if self.unit is Unit.USD:
            return of_all
        if len(known) < len(of_sources) and not self.of_correct:
            return None
        return geometric_mean(known) if self.unit is Unit.RATIO else sum(known) / len(known)

    def head_in(self, place: Place) -> str:
        return self.heads.get(place, self.head)
