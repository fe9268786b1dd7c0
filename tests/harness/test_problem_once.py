"""A problem is read once: what becomes of its file meanwhile changes no verdict."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from kgbench.core.outcomes import Outcome  # noqa: E402
from kgbench.core.paths import problems_dir  # noqa: E402
from kgbench.harness.machine.settings import Deadlines, RefereeSettings  # noqa: E402
from kgbench.harness.referee.defences import STRICT  # noqa: E402
from kgbench.harness.referee.evaluation import Evaluation  # noqa: E402
from kgbench.harness.session.session import Job, Settings  # noqa: E402
from kgbench.problem.registry import load_problem  # noqa: E402
from tests.harness.sessions import SessionOf  # noqa: E402
from tests.harness.test_other_values import IN_FLOAT32, PROBLEM  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.timeout(120)]


def test_a_file_that_is_edited_during_a_run_does_not_change_it(session_of: SessionOf, tmp_path: Path) -> None:
    path = tmp_path / "mine/total.yaml"
    path.parent.mkdir()
    path.write_text(PROBLEM.replace("LIBRARY", "sum_in_float32"), encoding="utf-8")
    read = load_problem(path)
    with session_of(Settings(device="cpu", timing=False)) as session:
        for text in ("not a problem", PROBLEM.replace("exact_sum", "no_such_reference")):
            path.write_text(text, encoding="utf-8")
            result = session.evaluate(Job(read, "test", 0, IN_FLOAT32))
            assert result.outcome is Outcome.PASSED, result.reason
            assert result.problem_sha256 == read.sha256
        path.unlink()
        result = session.evaluate(Job(read, "test", 1, "def total(self):\n    return self.sum(0)\n"))
    assert result.outcome is Outcome.WRONG_SHAPE, result.reason


def test_checks_timing_and_watching_share_a_judge() -> None:
    problem = load_problem(problems_dir() / "aten/add.yaml")
    settings = RefereeSettings("cpu", "", "seed", Deadlines())
    evaluation = Evaluation(Job(problem, "test"), problem, settings, STRICT, torch.device("cpu"), time.monotonic, 0.0)
    judges = [evaluation.judge(overload) for overload in problem.judged]
    assert [evaluation.judge(overload) for overload in problem.judged] == judges
    assert len(set(map(id, judges))) == len(problem.judged) > 1
