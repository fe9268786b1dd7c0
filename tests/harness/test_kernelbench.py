"""Problems that are modules, in files of KernelBench's form: candidates of a runs folder judged by real processes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

import torch

from kgbench.baselines.expected import Expected
from kgbench.harness.candidate.modules import fill
from kgbench.harness.session.server import ForkServer
from kgbench.harness.verdict.compare import Limits, compare
from kgbench.harness.verdict.modules import reference
from kgbench.harness.verdict.modules.reference import ULPS, ModuleReference, a_rounding_smaller
from kgbench.harness.verdict.modules.trusted import TrustedModule, copied
from kgbench.harness.verdict.secret_draws import SecretGenerator
from kgbench.problem.modules import ModuleSource
from tests.harness.sessions import kgbench, shared

# The run of this module is looked at by several tests.
pytestmark = [
    pytest.mark.torch,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("kernelbench"),
    pytest.mark.in_turn("kgbench/problem/kernelbench.py", "kgbench/harness/verdict/modules/", together=True),
    pytest.mark.usefixtures("commands_share_it"),
]
PLACE = Path(__file__).parents[1] / "candidates" / "modules"
SUITE = f"kernelbench:{PLACE}"
SUM = "level1/1_Scaled_row_sum_"
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> dict[Any, Any]:
    """Results by problem and sample of a run with the runs folder."""
    folder = tmp_path_factory.mktemp("kernelbench")
    with shared(fork_server):
        done = kgbench(folder, "run", "--suite", SUITE, "--model", f"dir:{PLACE / 'answers'}", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    (run,) = (folder / "runs").iterdir()
    lines = (run / "results.jsonl").read_text(encoding="utf-8").splitlines()
    results = {(each["problem"], each["sample"]): each for each in map(json.loads, lines)}
    return {"stdout": done.stdout, "stderr": done.stderr, "info": json.loads((run / "run.json").read_text()), **results}


@pytest.mark.parametrize(
    ("problem", "sample", "outcome", "words"),
    [
        (SUM, 0, "passed", None),
        (SUM, 1, "passed", None),  # its parameters have other names, the same shapes in the same order
        (SUM, 2, "wrong value", '"output": "return"'),  # it leaves the bias out, which the file makes zero
        (SUM, 3, "rejected", "aten::"),  # PyTorch does the work
        (SUM, 4, "compile error", "no parameter weight [48]"),
        (SUM, 5, "compile error", '"defined": ["Other"]'),
        (SUM, 6, "wrong value", '"got": "0"'),  # it looks for the trusted module among its objects, in vain
        ("level1/2_Masked_scale", 0, "passed", None),
        ("level2/1_Dropped", 0, "no candidate", None),
    ],
)
def test_candidates_get_their_verdicts(
    judged: dict[Any, Any], problem: str, sample: int, outcome: str, words: str | None
) -> None:
    result = judged[problem, sample]
    assert result["outcome"] == outcome, result["detail"]
    assert words is None or words in json.dumps(result["detail"])


def test_the_state_that_fits_nowhere_has_a_detail_of_its_own(judged: dict[Any, Any]) -> None:
    assert judged[SUM, 4]["detail"]["type"] == "state"


def test_calls_come_in_other_values_and_batch_sizes(judged: dict[Any, Any]) -> None:
    asked = [each["variables"] for each in judged[SUM, 0]["cases"]]
    assert {each["values"] for each in asked} == {"default", "centred", "wide"}
    assert {1, 2, 3, 5, 32} == {each["batch"] for each in asked}


def test_a_file_that_cannot_be_used_is_named_and_left_out(judged: dict[Any, Any]) -> None:
    assert "KGB629" in judged["stderr"]
    assert "3_No_model is left out: the file defines no Model" in judged["stderr"]
    assert "level2/3_No_model" not in {each["id"] for each in judged["info"]["problems"]}


def test_a_sample_of_no_problem_is_named(judged: dict[Any, Any]) -> None:
    assert (
        "level_9_problem_1_sample_0_kernel.py: a KernelBench sample of a problem that is not here" in judged["stderr"]
    )


def test_shares_are_per_level(judged: dict[Any, Any]) -> None:
    assert re.search(r"^level1 compute +4 ", judged["stdout"], re.MULTILINE)
    assert re.search(r"^level2 compute +2 ", judged["stdout"], re.MULTILINE)


@pytest.fixture(scope="module")
def as_baseline(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> dict[str, Any]:
    """Results by problem of a run with the problems' own modules."""
    folder = tmp_path_factory.mktemp("baseline")
    wanted = ("--problems", "level1/1,level1/10,level1/11", "--problems", "level2/*")
    with shared(fork_server):
        done = kgbench(folder, "run", "--suite", SUITE, "--model", "baseline", *wanted, "--device", "cpu")
    (run,) = (folder / "runs").iterdir()
    lines = (run / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return {"stdout": done.stdout, **{each["problem"]: each for each in map(json.loads, lines)}}


def test_a_weak_problem_is_marked_below_the_table(as_baseline: dict[str, Any]) -> None:
    assert re.search(r"weak, wrong answers pass: level1/10_Leaky_output: all but zero", as_baseline["stdout"])
    assert "weak" not in as_baseline[SUM]["library"]["notes"]


def test_the_module_itself_is_right_and_timed(as_baseline: dict[str, Any]) -> None:
    result = as_baseline[SUM]
    assert (result["outcome"], result["library"]["name"]) == ("passed", f"PyTorch {torch.__version__} eager")
    assert [each["id"] for each in result["cases"] if each["timing"]] == ["bench-cpu-1-float32"]


def test_a_batch_size_that_cannot_be_halved_is_not(as_baseline: dict[str, Any]) -> None:
    result = as_baseline["level1/11_Margin_of_rows"]
    assert result["outcome"] == "passed", result["detail"]
    assert {each["variables"]["batch"] for each in result["cases"]} == {1}  # 2560 is more than a CPU is given


def test_what_cannot_be_judged_is_skipped_with_its_reason(as_baseline: dict[str, Any]) -> None:
    dropped, hidden = as_baseline["level2/1_Dropped"], as_baseline["level2/2_Hidden_start"]
    assert (dropped["outcome"], hidden["outcome"]) == ("skipped", "skipped")
    assert "its output is random" in dropped["detail"]["why"]
    assert "no part of its state_dict" in hidden["detail"]["why"]


def test_validate_names_weak_problems(tmp_path: Path) -> None:
    done = kgbench(tmp_path, "validate", "--suite", SUITE)
    assert done.returncode == 0, done.stderr
    told = re.findall(r"^(\w[\w ]*?) {2,}(level\d/\w+)((?:\n .*)*)", done.stdout, re.MULTILINE)
    said = {name: f"{kind}{reasons}" for kind, name, reasons in told}
    assert said[SUM] == "ok"
    assert said["level1/2_Masked_scale"] == "ok"
    weak = said["level1/10_Leaky_output"]
    assert weak.startswith("weak")
    for words in ("zeros pass", "the answer to other inputs passes", "input 1 is ignored", "parameters are ignored"):
        assert words in weak
    assert said["level2/1_Dropped"].startswith("not judged")
    assert said["level2/3_No_model"].startswith("wrong")


# --- parts ---


def made(text: str, secret: str = "secret") -> TrustedModule:
    return TrustedModule(ModuleSource("own.py", text), secret, CPU)


PRODUCT = """\
import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.rand(64, 2048), torch.rand(2048, 32)]


def get_init_inputs():
    return []
"""


COUNTER = """\
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(1))

"""


def share_wrong(module: TrustedModule, values: str, change: Any) -> float:
    """Share of the elements of a product that are beyond their limits when ``change`` computes it."""
    a, b = module.inputs(SecretGenerator(CPU, b"inputs"), values)
    answer = ModuleReference(module).answers({"a": a, "b": b}, ())["return"]
    assert isinstance(answer, Expected)
    wrong = compare("return", change(a, b), answer, Limits("rounding", ulps=ULPS))
    return 0.0 if wrong is None else wrong.wrong_share  # type: ignore[union-attr]


def one_by_one(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(a.shape[0], b.shape[1])
    for k in range(a.shape[1]):
        total = total + a[:, k, None] * b[None, k]
    return total


def in_tf32(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    short_a, short_b = ((each.view(torch.int32) & ~0x1FFF).view(torch.float32) for each in (a, b))
    return short_a @ short_b


@pytest.mark.parametrize("values", ["default", "centred", "wide"])
def test_float32_in_another_order_is_within_the_limit_and_tf32_is_not(values: str) -> None:
    module = made(PRODUCT)
    assert share_wrong(module, values, torch.matmul) == 0
    assert share_wrong(module, values, one_by_one) == 0
    assert share_wrong(module, values, in_tf32) > 0.1


def test_some_elements_of_a_large_output_say_how_far_float32_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "MOST_ELEMENTS", 512)
    module = made(PRODUCT)
    assert share_wrong(module, "centred", one_by_one) == 0
    assert share_wrong(module, "centred", in_tf32) > 0.1


def test_zeros_between_elements_do_not_say_how_far_small_ones_may_be_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "MOST_ELEMENTS", 512)
    module = made(PRODUCT.replace("a @ b", "(a @ b).repeat_interleave(2, 1) * torch.tensor([0.0, 1.0]).repeat(32)"))

    def with_zeros(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return one_by_one(a, b).repeat_interleave(2, 1) * torch.tensor([0.0, 1.0]).repeat(32)

    assert share_wrong(module, "centred", with_zeros) == 0


INSTANCE_NORM = PRODUCT.replace("a @ b", "torch.nn.functional.instance_norm(a[None, None])[0, 0] + 0 * b[0, 0]")


def test_a_mean_whose_sums_are_shifted_by_an_element_is_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def shifted(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """As kernels compute it in one pass: sums of the distances from an element, added one after the other."""
        first = a.flatten()[7]
        mean = first + ((a - first).reshape(-1, 256).cumsum(0)[-1].sum() / a.numel())
        return (a - mean) * torch.rsqrt(a.var(correction=0) + 1e-5) + 0 * b[0, 0]

    module = made(INSTANCE_NORM)
    assert share_wrong(module, "centred", shifted) == 0
    monkeypatch.setattr(reference, "a_rounding_smaller", copied)
    assert share_wrong(module, "centred", shifted) > 0


def test_an_input_a_rounding_smaller_stays_in_its_interval() -> None:
    given = torch.tensor([1.0, 1.5, 1e-45, 0.0, -1.0, torch.inf, -torch.inf, torch.nan])
    smaller = a_rounding_smaller(given)
    assert smaller[:2].tolist() == [1 - 2**-24, 1.5 - 2**-23]
    assert torch.equal(smaller[2:7], given[2:7])
    assert torch.isnan(smaller[7])
    assert a_rounding_smaller(torch.tensor([3])).tolist() == [3]


def test_small_elements_are_not_judged_by_what_large_ones_are_off() -> None:
    text = PRODUCT.replace("a @ b", "torch.exp(8 * a[:, :64]) * b[0, 0]")
    module = made(text)
    a, b = module.inputs(SecretGenerator(CPU, b"inputs"), "wide")
    answer = ModuleReference(module).answers({"a": a, "b": b}, ())["return"]
    right = module.run([a, b])[0]
    assert isinstance(answer, Expected)
    assert compare("return", right, answer, Limits("rounding", ulps=ULPS)) is None
    small = torch.where(right.abs() < right.abs().median(), 0.0, right)
    assert compare("return", small, answer, Limits("rounding", ulps=ULPS)) is not None


def test_parameters_are_secret_and_none_holds_one_number_only() -> None:
    text = (PLACE / f"{SUM}.py").read_text(encoding="utf-8")
    one, same, other = (made(text, secret) for secret in ("a", "a", "b"))
    assert torch.equal(one.state["weight"], same.state["weight"])
    assert not torch.equal(one.state["weight"], other.state["weight"])
    assert bool((one.state["bias"] != 0).all())


def test_running_a_module_leaves_its_state_and_inputs_alone() -> None:
    text = PRODUCT.replace("    def forward", COUNTER + "    def forward")
    text = text.replace("return a @ b", "self.n += 1; a.relu_(); return a * self.n")
    module = made(text)
    inputs = module.inputs(SecretGenerator(CPU, b"inputs"), "centred")
    before = inputs[0].clone()
    first, second = module.run(inputs)[0], module.run(inputs)[0]
    assert torch.equal(first, second)
    assert torch.equal(inputs[0], before)
    assert module.state["n"].item() == 0


def test_state_fits_by_name_before_order() -> None:
    class Two(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.second, self.first = (torch.nn.Parameter(torch.zeros(2)) for _ in range(2))

    model = Two()
    given = {"first": torch.tensor([1.0, 1.0]), "second": torch.tensor([2.0, 2.0])}
    assert fill(model, given, {}) == ("name", [])
    assert model.first.tolist() == [1.0, 1.0]
    renamed = {"a": given["first"], "b": given["second"]}
    assert fill(model, renamed, {}) == ("order", [])
    assert model.second.tolist() == [1.0, 1.0]
    way, differences = fill(model, {"first": torch.zeros(3)}, {})
    assert (way, differences[0]) == ("", "2 parameters, the problem's Model has 1")
