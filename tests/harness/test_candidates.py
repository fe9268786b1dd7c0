"""Every wrong kernel and every adversary gets the outcome it names, on the CPU, from real processes.

Of the wrong kernels those of a run's share of the problems: see tests/sampling.py.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from kgbench.core.details.absence import Lacking
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import examples_dir
from kgbench.core.types import Result
from kgbench.harness.machine import processes
from kgbench.harness.session.session import Job, Session
from kgbench.problem.registry import load_problem
from kgbench.service.models import Submit
from tests.harness.candidates import KernelFile, KnownCandidate, adversaries, kernel_files
from tests.harness.living import wait_until
from tests.sampling import sample

pytestmark = pytest.mark.torch


def sampled(folder: str) -> list[KernelFile]:
    return [KernelFile(path) for path in kernel_files(folder) if f"{path.parent.name}/{path.stem}" in sample()]


def judge(session: Session, known: KnownCandidate, problems: Path) -> Result:
    job = Job(load_problem(problems / f"{known.problem_id}.yaml"), "test", source=known.text)
    return session.evaluate(job)


def faults(session: Session, file: KernelFile, problems: Path) -> list[str]:
    """One line for each kernel that did not get its outcome. Skips where all others did and this machine lacks what a
    kernel's language needs."""
    found, lacking = [], []
    for known in file.candidates():
        result = judge(session, known, problems)
        passed = [case.id for case in result.cases if case.outcome is Outcome.PASSED]
        if isinstance(result.detail, Lacking):
            lacking.append(f"{known.id}: {result.reason}")
        elif result.outcome not in known.outcomes or not result.reason:
            found.append(f"{known.id}: {result.outcome}: {result.reason}\n{result.log_tail}")
        elif file.folder == "wrong" and bool(passed) is not known.right_somewhere:
            found.append(f"{known.id}: right in {passed}; {result.reason}")
    if lacking and not found:
        pytest.skip("; ".join(lacking))
    return found


@pytest.mark.timeout(300)  # a dozen kernels one after the other on a busy machine
@pytest.mark.parametrize("file", sampled("mutants"), ids=lambda file: file.problem_id)
def test_mutants_are_caught(session: Session, file: KernelFile, problem_path: Path) -> None:
    assert faults(session, file, problem_path) == []


@pytest.mark.timeout(300)  # a few build C++, which takes 10 s each
@pytest.mark.parametrize("file", sampled("wrong"), ids=lambda file: file.problem_id)
def test_wrong_kernels_are_found_by_their_mistake(session: Session, file: KernelFile, problem_path: Path) -> None:
    """Also: some case passes first, unless ``right: nothing`` says that none does."""
    assert faults(session, file, problem_path) == []


@pytest.mark.parametrize("known", [k for k in adversaries() if k.device != "cuda"], ids=lambda known: known.id)
def test_adversary_gets_its_outcome_and_leaves_nothing(
    impatient: Session, most_impatient: Session, known: KnownCandidate, problem_path: Path
) -> None:
    before = _below_this_process()
    hangs = set(known.outcomes) == {Outcome.TIMEOUT}
    result = judge(most_impatient if hangs else impatient, known, problem_path)
    assert result.outcome in known.outcomes, f"{result.outcome}: {result.reason}\n{result.log_tail}"
    # The problem's library worker and its supervisor stay for its next candidate; another supervisor may be ending.
    wait_until(lambda: len(_below_this_process() - before) <= 2, 5.0)
    left = _below_this_process() - before
    assert len(left) <= 2, [Path(f"/proc/{pid}/cmdline").read_text() for pid in left]


def test_the_next_candidate_is_unaffected(impatient: Session, problem_path: Path) -> None:
    job = Job(load_problem(problem_path / "aten/t.yaml"), "test", source=(examples_dir() / "aten/t.py").read_text())
    assert impatient.evaluate(job).outcome is Outcome.PASSED


def _below_this_process() -> set[int]:
    return set(processes.descendants(os.getpid()))


def test_the_kernel_in_the_services_document_is_correct(session: Session, problem_path: Path) -> None:
    """That of docs/service.md and that of /openapi.json."""
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text(encoding="utf-8")
    written = json.loads(re.findall(r"-d '(.*)' https", page)[0])
    example = Submit.model_json_schema()["examples"][0]
    assert (written["problem"], written["source"]) == (example["problem"], example["source"])
    problem = load_problem(problem_path / f"{written['problem']}.yaml")
    result = session.evaluate(Job(problem, "test", source=written["source"]))
    assert result.outcome is Outcome.PASSED, result.reason
