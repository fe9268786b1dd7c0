"""Every mutant and every adversary gets the outcome its header names, on the CPU, from real processes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kgbench.core.paths import examples_dir
from kgbench.core.types import Outcome
from kgbench.harness.machine import processes
from kgbench.harness.session.session import Job, Session
from tests.harness.candidates import KnownCandidate, adversaries, mutants

pytestmark = pytest.mark.torch


def judge(session: Session, known: KnownCandidate, problems: Path) -> str:
    job = Job(str(problems / f"{known.problem_id}.yaml"), known.problem_id, "test", source=known.path.read_text())
    result = session.evaluate(job)
    assert result.outcome in known.outcomes, f"{result.outcome}: {result.reason}\n{result.log_tail}"
    return result.reason


@pytest.mark.parametrize("known", mutants(), ids=lambda known: known.id)
def test_mutant_is_caught(session: Session, known: KnownCandidate, problem_path: Path) -> None:
    assert judge(session, known, problem_path)


@pytest.mark.parametrize("known", [k for k in adversaries() if k.device != "cuda"], ids=lambda known: known.id)
def test_adversary_gets_its_outcome_and_leaves_nothing(
    impatient: Session, known: KnownCandidate, problem_path: Path
) -> None:
    before = _below_this_process()
    judge(impatient, known, problem_path)
    # The problem's library worker and its keeper stay for the problem's next candidate; a keeper may still be ending.
    deadline = time.monotonic() + 5.0
    while len(left := _below_this_process() - before) > 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(left) <= 2, [Path(f"/proc/{pid}/cmdline").read_text() for pid in left]


def test_the_next_candidate_is_unaffected(impatient: Session, problem_path: Path) -> None:
    job = Job(str(problem_path / "aten/t.yaml"), "aten/t", "test", source=(examples_dir() / "aten/t.py").read_text())
    assert impatient.evaluate(job).outcome is Outcome.PASSED


def _below_this_process() -> set[int]:
    return set(processes.descendants(os.getpid()))
