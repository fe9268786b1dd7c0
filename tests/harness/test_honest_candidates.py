"""Right kernels that do odd things pass under the strict policy, and nothing is held against them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.core.outcomes import Outcome
from kgbench.core.paths import examples_dir
from kgbench.harness.session.session import Job, Session
from kgbench.harness.verdict.output_specs import OutputSpec
from kgbench.problem.registry import load_problem
from tests.harness.candidates import KnownCandidate, honest

pytestmark = pytest.mark.torch


@pytest.mark.in_turn("kgbench/policy/", "kgbench/harness/attribution/", "tests/candidates/honest/", turns=3)
@pytest.mark.parametrize("known", [k for k in honest() if k.device != "cuda"], ids=lambda known: known.id)
def test_no_honest_kernel_is_told_that_others_do_its_work(
    strict: Session, known: KnownCandidate, problem_path: Path
) -> None:
    path = problem_path / f"{known.problem_id}.yaml"
    result = strict.evaluate(Job(load_problem(path), "test", source=known.text))
    assert result.outcome is Outcome.PASSED, f"{result.reason}\n{result.log_tail}"
    assert [each for each in result.evidence if not each.allowed] == []
    assert result.policy == "strict"


def test_a_file_may_begin_with_a_byte_order_mark(strict: Session, problem_path: Path) -> None:
    text = (examples_dir() / "aten/t.py").read_text(encoding="utf-8")
    job = Job(load_problem(problem_path / "aten/t.yaml"), "test", source=f"\ufeff{text}")
    result = strict.evaluate(job)
    assert result.outcome is Outcome.PASSED, f"{result.reason}\n{result.log_tail}"


def test_a_stride_that_leads_nowhere_is_anybodys_choice() -> None:
    view = OutputSpec("float32", (1, 7, 3), strides=(21, 3, 1), offset=0, base="self")
    assert view.has_strides([0, 3, 1])
    assert not view.has_strides([21, 1, 7])
    assert not view.has_strides([3, 1])
