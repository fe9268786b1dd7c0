"""Kernels that somebody got wrong: every one is found wrong, and by its mistake, not because it does not run.

A twentieth of them is run, always the same; KGBENCH_MUTANTS=1 runs all of them.
"""

from __future__ import annotations

import ast
import hashlib
import os
from pathlib import Path

import pytest

from kgbench.core.types import Outcome
from kgbench.harness.session.session import Job, Session
from kgbench.problem.registry import Registry, load_problem
from tests.harness.candidates import KnownCandidate, wrong

WRONG = wrong()
USUAL_SHARE = 0.05
SHARE = float(os.environ.get("KGBENCH_MUTANTS", USUAL_SHARE))
SHOWN = {Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE, Outcome.INPUT_CHANGED, Outcome.REJECTED}
"""What a kernel that runs and is wrong may get."""
PATHS = Registry().paths


def chosen(known: KnownCandidate) -> bool:
    """By its own name, so that a new file moves no other one in or out."""
    return int(hashlib.sha256(known.id.encode()).hexdigest(), 16) % 1000 < SHARE * 1000


@pytest.mark.torch
@pytest.mark.parametrize("known", [each for each in WRONG if chosen(each)], ids=lambda known: known.id)
def test_a_wrong_kernel_is_found(session: Session, known: KnownCandidate, problem_path: Path) -> None:
    job = Job(str(problem_path / f"{known.problem_id}.yaml"), known.problem_id, "test", source=known.path.read_text())
    result = session.evaluate(job)
    assert result.outcome in known.outcomes, f"{result.outcome}: {result.reason}\n{result.log_tail}"
    passed = [case.id for case in result.cases if case.outcome is Outcome.PASSED]
    assert bool(passed) is known.right_somewhere, f"right in {passed}; {result.reason}"


def test_there_are_many_of_many_problems() -> None:
    assert len(WRONG) >= 150
    assert len({known.problem_id for known in WRONG}) >= 100
    sources = {known.problem_id.partition("/")[0] for known in WRONG}
    assert sources == {"aten", "cublas", "vllm"}
    if SHARE == USUAL_SHARE:
        assert 5 <= sum(map(chosen, WRONG)) <= 30


@pytest.mark.parametrize("known", WRONG, ids=lambda known: known.id)
def test_a_wrong_kernel_is_whole(known: KnownCandidate) -> None:
    """It parses, says what it breaks, defines an entry of its problem and no wanted outcome is that it does not run."""
    assert known.breaks.endswith(".")
    assert SHOWN.intersection(known.outcomes)
    # One that reads beyond its input may crash in place of reading something wrong.
    assert set(known.outcomes) <= SHOWN | {Outcome.CRASHED}
    assert known.problem_id in PATHS
    defined = set()
    for node in ast.parse(known.path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.Assign):
            defined.update(target.id for target in node.targets if isinstance(target, ast.Name))
    entries = {overload.signature.name for overload in load_problem(PATHS[known.problem_id]).overloads}
    assert defined & (entries | {known.problem_id.partition("/")[2]})
