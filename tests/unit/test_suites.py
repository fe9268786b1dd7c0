"""Suites: which problems and calls they mean, and what is said about how much of them was judged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kgbench.core.errors import UsageError
from kgbench.core.outcomes import Outcome
from kgbench.core.torch_process import NoAnswer, ask
from kgbench.core.types import CaseResult
from kgbench.problem import suites
from kgbench.problem.cases import expand_cases
from kgbench.problem.model import Problem
from kgbench.problem.registry import load_problem
from kgbench.problem.suites import Share, Suite, SuiteCall, check_name, make_suite, narrowed, read_suite, with_suite
from kgbench.reports.suite import suite_lines, suite_rows, suite_table
from kgbench.store.reader import StoredRun
from tests.unit.made_results import result

HALVE = """\
summary: half of it
kind: compute
category: elementwise
dtypes: {required: [float32, float16], optional: [float64]}
arguments:
  self: {access: read, draw: "normal()"}
  out: {access: write, shape: "self_shape"}
cases:
  check: ["((T([3], $dtype), 1), {})"]
  fuzz: {count: 2, call: "((T([$n], $dtype), 2), {})", draw: {n: {range: [1, 9]}}}
  bench: {cpu: ["((T([64], f32), 1), {})"], gpu24: ["((T([64], f32), 1), {})"]}
reference: "torch.div(self, 2 * by)"
tolerance: {rule: rounding}
overloads:
  default:
    entry: "halve(self: Tensor, by: int) -> Tensor"
  out:
    entry: "halve_out(self: Tensor, by: int, *, out: Tensor) -> Tensor"
    returns: out
  int: {required: false, reason: on the host, entry: "halve_int(a: int) -> int"}
