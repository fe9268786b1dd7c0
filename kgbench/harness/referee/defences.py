"""What a referee judges with. The defaults are the only ones that ever decide a candidate's result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kgbench.core.details.failures import PhysicalBound
from kgbench.core.types import Timing
from kgbench.harness.attribution.observed import Attribution
from kgbench.harness.clock.bench import STRICT_BENCH, BenchParts
from kgbench.harness.clock.physical_bound import Work, impossible
from kgbench.harness.machine.settings import RefereeSettings
from kgbench.harness.machine.timing_lock import TimingLock
from kgbench.harness.referee.confinement import Confinement
from kgbench.harness.sandbox.plan import Plan
from kgbench.harness.verdict.case_source import ALL_CASES, CaseSource
from kgbench.harness.verdict.judge import STRICT_JUDGE, JudgeParts
from kgbench.harness.workers.handle import CANDIDATE_STUB
from kgbench.problem.model import Problem


@dataclass(frozen=True)
class Defences:
    """The collaborators of one evaluation."""

    cases: CaseSource = ALL_CASES
    judge: JudgeParts = STRICT_JUDGE
    bench: BenchParts = STRICT_BENCH
    stub: str = CANDIDATE_STUB
    """Dotted path of what answers requests in the candidate's worker."""
    confine: Callable[[RefereeSettings, Plan], Confinement] = Confinement.of
    attribution: Callable[[Problem, bool, str], Attribution | None] = Attribution
    """Watches whose work it is: of the problem's calls, on a GPU or not, by a candidate of this text."""
    was_restless: Callable[[TimingLock], str] = TimingLock.was_restless
    """Says whether the candidate ran on in another's turn."""
    impossible: Callable[[Work, Timing, Mapping[str, Any]], PhysicalBound | None] = impossible
    """Which bound a time is below that cannot be true, as ``physical_bound.impossible``."""


STRICT: Final = Defences()
"""What every candidate is judged with."""
