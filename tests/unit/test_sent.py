"""A problem arrives as it was read, and nothing but a problem is unpacked."""

from __future__ import annotations

import ast
import base64
import enum
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from kgbench.core.paths import problems_dir
from kgbench.harness.machine.settings import Job
from kgbench.problem import calls
from kgbench.problem.cases import bind, expand_cases
from kgbench.problem.model import Problem
from kgbench.problem.registry import load_problem
from kgbench.problem.sent import packed, unpacked

NAMES = ("aten/softmax", "aten/exponential_", "aten/add", "vllm/rms_norm", "cublas/cublasStrsm_v2", "aten/t")


@pytest.mark.parametrize("name", NAMES)
def test_a_problem_arrives_as_it_was_read(name: str, shipped: Callable[[Path], Problem]) -> None:
    problem = shipped(problems_dir() / f"{name}.yaml")
    found = unpacked(packed(problem))
    assert found == problem
    for before, after in zip(problem.judged, found.judged, strict=True):
        cases = expand_cases(before, "cpu", None, "seed")
        # As text, since NaN is not equal to itself.
        assert repr(expand_cases(after, "cpu", None, "seed")) == repr(cases)
        assert repr([bind(after, case) for case in cases]) == repr([bind(before, case) for case in cases])


def test_a_problem_arrives_whatever_pickle_makes_of_enums(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python 3.11.0 to 3.11.3 have it."""
    monkeypatch.setattr(enum.Enum, "__reduce_ex__", lambda member, protocol: (getattr, (type(member), member.name)))
    problem = load_problem(problems_dir() / "aten" / "softmax.yaml")
    assert unpacked(packed(problem)) == problem


def test_no_call_is_parsed_again_where_it_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = packed(load_problem(problems_dir() / "aten" / "softmax.yaml"))

    def again(text: str, mode: str = "exec") -> None:
        raise AssertionError(text)

    calls.parse.cache_clear()
    monkeypatch.setattr(calls.syntax, "parse", again)
    for overload in unpacked(sent).judged:
        assert [bind(overload, case) for case in expand_cases(overload, "cpu", None, "seed")]


class Command:
    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("true",)


@pytest.mark.parametrize("other", [{"id": "aten/t"}, Command(), ast.literal_eval, None])
def test_nothing_else_is_unpacked(other: object) -> None:
    data = b"no pickle" if other is None else pickle.dumps(other)
    with pytest.raises(ValueError, match="not a problem"):
        unpacked(base64.b64encode(data).decode())


def test_a_job_arrives_as_it_was_sent() -> None:
    job = Job(load_problem(problems_dir() / "aten/t.yaml"), "m", 2, "def t(): ...", round=1, practice=True)
    assert Job.from_json(job.to_json()) == job
    with pytest.raises(ValueError, match="a job has no field 'without'"):
        Job.from_json({**job.to_json(), "without": ["sandbox"]})
