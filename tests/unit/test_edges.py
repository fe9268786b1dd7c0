"""What a problem promises of special arguments is told, run as cases, and held against its reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kgbench.core.errors import KgbenchError
from kgbench.core.paths import problems_dir
from kgbench.problem.cases import expand_cases
from kgbench.problem.model import Problem
from kgbench.problem.registry import Registry, load_problem
from kgbench.prompts.render import PromptOptions, prompt_for

POW = problems_dir() / "aten/pow.yaml"


def test_rows_are_told_and_run() -> None:
    problem = load_problem(POW)
    by_name = {each.name: each for each in problem.judged}
    row = "self = -0.0, exponent = -3.0 gives -inf"
    assert row in [each.words for each in by_name["Tensor_Tensor"].edges]
    assert row in prompt_for(problem, PromptOptions()).turns[-1].text
    cases = [each for each in expand_cases(by_name["Tensor_Scalar"], "cpu", None, "x") if _is_edge(each)]
    numbers = {each.variables["exponent"] for each in cases if each.dtype == "float32"}
    assert {0.0, 0.5, 3.0, -2.0, -3.0} <= numbers
    assert {each.dtype for each in cases} == set(by_name["Tensor_Scalar"].dtypes)


def test_a_row_is_about_overloads_that_need_no_other_argument() -> None:
    by_name = {each.name: each for each in load_problem(problems_dir() / "aten/div.yaml").judged}
    assert all("rounding_mode" not in each.words for each in by_name["Tensor"].edges)
    assert all("rounding_mode" in each.words for each in by_name["Tensor_mode"].edges)


@pytest.mark.parametrize(
    ("row", "number"), [("{self: 1.0}", "KGB222"), ("{gives: 1.0}", "KGB222"), ("{slef: 1.0, gives: 1.0}", "KGB233")]
)
def test_what_is_no_row_is_named(tmp_path: Path, row: str, number: str) -> None:
    text = (problems_dir() / "aten/cos.yaml").read_text(encoding="utf-8")
    path = tmp_path / "aten/cos.yaml"
    path.parent.mkdir()
    path.write_text(text.replace("  - {self: 0.0, gives: 1.0}", f"  - {row}"), encoding="utf-8")
    with pytest.raises(KgbenchError, match=number):
        load_problem(path)


@pytest.mark.torch
def test_every_reference_gives_what_is_promised(tmp_path: Path, shipped: Callable[[Path], Problem]) -> None:
    pytest.importorskip("torch")
    from kgbench.torchtools.reference_check import _check_edges

    judge_of = pytest.importorskip("kgbench.harness.verdict.judge").OverloadJudge
    device = pytest.importorskip("torch").device("cpu")
    checked = 0
    for path in Registry().paths.values():
        for overload in shipped(path).judged:
            if overload.edges:
                _check_edges(path, overload, judge_of(overload, device))
                checked += len(overload.edges)
    assert checked > 150
    text = (problems_dir() / "aten/i0.yaml").read_text(encoding="utf-8")
    path = tmp_path / "aten/i0.yaml"
    path.parent.mkdir()
    for wrong in ("{self: inf, gives: inf}", "{self: inf, gives: nan}", "{self: inf, gives: [inf, 1.0]}"):
        path.write_text(text.replace("{self: inf, gives: [inf, nan]}", wrong), encoding="utf-8")
        overload = load_problem(path).judged[0]
        with pytest.raises(KgbenchError, match="KGB274"):
            _check_edges(path, overload, judge_of(overload, device))


def _is_edge(case: object) -> bool:
    return str(getattr(case, "values", None) or case.variables.get("values", "")).startswith("edges")  # type: ignore[attr-defined]
