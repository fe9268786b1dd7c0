"""Kernels in other benchmarks' layouts, and several samples of one, from the folder to the score; on the CPU."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from kgbench.core.outcomes import Outcome
from kgbench.core.paths import answer_dirs
from kgbench.evaluation import coordinator
from kgbench.evaluation.coordinator import Plan
from kgbench.harness.machine.settings import Deadlines, Job
from kgbench.harness.session.session import Session, Settings
from kgbench.models.provider import provider_of
from kgbench.problem.registry import Registry
from kgbench.reports.model import report_of
from kgbench.store.reader import read_run
from tests.harness.sessions import SessionOf
from tests.layouts import layout

pytestmark = pytest.mark.torch

WRONG, PASSED = Outcome.WRONG_VALUE, Outcome.PASSED


@pytest.mark.parametrize(
    ("name", "id_", "outcomes"),
    [
        ("kgbench", "aten/add", [PASSED]),
        ("backendbench", "aten/add", [PASSED]),
        ("backendbench_overloads", "aten/add", [PASSED]),
        ("backendbench_overloads", "aten/mm", [PASSED]),
        ("kernelgenbench", "aten/add", [PASSED]),
        ("kernelgenbench", "cublas/cublasSgemm_v2", [PASSED]),
        ("kernelgenbench_agents", "aten/add", [PASSED]),
        ("rounds", "aten/add", [WRONG, PASSED]),
    ],
)
def test_entry_of_a_layout_is_judged(
    session: Session, name: str, id_: str, outcomes: list[Outcome], tmp_path: Path
) -> None:
    problem = Registry().find(id_)
    found = []
    for candidate in provider_of(f"dir:{layout(name, tmp_path)}").candidates(problem):
        job = Job(problem, "test", sample=candidate.sample, source=candidate.source_text)
        found.append(session.evaluate(job).outcome)
    assert found == outcomes


def test_bare_name_stands_for_no_overload_beside_a_named_one(session: Session) -> None:
    problem = Registry().find("aten/add")
    text = "def add(self, other, alpha=1):\n    return self + other\n\n\nadd_Tensor = add\n"
    result = session.evaluate(Job(problem, "test", source=text))
    assert result.outcome is Outcome.COMPILE_ERROR
    assert "defines no function add_Scalar" in result.reason


def test_samples_are_judged_stored_and_averaged(session_of: SessionOf, tmp_path: Path) -> None:
    provider = provider_of(f"dir:{layout('samples', tmp_path)}")
    registry = Registry()
    ids = provider.narrow(["aten/add", "aten/mm"], chosen=True)
    plan = Plan(
        problems=tuple(map(registry.find, ids)),
        provider=provider,
        command=("kgbench", "run"),
        seed="samples",
        seed_is_secret=True,
        out=tmp_path / "runs",
        run_id="20260101T000000Z-abc123",
        started=datetime(2026, 1, 1, tzinfo=UTC),
        deadlines=Deadlines.for_device("cpu"),
    )
    lines = io.StringIO()
    ending = coordinator.run(
        plan,
        lambda store: session_of(
            Settings(device="cpu", seed=plan.seed, timing=False, log_dir=store.log_dir, hidden=answer_dirs())
        ),
        Console(file=lines, width=200),
    )
    run = read_run(ending.path)
    assert sorted((r.problem, r.sample, r.outcome) for r in run.results) == [
        ("aten/add", 0, WRONG),
        ("aten/add", 1, PASSED),
        ("aten/mm", 0, Outcome.NO_CANDIDATE),
    ]
    assert sorted(path.name for path in (ending.path / "candidates" / "aten").iterdir()) == ["add.0.py", "add.1.py"]
    (row,) = report_of(run).rows
    assert (row.problems, row.submitted, row.correct) == (2, 1, 0.5)
    assert "aten/add sample 1 passed" in lines.getvalue()
    again = provider_of(f"dir:{ending.path / 'candidates'}")
    assert again.samples_of("aten/add") == 2


def test_text_nested_too_deep_to_parse_is_the_candidates_failure(session: Session) -> None:
    problem = Registry().find("aten/add")
    text = f"add = {'-' * 200_000}1\n"
    result = session.evaluate(Job(problem, "test", source=text))
    assert result.outcome not in (Outcome.PASSED, Outcome.HARNESS_ERROR), result.reason
