"""Which kernels of runs `kgbench export` takes, and why it leaves others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kgbench.backend.choose import choose
from kgbench.cli.main import main
from kgbench.core.errors import UsageError
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.problem.registry import Registry
from kgbench.problem.suites import SUITE_FILE, of_trace, with_suite
from kgbench.store.encoding import sha256
from kgbench.store.reader import StoredRun
from tests.unit.made_backends import DEVICE, judged, run_of
from tests.unit.made_results import timing

MUL = "def mul_Tensor(self, other): ...\n\n\ndef mul_Scalar(self, other): ...\n"
MM = "def mm(self, mat2): ...\n"


def names(run: Any, *, all_correct: bool = False) -> dict[str, str]:
    """Operators with the hash of their text."""
    chosen, _ = choose([run] if not isinstance(run, list) else run, all_correct=all_correct)
    return {each.operator: each.judgement.result.candidate_sha256 for each in chosen}


def reasons(run: Any, **more: Any) -> dict[str, str]:
    _, left = choose([run], **{"all_correct": False, **more})
    return {each.what: each.why for each in left}


def test_what_is_faster_by_the_lower_end_is_taken(tmp_path: Path) -> None:
    for number, (ratio, taken) in enumerate(((2.0, True), (1.01, False), (0.5, False))):
        run = run_of(tmp_path / str(number), (judged("aten/mm", MM, ratio=ratio), MM))  # ends are 2 % away
        assert ("aten::mm" in names(run)) is taken
        assert "aten::mm" in names(run, all_correct=True)
        assert taken or reasons(run)["aten/mm"] == "not faster for certain"


def test_an_interpreters_times_count_for_nothing(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", (judged("aten/mm", MM, ratio=9.0, interpreted=True), MM))
    assert names(run) == {}
    assert reasons(run) == {"aten/mm": "not timed beside its library"}
    (chosen,) = choose([run], all_correct=True)[0]
    assert chosen.speed is None


def test_each_overload_is_taken_for_its_own_times(tmp_path: Path) -> None:
    result = judged("aten/mul", MUL)
    slower = tuple(
        replace(each, timing=timing(0.5)) if each.timing and each.overload == "Tensor" else each
        for each in result.cases
    )
    run = run_of(tmp_path / "run", (replace(result, cases=slower), MUL))
    found = names(run)
    assert "aten::mul.Tensor" not in found
    assert reasons(run)["aten/mul Tensor"] == "not faster for certain"
    assert ("aten::mul.Scalar" in found) == any(each.timing for each in slower if each.overload == "Scalar")


def test_of_several_samples_the_fastest_for_certain_is_taken(tmp_path: Path) -> None:
    texts = [f"{MM}# {number}\n" for number in range(3)]
    pairs = [
        (replace(judged("aten/mm", text, ratio=ratio), sample=number), text)
        for number, (text, ratio) in enumerate(zip(texts, (2.0, 4.0, 3.0), strict=True))
    ]
    assert names(run_of(tmp_path / "run", *pairs)) == {"aten::mm": sha256(texts[1])}


CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("aten/mm", {"outcome": Outcome.WRONG_VALUE}, MM, "not correct: wrong value"),
    ("aten/mm", {"problem_sha256": "1"}, MM, "its problem's file has changed since the run"),
    ("aten/mm", {"candidate_sha256": "1"}, MM, "is not the text that was judged"),
    ("aten/mm", {}, "import cupy\n" + MM, "it imports cupy; a package needs torch and triton alone"),
    ("aten/t", {}, "def t(self): ...\n", "kind view: nothing to gain"),
    ("aten/exponential_", {}, "def exponential_(self): ...\n", "it draws other numbers from a seed than PyTorch does"),
    ("aten/contiguous", {}, "def contiguous(self): ...\n", "it may return its argument"),
]


@pytest.mark.parametrize(("problem", "changes", "text", "words"), CASES, ids=[each[3][:24] for each in CASES])
def test_what_is_left_out_is_told_with_the_reason(
    tmp_path: Path, problem: str, changes: dict[str, Any], text: str, words: str
) -> None:
    run = run_of(tmp_path / "run", (judged(problem, text, **changes), text))
    assert names(run, all_correct=True) == {}
    assert words in next(iter(reasons(run, all_correct=True).values()))


def test_judged_calls_of_several_runs_add_up_and_one_failure_ends_it(tmp_path: Path) -> None:
    first, second = (judged("aten/mm", MM, seed=seed) for seed in ("one", "two"))
    runs = [run_of(tmp_path / name, (result, MM)) for name, result in (("a", first), ("b", second))]
    both, one = (choose(each, all_correct=False)[0][0] for each in (runs, runs[:1]))
    assert both.calls == 2 * one.calls
    failed: Result = replace(second, outcome=Outcome.WRONG_VALUE)
    assert names([runs[0], run_of(tmp_path / "c", (failed, MM))]) == {}


def test_a_run_that_judged_some_overloads_alone_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    whole = judged("aten/mul", MUL)
    cases = tuple(each for each in whole.cases if each.overload == "Tensor")
    part = replace(whole, overloads={"Tensor": "passed"}, cases=cases)
    for order in ((whole, part), (part, whole)):
        folder = tmp_path / str(order[0] is whole)
        runs = [run_of(folder / str(number), (each, MUL)) for number, each in enumerate(order)]
        assert set(names(runs, all_correct=True)) == {"aten::mul.Tensor", "aten::mul.Scalar"}
    wrong = replace(part, overloads={"Tensor": "wrong value"})
    found = names([run_of(tmp_path / "w", (whole, MUL)), run_of(tmp_path / "v", (wrong, MUL))], all_correct=True)
    assert set(found) == {"aten::mul.Scalar"}


def test_a_models_own_timed_calls_decide_whether_a_kernel_is_faster(tmp_path: Path) -> None:
    """Whatever the benchmark's cases say, and in either order."""
    calls = tmp_path / "calls.txt"
    calls.write_text("Operator: aten.mm.default\ncnt: 3, ((T([128, 768], f32), T([768, 64], f32)), {})\n")
    problem = Registry().find("aten/mm")
    suite = of_trace(f"torchbench:{calls}", [problem])

    def of_calls(folder: Path, ratio: float | None) -> StoredRun:
        run = run_of(folder, (judged("aten/mm", MM, ratio=ratio, problem=with_suite(problem, suite)), MM))
        (folder / SUITE_FILE).write_text(json.dumps(suite.to_json()))
        return run

    own = {ratio: run_of(tmp_path / f"own{ratio}", (judged("aten/mm", MM, ratio=ratio), MM)) for ratio in (2.0, 0.5)}
    for ratio, taken in ((2.0, True), (0.5, False), (None, None)):
        run = of_calls(tmp_path / f"calls{ratio}", ratio)
        for of_own, of_own_alone in ((2.0, True), (0.5, False)):
            found = [bool(names(runs)) for runs in ([own[of_own], run], [run, own[of_own]])]
            assert found == [of_own_alone if taken is None else taken] * 2, (ratio, of_own)


