"""The cases that decide about an overload, and those that are judged again."""

from __future__ import annotations

import random
from typing import Final

from kgbench.core.kinds import DeviceKind, Phase
from kgbench.problem.cases import Case, OtherValues, expand_cases
from kgbench.problem.model import Overload

LEAST_RECHECKS: Final = 12
"""Re-checks per overload after every case passed: a secret number from this to twice as many, the latter excluded."""
OTHER_VALUES: Final = 3
"""Most value sets of check cases in which one timed case is re-checked."""


class CaseSource:
    """The cases that an overload is judged by."""

    def all_of(self, overload: Overload, device_kind: DeviceKind, memory_gb: float, secret: str) -> list[Case]:
        """Check, fuzz and bench cases, in the order in which they are judged."""
        return expand_cases(overload, device_kind, memory_gb, secret)

    def rechecks(self, cases: list[Case], other_values: OtherValues, choose: random.Random) -> list[Case]:
        """Calls that are judged again once all cases are correct, in secret number and order.

        Timed shapes are repeated with values of other value sets, where check cases have those for smaller shapes.
        Otherwise a kernel that recognises timed shapes could be careless there.
        """
        bench = [case for case in cases if case.phase == Phase.BENCH]
        again = list(bench)
        for case in bench:
            others = other_values.of(case)
            again += choose.sample(others, min(len(others), OTHER_VALUES)) or [case]
        again += [choose.choice(cases) for _ in range(LEAST_RECHECKS + choose.randrange(LEAST_RECHECKS))]
        choose.shuffle(again)
        return again


ALL_CASES: Final = CaseSource()
"""The source of every candidate's cases."""