doc: half of it
"""
TRACE = """\
Operator: aten.halve.default
cnt: 5, ((T([2, 2], f32), 1), {})
cnt: 7, ((T([2, 2], f32), 1), {})
cnt: 0, ((T([9], f16), 3), {})
cnt: 4, ((T([2], f32), 'one'), {})
Operator: aten.halve
cnt: 2, ((T([4], f32), 1), {})
Operator: aten.halve.int
cnt: 1, ((3,), {})
Operator: aten.other.Tensor
cnt: 9, ((), {})
"""


@pytest.fixture
def halve(tmp_path: Path) -> Problem:
    path = tmp_path / "aten" / "halve.yaml"
    path.parent.mkdir()
    path.write_text(HALVE, encoding="utf-8")
    return load_problem(path)


def traced(tmp_path: Path, problem: Problem, text: str = TRACE) -> Suite:
    path = tmp_path / "model.txt"
    path.write_text(text, encoding="utf-8")
    return make_suite(f"trace:{path}", [problem], "cpu")


@pytest.mark.parametrize("name", ["opinfo2", "trace", "trace:", ""])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="there are opinfo, smoke, trace:FILE, torchbench:FILE and kernelbench:PATH"):
        check_name(name)


def test_smoke_is_one_problem_of_each_source_selected() -> None:
    ids = ["aten/add", "aten/softmax", "mine/scale", "mine/shift", "cublas/cublasSdot_v2"]
    assert narrowed("smoke", ids) == ["aten/softmax", "mine/scale", "cublas/cublasSdot_v2"]
    assert narrowed("smoke", narrowed("smoke", ids)) == narrowed("smoke", ids)
    assert narrowed("opinfo", ids) == ["aten/add", "aten/softmax"]


def test_a_traces_calls_are_counted_and_bound(tmp_path: Path, halve: Problem) -> None:
    suite = traced(tmp_path, halve)
    (share,) = suite.shares
    assert (share.problem, share.samples, share.used) == ("aten/halve", 5, 4)
    assert share.calls["default"] == (
        SuiteCall("((T([2, 2], f32), 1), {})", "", 12),
        SuiteCall("((T([9], f16), 3), {})", "", 0),
        SuiteCall("((T([4], f32), 1), {})", "", 2),
    )
    assert share.calls["out"] == ()
    assert suite.missing == {"aten.halve.int": 1, "aten.other.Tensor": 1}
    assert sum(share.refused.values()) == 1
    assert "expected int for 'by'" in next(iter(share.refused))
    assert Suite.from_json(json.loads(json.dumps(suite.to_json()))) == suite


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cnt: 1, ((), {})", "model.txt:1: expected 'Operator: NAMESPACE.NAME.OVERLOAD'"),
        ("Operator: aten.other.default\ncnt: 1, ((), {})", "has no call of the problems selected; kgbench list"),
        ("Operator: aten.halve.default\ncnt: 1, ((), {})", "nothing fits: "),
    ],
)
def test_a_trace_without_calls_of_ours_is_refused(tmp_path: Path, halve: Problem, text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        traced(tmp_path, halve, text)
    assert words in str(caught.value)


def test_calls_stand_in_for_all_cases_of_a_file(tmp_path: Path, halve: Problem) -> None:
    judged = with_suite(halve, traced(tmp_path, halve))
    default, out, on_host = judged.overloads
    cases = expand_cases(default, "cpu", None, "seed")
    assert [(case.phase, case.dtype, case.variables["call"]) for case in cases] == [
        ("check", "float32", "((T([2, 2], f32), 1), {})"),
        ("check", "float16", "((T([9], f16), 3), {})"),
        ("check", "float32", "((T([4], f32), 1), {})"),
    ]
    assert (default.required, out.required, out.check, on_host.required) == (True, False, (), False)
    assert judged.sha256 == halve.sha256


ANSWER = {
    "operator": "halve", "samples": 6, "used": 5, "refused": {"a sparse tensor": 1}, "elsewhere": {},
    "derived": ["out"],
    "calls": {
        "default": [
            {"text": "((T([5], f32), 1), {})", "lazy": "", "dtype": "float32", "shapes": [[5]], "count": 4},
            {"text": "((T([5], f32), None), {})", "lazy": "", "dtype": "float32", "shapes": [[5]], "count": 1},
        ],
        "out": [
            {"text": "((T([5], f32), None), {})", "lazy": "", "dtype": "float32", "shapes": [[5]], "count": 1},
        ],
    },
}  # fmt: skip


def test_samples_that_the_file_does_not_take_are_refused(halve: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(suites, "ask", lambda module, request, timeout_s: asked.append(request) or [ANSWER])
    (share,) = make_suite("opinfo", [halve], "cuda").shares
    assert asked == [
        {
            "device_kind": "cuda",
            "operators": [
                {"operator": "halve", "overloads": ["default", "out"], "dtypes": ["float16", "float32", "float64"]}
            ],
        }
    ]
    assert (share.samples, share.used, sum(share.refused.values())) == (6, 4, 2)
    assert share.calls == {"default": (SuiteCall("((T([5], f32), 1), {})", "", 4),), "out": ()}


def test_rows_count_what_was_judged(tmp_path: Path, halve: Problem) -> None:
    suite = traced(tmp_path, halve)
    calls = suite.shares[0].calls["default"]
    suite = replace(suite, shares=(*suite.shares, Share("aten/never", 0, 0), Share("aten/odd", 3, 0, {"odd": 3})))
    cases = tuple(
        CaseResult(f"check-{number}", "default", "check", "float32", {"call": call.call, "lazy": ""}, outcome)
        for number, (call, outcome) in enumerate(zip(calls, (Outcome.PASSED, Outcome.WRONG_VALUE), strict=False))
    )
    judged = replace(result("aten/halve"), cases=cases, outcome=Outcome.WRONG_VALUE)
    first, never, odd = rows = suite_rows(suite, [judged])
    assert (first.samples, first.used, first.refused, first.calls) == (5, 4, 1, 3)
    assert (first.correct, first.wrong, first.not_run, first.count, first.count_correct) == (1, 1, 1, 14, 12)
    assert (never.outcome, odd.outcome) == ("no samples", "none fits")
    with (console := Console(width=80, color_system=None)).capture() as shown:
        console.print(suite_table(suite, rows))
    assert "aten/halve 5 4 1 1 of 3 12 of 14 wrong value" in [
        " ".join(line.split()) for line in shown.get().splitlines()
    ]
    lines = list(suite_lines(suite, rows))
    assert lines[0].endswith("8 lines, 4 used, 4 refused")
    assert lines[1] == "  every call correct: 0 of 1; calls correct: 1 of 3"
    assert "  aten/odd: 3 refused: odd" in lines
    assert lines[-1] == "  not among the problems selected: aten.halve.int (1), aten.other.Tensor (1)"


def test_a_run_without_a_suite_has_none_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    assert read_suite(tmp_path) is None
    assert StoredRun(tmp_path, {}, (), ()).path == tmp_path
    (tmp_path / "suite.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UsageError, match=r"suite\.json: cannot be read"):
        read_suite(tmp_path)


def test_a_process_without_an_answer_says_its_last_words() -> None:
    with pytest.raises(NoAnswer, match=r"No module named kgbench\.harness\.nosuch"):
        ask("kgbench.harness.nosuch", {}, 60.0)
