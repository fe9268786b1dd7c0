"""Kernels that ship are correct on a CPU: a tenth of those that are soon judged; ``benchmarks.corpus`` judges all."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from benchmarks.corpus import VERDICTS, examples, read
from kgbench.core.outcomes import Outcome
from kgbench.harness.session.session import Job, Session
from kgbench.problem.registry import load_problem
from tests.sampling import sample

pytestmark = pytest.mark.torch
MOST_S: Final = 6.0
"""Seconds of one core that the examples of a run take together, by their stored verdicts; no bound where all run."""


def of_this_run() -> list[str]:
    """Problems of this run whose examples passed on a CPU, the quickest first."""
    stored = read(VERDICTS)["cpu"]
    passed = {problem: each.seconds for problem, each in stored.items() if each.outcome == Outcome.PASSED}
    quickest = sorted((each for each in passed if each in sample()), key=passed.__getitem__)
    spent = accumulate(passed[each] for each in quickest)
    return [each for each, until in zip(quickest, spent, strict=True) if sample().share is None or until <= MOST_S]


@pytest.mark.parametrize("problem_id", of_this_run())
def test_an_example_is_correct(session: Session, problem_path: Path, problem_id: str) -> None:
    text = examples([problem_id])[problem_id]
    result = session.evaluate(Job(load_problem(problem_path / f"{problem_id}.yaml"), "test", source=text))
    assert result.outcome is Outcome.PASSED, f"{result.reason}\n{result.log_tail}"
