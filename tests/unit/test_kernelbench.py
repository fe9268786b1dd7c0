"""A checkout of KernelBench without torch: which files it has, how they are named, what a prompt says of a problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kgbench.cli.main import main
from kgbench.cli.validate_checkout import verdict
from kgbench.core.details.absence import DeviceMemory
from kgbench.core.details.failures import NoEntry, StateUnfit
from kgbench.core.details.sentences import words_of
from kgbench.core.details.union import detail_from_json, detail_to_json
from kgbench.core.errors import UsageError
from kgbench.core.kinds import DeviceKind
from kgbench.models.layouts import match_folder
from kgbench.problem import kernelbench
from kgbench.problem.cases import bind, expand_cases
from kgbench.problem.kernelbench import checkout, problem_of, registry_of
from kgbench.problem.model import Problem
from kgbench.problem.modules import BYTES_OF_ELEMENT, COMPILED, EAGER
from kgbench.problem.sent import packed, unpacked
from kgbench.problem.suites import check_name
from kgbench.prompts.render import PromptOptions, prompt_for

PLACE = Path(__file__).parents[1] / "candidates" / "modules"
SUITE = f"kernelbench:{PLACE}"
SUM = "level1/1_Scaled_row_sum_"
FACTS: dict[str, Any] = {
    "call": "((T([$batch, 48], f32),), {})", "parameters": [["x", "Tensor"]], "batch": "batch_size", "own": 32,
    "sizes": [1, 2, 3, 5], "halved": True, "elements": {"32": 1568, "1": 49, "2": 98, "3": 147, "5": 245},
    "doc": "Rows.", "complaint": "",
}  # fmt: skip


def problem(**other: Any) -> Problem:
    return problem_of(PLACE / f"{SUM}.py", {**FACTS, **other}, EAGER)


def test_files_are_found_by_level_and_number_also_from_above(tmp_path: Path) -> None:
    ids = checkout(SUITE).ids()
    assert ids[:3] == [SUM, "level1/2_Masked_scale", "level1/10_Leaky_output"]
    (tmp_path / "KernelBench").symlink_to(PLACE)
    assert checkout(f"kernelbench:{tmp_path}").ids() == ids


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("kernelbench:", "name a checkout"),
        ("opinfo", "name a checkout"),
        ("kernelbench:/no/such/place", "there is no folder"),
        (f"kernelbench:{PLACE / 'answers'}", "is no checkout of KernelBench"),
    ],
)
def test_what_is_no_checkout_is_told(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        checkout(name)


@pytest.mark.parametrize("spelling", [SUM, "level1/1", "1/1", "1_1", "level_1_problem_1", "1_Scaled_row_sum_"])
def test_problems_are_named_by_number_too(spelling: str) -> None:
    assert checkout(SUITE).resolve(spelling).id == SUM
    assert checkout(SUITE).select((), [spelling]) == [SUM]


def test_an_unknown_number_is_told_with_what_is_alike() -> None:
    with pytest.raises(UsageError, match="there is no problem 'level1/99'"):
        checkout(SUITE).select((), ["level1/99"])


def test_a_suites_path_is_kept_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PLACE.parent)
    assert check_name("kernelbench:modules") == SUITE


def test_against_is_for_modules() -> None:
    assert problem_of(PLACE / f"{SUM}.py", FACTS, COMPILED).overloads[0].baseline == {"cuda": COMPILED, "cpu": COMPILED}
    with pytest.raises(UsageError, match="--against compile is for --suite kernelbench"):
        registry_of(None, (), "compile")


def test_cases_have_other_values_and_batch_sizes_and_the_files_own_call_is_timed() -> None:
    overload = problem().overloads[0]
    cases = expand_cases(overload, DeviceKind.CPU, None, "seed")
    shapes = [bind(overload, case).specs[0].shape for case in cases]
    assert {(shape[0], case.values) for shape, case in zip(shapes, cases, strict=True) if case.phase == "check"} == {
        (2, "default"), (3, "centred"), (2, "wide"), (1, "default"), (5, "default"),
    }  # fmt: skip
    assert [shape for shape, case in zip(shapes, cases, strict=True) if case.phase == "bench"] == [(32, 48)]
    assert any(case.phase == "fuzz" for case in cases)


def test_a_call_that_a_device_does_not_hold_is_timed_with_a_smaller_batch() -> None:
    large = problem(own=1 << 20, elements={str(1 << 20): 49 << 20})
    own, cpu = (large.overloads[0].bench[preset][0].variables["batch"] for preset in ("gpu80", "cpu"))
    assert own == 1 << 20
    assert 49 * cpu <= 1 << 22 < 2 * 49 * cpu


def test_a_batch_size_that_cannot_be_halved_stays_whole_where_a_device_holds_it() -> None:
    square = problem(own=1 << 15, halved=False, sizes=[1], elements={str(1 << 15): 1 << 30, "1": 1 << 16})
    batches = {preset: cases[0].variables["batch"] for preset, cases in square.overloads[0].bench.items()}
    assert batches == {"gpu24": 1, "gpu80": 1, "gpu140": 1 << 15, "cpu": 1}


def test_a_module_whose_smallest_call_no_gpu_holds_is_not_judged_there() -> None:
    smallest = problem(own=1 << 20, elements={str(1 << 20): 49 << 20, "2": 98}).overloads[0].module
    fixed = problem(batch="", own=0, sizes=[], elements={"0": 1 << 31}).overloads[0].module
    assert smallest is not None
    assert fixed is not None
    assert smallest.lacks_memory(DeviceKind.CUDA, 24.0) is None
    assert fixed.lacks_memory(DeviceKind.CUDA, 150.0) == DeviceMemory((1 << 31) * BYTES_OF_ELEMENT / 1e9, 150.0)
    assert fixed.lacks_memory(DeviceKind.CPU, 24.0) is None


def test_without_another_batch_size_all_calls_are_the_files_own() -> None:
    fixed = problem(call="((T([32, 48], f32),), {})", batch="", own=0, sizes=[], elements={"0": 1568})
    cases = expand_cases(fixed.overloads[0], DeviceKind.CPU, None, "seed")
    assert {bind(fixed.overloads[0], case).specs[0].shape for case in cases} == {(32, 48)}
    assert {case.values for case in cases} == {"default", "centred", "wide"}


def test_a_problem_travels_with_its_file() -> None:
    assert unpacked(packed(problem())) == problem()


def test_the_prompt_has_the_file_and_asks_for_a_module() -> None:
    text = prompt_for(problem(), PromptOptions()).text
    assert "class ModelNew" in text
    assert "Rows times a weight, summed, plus a bias." in text
    assert "ModelNew(x=float32[32, 48])" in text
    with pytest.raises(UsageError, match="--shots"):
        prompt_for(problem(), PromptOptions(shots=1))


def test_a_runs_folder_is_matched_by_number() -> None:
    found = match_folder(PLACE / "answers", checkout(SUITE).ids())
    assert [path.name for path in found.files[SUM]] == [f"level_1_problem_1_sample_{n}_kernel.py" for n in range(7)]
    (why,) = found.unmatched.values()
    assert "--suite kernelbench:PATH" in why


@pytest.mark.parametrize(
    "detail", [StateUnfit(("2 parameters, the problem's Model has 1",)), NoEntry("ModelNew", ("Other",), is_class=True)]
)
def test_details_are_told_and_read_back(detail: Any) -> None:
    assert detail_from_json(detail_to_json(detail)) == detail
    assert "class ModelNew" in words_of(detail) or "has 1" in words_of(detail)


def test_a_detail_of_an_older_run_is_read() -> None:
    old = {"type": "no entry", "entry": "softmax", "defined": ["f"]}
    assert detail_from_json(old) == NoEntry("softmax", ("f",))


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"weak": []}, "ok"),
        ({"weak": [["zeros pass", True]]}, "weak"),
        ({"weak": [["zeros pass", False]]}, "weak there"),
        ({"unjudgeable": "random"}, "not judged"),
        ({"unmeasured": "slow"}, "not measured"),
        ({"complaint": "no Model"}, "wrong"),
    ],
)
def test_what_validate_says_of_an_answer(answer: dict[str, Any], kind: str) -> None:
    assert verdict(answer)[0] == kind


def test_validate_and_prompt_refuse_what_is_no_checkout() -> None:
    for arguments in (["validate", "--suite", "opinfo"], ["prompt", "--suite", "kernelbench:nowhere", "level1/1"]):
        done = CliRunner().invoke(main, arguments)
        assert (done.exit_code, "KGB136" in done.stderr) == (2, True), done.stderr


def test_where_no_file_can_be_used_the_first_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        kernelbench, "ask", lambda module, files, limit_s: [{"path": each, "complaint": "no Model"} for each in files]
    )
    with pytest.raises(UsageError, match=r"level1/1_Scaled_row_sum_ cannot be judged \(nor can 1 other\): no Model"):
        checkout(SUITE).load([SUM, "level1/2_Masked_scale"])