def test_runs_of_two_devices_make_no_package(tmp_path: Path) -> None:
    runs = [
        run_of(tmp_path / name, (judged("aten/mm", MM), MM), device={**DEVICE, "name": name}) for name in ("a", "b")
    ]
    with pytest.raises(UsageError, match="the runs were made on a and b"):
        choose(runs, all_correct=True)


def test_the_command_says_what_it_took_and_what_not(tmp_path: Path) -> None:
    slow = judged("aten/mul", MUL, ratio=0.5)
    run = run_of(tmp_path / "run", (judged("aten/mm", MM), MM), (slow, MUL))
    folder = tmp_path / "own-backend"
    done = CliRunner().invoke(main, ["export", str(run.path), "--backend", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["package"] == "own_backend"
    assert [each["operator"] for each in found["operators"]] == ["aten::mm"]
    assert {each["what"] for each in found["left_out"]} == {"aten/mul Tensor", "aten/mul Scalar"}
    readme = (folder / "README.md").read_text()
    assert "| `aten::mm` | m, aten/mm |" in readme
    assert "2.0" in readme
    assert "not faster for certain" in readme
    table = json.loads((folder / "own_backend" / "table.json").read_text())
    assert table["operators"][0]["from"]["sha256"] == sha256(MM)
    again = CliRunner().invoke(main, ["export", str(run.path), "--backend", str(folder)])
    assert again.exit_code == 2
    assert "KGB196" in again.output
