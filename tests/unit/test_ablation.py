"""Who can weaken a verdict: whoever makes a referee, with parts of the self-test. A job cannot."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kgbench.core.paths import PACKAGE, problems_dir
from kgbench.harness.machine.settings import REFEREE, Job, RefereeSettings
from kgbench.harness.session.session import Settings
from kgbench.problem.registry import load_problem
from kgbench.selftest.ablation.defences import DEFENCES, TRUST_SPLIT, WITHOUT
from kgbench.selftest.ablation.job import ABLATING_REFEREE, AblatedJob

NEG = Job(load_problem(problems_dir() / "aten/neg.yaml"), "tests")
JOB = NEG.to_json()
WEAK_WORDS = {"without", "ablation", "ablated", "selftest", "lenient", "own_clock", "weak", "weakened"}
"""What the code of something weak is called."""


def test_a_job_survives_its_way() -> None:
    job = Job.from_json(JOB)
    assert job.problem.sha256 == NEG.problem.sha256
    assert replace(job, problem=NEG.problem) == NEG


@pytest.mark.parametrize("key", ["without", "ablation", "defences", "referee", "lenient"])
def test_a_job_that_leaves_something_out_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match=f"a job has no field '{key}'"):
        Job.from_json({**JOB, key: ["values"]})


def test_only_known_defences_can_be_left_out() -> None:
    assert AblatedJob.from_json({**JOB, "without": ["values"]}).without == ("values",)
    with pytest.raises(ValueError, match=r"no such defences: \['luck'\]"):
        AblatedJob.from_json({**JOB, "without": ["luck"]})


def test_sessions_and_referees_have_no_switch() -> None:
    """But the name of the process, which is the strict one unless trusted code says otherwise."""
    assert Settings().referee == REFEREE == "kgbench.harness.referee.process:main"
    assert ABLATING_REFEREE.startswith("kgbench.selftest.")
    names = {each.name for kind in (Job, RefereeSettings, Settings) for each in fields(kind)}
    assert not names & {*WEAK_WORDS, "defences"}


def test_the_harness_has_no_word_for_anything_weak() -> None:
    """No name, no attribute, no argument and no whole text in its code, nor a defence's name of several words."""
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {word}"
        for path in sorted((PACKAGE / "harness").rglob("*.py"))
        for line, word in words_of(path)
        if word in WEAK_WORDS or (word in DEFENCES and " " in word) or "kgbench.selftest" in word
    ]
    assert found == []


def words_of(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word) | ast.keyword(arg=str(word)):
                yield line, word
            case ast.FunctionDef(name=word) | ast.ClassDef(name=word) | ast.alias(name=word):
                yield line, word
            case ast.ImportFrom(module=str(word)) | ast.Constant(value=str(word)):
                yield line, word


# --- with torch ---


def parts_of(value: Any) -> Iterator[Any]:
    """All collaborators that a group of them has."""
    for each in fields(value):
        part = getattr(value, each.name)
        if is_dataclass(part) and not isinstance(part, type):
            yield from parts_of(part)
        else:
            yield part


def module_of(part: Any) -> str:
    if isinstance(part, str):
        return part
    return str(getattr(part, "__module__", "") or type(part).__module__)


def described(part: Any) -> str:
    """A part by its name and what it was made with, so that two made alike are alike."""
    if isinstance(part, partial):
        return f"{described(part.func)} {part.keywords}"
    if isinstance(part, str):
        return part
    name = getattr(part, "__qualname__", "")
    return str(name) if name else f"{type(part).__qualname__} {getattr(part, '__dict__', part)}"


@pytest.mark.torch
def test_every_strict_part_is_the_harness_s_own() -> None:
    pytest.importorskip("torch")
    from kgbench.harness.referee.defences import STRICT, Defences
    from kgbench.harness.workers.handle import CANDIDATE_STUB

    assert Defences() == STRICT
    parts = list(parts_of(STRICT))
    assert len(parts) > 10
    assert CANDIDATE_STUB in parts
    assert [each for each in parts if not module_of(each).startswith(("kgbench.harness.", "kgbench.problem."))] == []


@pytest.mark.torch
@pytest.mark.parametrize("defence", [each for each in WITHOUT if each != TRUST_SPLIT])
def test_a_defence_is_left_out_by_parts_of_the_selftest(defence: str) -> None:
    """Each replaces something, and something else than the others do."""
    torch = pytest.importorskip("torch")
    from kgbench.harness.referee.seeds import Seeds
    from kgbench.selftest.ablation.weakened import weakened

    seeds = Seeds("tests", NEG, torch.device("cpu"))

    def shown(*without: str) -> list[str]:
        return [described(part) for part in parts_of(weakened(frozenset(without), seeds))]

    others = [each for each in WITHOUT if each not in (defence, TRUST_SPLIT)]
    assert shown() == shown()
    assert shown(defence) != shown()
    assert shown(*others, defence) != shown(*others)
