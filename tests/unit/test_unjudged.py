"""Results of candidates that no referee has judged say as much about problem and candidate as all others."""

from __future__ import annotations

import hashlib

import pytest

from kgbench.core.details.absence import Fault, HarnessTrouble
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import problems_dir
from kgbench.harness.machine.settings import Job
from kgbench.harness.session.retry import without_evaluation
from kgbench.problem.registry import load_problem

VIEW = load_problem(problems_dir() / "aten" / "t.yaml")


@pytest.mark.parametrize(
    ("source", "digest"), [("def t(): ...", hashlib.sha256(b"def t(): ...").hexdigest()), (None, "")]
)
def test_they_name_problem_candidate_device_and_round(source: str | None, digest: str) -> None:
    job = Job(VIEW, "m", sample=3, source=source, round=2)
    result = without_evaluation(job, Outcome.HARNESS_ERROR, HarnessTrouble(Fault.LOST, "the referee is gone"), "cuda")
    assert result.key == ("aten/t", "m", 3, 2)
    assert (result.source, result.kind, result.device) == ("aten", "view", "cuda")
    assert (result.problem_sha256, result.candidate_sha256) == (VIEW.sha256, digest)
    assert (result.outcome, result.reason) == (Outcome.HARNESS_ERROR, "the referee is gone")
