"""What an agent is told while it practises comes from other inputs than any verdict's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kgbench.harness.session.session import Job, Session
from kgbench.problem.registry import load_problem

pytestmark = pytest.mark.torch

TELLS = """\
calls = []


def silu(self):
    calls.append((tuple(self.shape), self.double().sum().item() if self.numel() else 0.0))
    if self.numel() > 4:
        raise ValueError(f"seen {calls}")
    return self * (1 / (1 + (-self.double()).exp())).to(self.dtype)
"""


def seen(session: Session, path: Path, *, model: str, sample: int = 0, round: int = 0, practice: bool = False) -> str:
    """Values that a candidate's first call with more than four elements had."""
    job = Job(load_problem(path), model, sample, TELLS, round=round, practice=practice)
    result = session.evaluate(job)
    found = re.search(r"seen (\[.*\])", f"{result.reason}\n{result.log_tail}")
    assert found, result
    return found[1]


def test_practice_has_values_of_its_own(session: Session, problem_path: Path) -> None:
    path = problem_path / "aten/silu.yaml"
    verdict = seen(session, path, model="m")
    assert seen(session, path, model="other", sample=3) == verdict, "a problem's first call is alike for all"
    practice = seen(session, path, model="m/practice/0/0", practice=True)
    assert practice != verdict
    assert seen(session, path, model="m") == verdict, "and the referee keeps the two apart"
