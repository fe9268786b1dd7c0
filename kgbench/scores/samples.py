"""A problem's samples: which results count, and how many of them are correct, and fast.

* A sample of several rounds counts as its best one: correct before not correct; of correct ones the one with the higher
  lower end of its interval, else the earlier; of the others the last.
* A sample with an outcome that does not count (``Facts.counts``) was as good as not asked for; a problem of which none
  counts stands in no denominator.
* A share of a problem with several samples is the mean over the samples *asked for*: one without a result counts as not
  correct. pass@k is the chance that of k samples drawn without replacement one is correct, 1 - C(n-c, k) / C(n, k) with
  c of n samples right (Chen et al., 2021, arXiv:2107.03374), averaged over problems; fast_p@k the same with c samples
  fast at p. k goes up to the smallest n of the row's problems. Shares without a k are those at k = 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kgbench.core.kinds import Kind
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.scores.speedups import (
    CLAMP,
    Estimate,
    Faster,
    against_best,
    against_record,
    case_key,
    geometric_mean,
    speedup,
    timed_cases,
)


@dataclass(frozen=True)
class Selected:
    """A problem the run was asked for: the unit of the denominator."""

    id: str
    kind: Kind
    own: bool = False
    """The problem comes from the user's own folder, so it is not one of the benchmark's declared problems."""
    overloads: tuple[str, ...] = ()
    """Names of the required ones."""
    samples: int = 1
    """Candidates asked for."""
    category: str = ""
    """Category as the problem file says; empty where that is not known."""
    least_us: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Least time in µs of each timed case that takes longer than an empty launch (``light.py``), by its key; empty
    where there is none or where that is not known."""
    record_us: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Time in µs of the fastest verified kernel so far in each timed case on the run's device, by the case's key; empty
    where there is none."""
    faster: Mapping[str, Faster] | None = field(default=None, compare=False)
    """The fastest package of each timed case in which one is faster than the library, by the case's key; None where
    no package is compared with."""

    @property
    def source(self) -> str:
        return self.id.split("/", 1)[0]


@dataclass(frozen=True)
class Scored:
    """What of a result enters shares and means, computed once for all p."""

    correct: bool
    compiled: bool
    rejected: bool
    interpreted: bool
    library: Estimate | None
    fallback: Estimate | None
    light: float | None = None
    """Share of the speed of light: least time / time, geometric mean over the cases of ``Selected.least_us``. None
    where it is not correct, or where one of these cases has no time."""
    record: float | None = None
    """Record's time / time, the lower end (``against_record``); None as above."""
    best: Estimate | None = None
    """Speedup over the best library (``against_best``); None as above, or where no package is compared with."""
    library_light: float | None = None
    """As ``light``, of the library beside it, whether the kernel is correct or not."""

    @classmethod
    def of(cls, result: Result, problem: Selected | None = None) -> Scored:
        right = result.outcome is Outcome.PASSED
        rejected = result.outcome is Outcome.REJECTED
        library, fallback = speedup(result), speedup(result, "fallback")
        light = light_share(result, problem.least_us) if problem else None
        record = against_record(result, problem.record_us) if problem else None
        low = record.low if record else None
        best = against_best(result, problem.faster) if problem and problem.faster is not None else None
        of_library = library_share(result, problem.least_us) if problem else None
        compiled = is_compiled(result)
        return cls(right, compiled, rejected, result.interpreted, library, fallback, light, low, best, of_library)

    def log_over_all(self) -> float:
        """Logarithm of the speedup; the lowest there is where it is not correct or has none."""
        return math.log(self.library.point if self.library and not self.interpreted else CLAMP[0])

    def is_fast(self, p: float, *, by_point: bool = False) -> bool:
        if not self.correct or p == 0:
            return self.correct
        if self.library is None or self.interpreted:
            return False
        return (self.library.point if by_point else self.library.low) > p


@dataclass(frozen=True)
class OfProblem:
    """A problem's samples: how many there should be, and those that have a result."""

    id: str
    asked: int
    """0 where none counts: the problem stands in no denominator."""
    samples: tuple[Scored, ...]
    bounded: bool = False
    """A timed case of it has a least time that is longer than an empty launch."""
    has_record: bool = False
    has_packages: bool = False
    """Packages are compared with."""
    counts: dict[Callable[[Scored], float | None], int] = field(default_factory=dict, compare=False)
    """How many samples count, by what is asked of them; filled as it is asked for."""

    def count(self, counts: Callable[[Scored], float | None]) -> int:
        """How many samples there are of which ``counts`` is true."""
        if counts not in self.counts:
            self.counts[counts] = sum(bool(counts(each)) for each in self.samples)
        return self.counts[counts]

    def logs_over_all(self) -> list[float]:
        """Of every sample asked for; one without a result is a failure."""
        logs = [each.log_over_all() for each in self.samples]
        return logs + [math.log(CLAMP[0])] * (self.asked - len(logs))


def is_fast(result: Result, p: float, *, by_point: bool = False) -> bool:
    """Right and faster than p times the library; p = 0 asks for right alone."""
    return Scored.of(result).is_fast(p, by_point=by_point)


