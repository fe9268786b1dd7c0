"""Results made by hand, for tests of what is computed from them and printed."""

from __future__ import annotations

from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Library, Result, Timing

LIBRARY = Library("cuBLAS 13.1.0")
NO_LIBRARY = Library("", reason="vLLM is not installed")
WIDTH = 1.02
"""Every interval below spans ratio / WIDTH to ratio * WIDTH unless it is said otherwise."""


def timing(ratio: float, *, launch_bound: bool = False, against: str = "library", width: float = WIDTH) -> Timing:
    return Timing(
        library_us=100.0,
        candidate_us=100.0,
        ratio=ratio,
        low=ratio / width,
        high=ratio * width,
        scored_by="window",
        launch_bound=launch_bound,
        queued=True,
        against=against,
    )


def bench(time: Timing | None, outcome: Outcome = Outcome.PASSED) -> CaseResult:
    return CaseResult("bench[0]", "", "bench", "float32", {}, outcome, timing=time)


def result(problem: str, *times: Timing | None, outcome: Outcome = Outcome.PASSED, **more: object) -> Result:
    fields = {"library": LIBRARY, "cases": tuple(bench(time) for time in times), **more}
    return Result(problem=problem, model="m", sample=0, outcome=outcome, **fields)  # type: ignore[arg-type]
