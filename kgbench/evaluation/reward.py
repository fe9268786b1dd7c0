"""Verdicts as rewards for reinforcement learning: ``Reward(evaluator)(problems, replies)``. Never imports torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final, Protocol

from kgbench.core.outcomes import Blame, Group, Outcome
from kgbench.core.types import Result
from kgbench.evaluation.evaluator import Checked
from kgbench.models.reply_kernels import code_for
from kgbench.problem.model import Problem
from kgbench.scores.speedups import speedup

_SLOWEST: Final = 1 / 8
"""Speedup up to which a correct kernel earns least."""
_FASTEST: Final = 4.0
"""Speedup from which on a correct kernel earns most."""


class Judge(Protocol):
    """The interface of ``kgbench.Evaluator``, for other judges."""

    @property
    def jobs(self) -> int:
        """How many checks run at once."""

    def problem(self, name: str) -> Problem:
        """Raises UsageError where there is none."""

    def check(self, problem: str, source: str) -> Checked:
        """The verdict on one kernel."""


@dataclass(frozen=True)
class Shaping:
    """The reward of each sort of outcome, from 0 to 1. What breaks the rules earns no more than an empty reply."""

    nothing: float = 0.0
    """Reward for a reply without code."""
    rejected: float = 0.0
    """Reward where it broke a rule, for example had a library do its work."""
    broken: float = 0.05
    """Reward where it does not compile, raises or crashes."""
    limit: float = 0.1
    """Reward where it runs out of time or memory."""
    wrong: float = 0.2
    """Reward where it runs and computes something else."""
    right: float = 0.5
    """Reward for a correct kernel at a speedup of 1/8 and below, or where nothing was timed."""
    fast: float = 1.0
    """Reward for a correct kernel with at least 4 times the library's speed."""

    def reward(self, result: Result) -> float | None:
        """The reward of one verdict; None where it says nothing about the kernel.

        Between 1/8 and 4 the reward rises with the logarithm of the lower end of the speedup's interval, so that noise
        earns nothing.
        """
        if result.outcome is Outcome.PASSED:
            return self.right + (self.fast - self.right) * _speed(result)
        if result.outcome.facts.blames is not Blame.CANDIDATE:
            return None
        by_group = {
            Group.NONE: self.nothing,
            Group.REJECTED: self.rejected,
            Group.BROKEN: self.broken,
            Group.LIMIT: self.limit,
            Group.WRONG: self.wrong,
        }
        return by_group[result.outcome.facts.group]


@dataclass(frozen=True)
class Rewarded:
    """One reply with its reward and the reason."""

    problem: str
    code: str | None
    """The kernel in the reply; None where there is none."""
    reward: float | None
    """None where nothing is known about the kernel: the judge failed, or this machine cannot run it."""
    outcome: Outcome
    speedup: float | None
    words: str
    """The reason, for logs; it names hidden sizes, so no policy may see it."""


class Reward:
    """Rewards of replies. May be called from many threads; the judge says how many kernels run at once.

    Args:
        judge: ``kgbench.Evaluator``, with the default policy ``strict``, or what has its interface.
        shaping: the reward of each sort of outcome.
    """

    def __init__(self, judge: Judge, shaping: Shaping = Shaping()) -> None:
        self._judge = judge
        self._shaping = shaping

    def __call__(self, problems: Sequence[str], replies: Sequence[str]) -> list[float]:
        """A number for each reply, in order. A reply of which nothing is known gets the mean of its problem's others,
        so that it moves no policy; 0.0 where there are none.
        """
        return self.filled(self.rewarded(problems, replies))

    @staticmethod
    def filled(found: Sequence[Rewarded]) -> list[float]:
        """The rewards, with the mean of a problem's others where one is not known."""
        known: dict[str, list[float]] = {}
        for each in found:
            if each.reward is not None:
                known.setdefault(each.problem, []).append(each.reward)
        means = {problem: math.fsum(values) / len(values) for problem, values in known.items()}
        return [means.get(each.problem, 0.0) if each.reward is None else each.reward for each in found]

    def rewarded(self, problems: Sequence[str], replies: Sequence[str]) -> list[Rewarded]:
        """Each reply with its verdict, in order. Kernels that a batch has twice are judged once.

        Raises ValueError where there are not as many problems as replies, UsageError for a problem that there is not.
        """
        if len(problems) != len(replies):
            raise ValueError(f"{len(problems)} problems for {len(replies)} replies; give each reply its problem")
        asked = [self.kernel(problem, reply) for problem, reply in zip(problems, replies, strict=True)]
        kernels = list(dict.fromkeys((each.problem, each.code) for each in asked if each.code is not None))
        with ThreadPoolExecutor(max(1, self._judge.jobs)) as pool:
            verdicts = dict(zip(kernels, pool.map(lambda kernel: self._judge.check(*kernel), kernels), strict=True))
        return [each if each.code is None else self.judged(each, verdicts[each.problem, each.code]) for each in asked]

    def kernel(self, problem: str, reply: str) -> Rewarded:
        """A reply before its kernel is judged; where it has none, its ``code`` is None and the reward is there.

        Raises UsageError for a problem that there is not.
        """
        found = code_for(self._judge.problem(problem), reply)
        return Rewarded(problem, found.code, self._shaping.nothing, Outcome.NO_CODE, None, found.why)

    def judged(self, asked: Rewarded, result: Checked) -> Rewarded:
        """The same with its kernel's verdict."""
        given = self._shaping.reward(result)
        return replace(asked, reward=given, outcome=result.outcome, speedup=result.speedup, words=result.reason)


def _speed(result: Result) -> float:
    """From 0 to 1 by the lower end of the speedup over the library, or over plain PyTorch where no library runs."""
    estimate = speedup(result) or speedup(result, "fallback")
    if estimate is None or result.interpreted:
        return 0.0
    share = math.log(estimate.low / _SLOWEST) / math.log(_FASTEST / _SLOWEST)
    return min(max(share, 0.0), 1.0)