def is_compiled(result: Result) -> bool:
    """It came as far as being called: a case of it has a verdict, and none is that it cannot be compiled."""
    called = any(case.outcome.facts.called for case in result.cases)
    return result.outcome is Outcome.PASSED or (called and result.outcome is not Outcome.COMPILE_ERROR)


def is_submitted(result: Result) -> bool:
    """There was code to judge."""
    return result.outcome.facts.has_code


def library_ran(result: Result) -> bool:
    return result.library is not None and bool(result.library.name) and not result.library.reason


def newest(results: Iterable[Result]) -> list[Result]:
    """One result per problem, model, sample and round: the last one, since a later line replaces an earlier one."""
    return list({result.key: result for result in results}.values())


def latest(results: Iterable[Result]) -> list[Result]:
    """One result per problem, model and sample: that of its best round."""
    by_key: dict[tuple[str, str, int], list[Result]] = {}
    for result in newest(results):
        by_key.setdefault((result.problem, result.model, result.sample), []).append(result)
    return [_best(rounds) for rounds in by_key.values()]


def after_round(results: Iterable[Result], round: int) -> list[Result]:
    """As ``latest``, had the run ended after that round; rounds count from 0."""
    return latest(result for result in results if result.round <= round)


def _best(rounds: Sequence[Result]) -> Result:
    """Of one sample's results, by the rule of the module's text."""
    if len(rounds) == 1:
        return rounds[0]
    ordered = sorted(rounds, key=lambda result: result.round)
    right = [result for result in ordered if result.outcome is Outcome.PASSED]
    return max(right, key=_speed_order) if right else ordered[-1]  # max takes the first of equals


def _speed_order(result: Result) -> tuple[float, float]:
    """Lower ends against library and fallback; speed in Triton's interpreter means nothing."""
    ends = (speedup(result, against) for against in ("library", "fallback"))
    library, fallback = (end.low if end and not result.interpreted else 0.0 for end in ends)
    return library, fallback


def samples_of(problem: Selected, of_problem: Sequence[Result]) -> OfProblem:
    """Those that count: what could not be judged here was as good as not asked for."""
    counted = [result for result in of_problem if result.outcome.facts.counts]
    asked = max(problem.samples, len(of_problem)) - (len(of_problem) - len(counted))
    samples = tuple(Scored.of(result, problem) for result in counted)
    with_packages = problem.faster is not None
    return OfProblem(problem.id, asked, samples, bool(problem.least_us), bool(problem.record_us), with_packages)


def light_share(result: Result, least_us: Mapping[str, float]) -> float | None:
    """``Scored.light`` of a result."""
    if not least_us or result.outcome is not Outcome.PASSED or result.interpreted:
        return None
    times = {case_key(case.overload, case.id): case.timing.candidate_us for case in timed_cases(result) if case.timing}
    return _share_of(times, least_us)


def library_share(result: Result, least_us: Mapping[str, float]) -> float | None:
    """``Scored.library_light`` of a result."""
    if not least_us or result.interpreted:
        return None
    timed = [(case, case.timing) for case in result.cases if case.timing and case.timing.against == "library"]
    return _share_of({case_key(case.overload, case.id): timing.library_us for case, timing in timed}, least_us)


def _share_of(times: Mapping[str, float], least_us: Mapping[str, float]) -> float | None:
    """Least time / time, geometric mean over all cases that have a least time; None where one has no time."""
    shares = [least / us for case, least in least_us.items() if (us := times.get(case, 0.0)) > 0]
    return geometric_mean(shares) if shares and len(shares) == len(least_us) else None


def by_problem(results: Iterable[Result]) -> dict[str, list[Result]]:
    by_problem: dict[str, list[Result]] = {}
    for result in results:
        by_problem.setdefault(result.problem, []).append(result)
    return by_problem


def any_interpreted(scored: Iterable[OfProblem]) -> bool:
    return any(each.correct and each.interpreted for of_problem in scored for each in of_problem.samples)


def over_all(problems: Sequence[Selected], scored: Sequence[OfProblem]) -> float | None:
    """``Row.speedup_over_all``: a failure counts as ``CLAMP[0]``. None where nothing is timed."""
    right = [each for of_problem in scored for each in of_problem.samples if each.correct]
    never_timed = bool(right) and all(each.library is None for each in right)
    if never_timed or any_interpreted(scored) or any(problem.kind != Kind.COMPUTE for problem in problems):
        return None
    return math.exp(math.fsum(math.fsum(each.logs_over_all()) / each.asked for each in scored) / len(scored))


def pass_at_k(n: int, c: int, k: int) -> float:
    """Chance that k of n samples, drawn without replacement, hold one of the c correct ones."""
    return c / n if k == 1 else 1 - math.comb(n - c, k) / math.comb(n, k)


def ks(samples: int) -> tuple[int, ...]:
    """1, 2, 5, 10, … up to the number of samples, and that itself; none for one sample."""
    steps = (digit * 10**power for power in range(len(str(samples))) for digit in (1, 2, 5))
    return tuple(sorted({k for k in steps if k <= samples} | {samples})) if samples > 1 else ()
