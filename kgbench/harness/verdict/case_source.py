"""The cases that decide about an overload, and those that are judged again."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from kgbench.core.kinds import DeviceKind, Phase
from kgbench.problem.cases import Case, OtherValues, expand_cases
from kgbench.problem.model import Overload

LEAST_RECHECKS: Final = 12
"""Re-checks per overload after every case passed: a secret number from this to twice as many, the latter excluded."""
OTHER_VALUES: Final = 3
"""Most value sets of check cases in which one timed case is re-checked."""
COSTLY_RECHECKS: Final = 3
"""The same as ``LEAST_RECHECKS`` where every call is costly."""
COSTLY_OTHER_VALUES: Final = 1
"""The same as ``OTHER_VALUES`` for a costly call."""


class CaseSource:
    """The cases that an overload is judged by."""

    def all_of(self, overload: Overload, device_kind: DeviceKind, memory_gb: float, secret: str) -> list[Case]:
        """Check, fuzz and bench cases, in the order in which they are judged."""
        return expand_cases(overload, device_kind, memory_gb, secret)

    def rechecks(
        self, cases: list[Case], other_values: OtherValues, choose: random.Random, is_costly: Callable[[Case], bool]
    ) -> list[Case]:
        """Calls that are judged again once all cases are correct, in secret number and order.

        Timed shapes are repeated with values of other value sets, where check cases have those for smaller shapes.
        Otherwise a kernel that recognises timed shapes could be careless there. Of calls that are costly, which judging
        takes seconds for, fewer are repeated.
        """
        bench = [case for case in cases if case.phase == Phase.BENCH]
        again = list(bench)
        for case in bench:
            others = other_values.of(case)
            most = COSTLY_OTHER_VALUES if is_costly(case) else OTHER_VALUES
            again += choose.sample(others, min(len(others), most)) or [case]
        costly = [case for case in cases if is_costly(case)]
        cheap = [case for case in cases if not is_costly(case)]
        least = LEAST_RECHECKS if cheap else COSTLY_RECHECKS
        again += [choose.choice(cheap or costly) for _ in range(least + choose.randrange(least))]
        if cheap and costly:
            again += [choose.choice(costly) for _ in range(choose.randrange(COSTLY_RECHECKS))]
        choose.shuffle(again)
        return again


ALL_CASES: Final = CaseSource()
"""The source of every candidate's cases."""
