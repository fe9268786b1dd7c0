"""Keys of problems whose answers or arguments are not plain: ``canonical``, ``needs``, and tensors on the host."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.baselines.expected import Expected  # noqa: E402
from kgbench.baselines.references.aten_reduce import compared  # noqa: E402
from kgbench.core.details.absence import Capability  # noqa: E402
from kgbench.core.details.sentences import words_of  # noqa: E402
from kgbench.core.details.values import Mismatch  # noqa: E402
from kgbench.core.errors import KgbenchError  # noqa: E402
from kgbench.core.outcomes import Outcome  # noqa: E402
from kgbench.core.types import Result  # noqa: E402
from kgbench.core.verdicts import PASSED, Verdict  # noqa: E402
from kgbench.harness.candidate.calls import decode  # noqa: E402
from kgbench.harness.clock.window_inputs import WindowLayout  # noqa: E402
from kgbench.harness.referee.referee import out_of_reach  # noqa: E402
from kgbench.harness.verdict.canonical import in_one_form  # noqa: E402
from kgbench.harness.verdict.compare import Limits, compare  # noqa: E402
from kgbench.harness.verdict.inputs import Chunk  # noqa: E402
from kgbench.harness.verdict.judge import OverloadJudge  # noqa: E402
from kgbench.harness.wire.buffers import HostBuffer  # noqa: E402
from kgbench.problem.cases import expand_cases  # noqa: E402
from kgbench.problem.model import Needs, Problem  # noqa: E402
from kgbench.problem.registry import load_problem  # noqa: E402
from kgbench.selftest import mutants as mutation  # noqa: E402

pytestmark = pytest.mark.torch

PROBLEM = """\
summary: the two largest of each row and their places, in any order
kind: creation
category: test
entry: "places(values: Tensor, out: Tensor, self: Tensor, weights: Tensor) -> None"
dtypes: {required: [float32]}
arguments:
  values: {access: write, shape: "(m, 2)"}
  out: {access: write, shape: "(m, 2)", dtype: "int32"}
  self: {access: read, shape: "(m, n)", draw: "integers(0, 3)"}
  weights: {access: read, shape: "(n,)", dtype: "int32", device: cpu, draw: "permutation()"}
cases:
  check: [{m: 9, n: 8}]
reference: "MODULE:reference"
canonical: "MODULE:canonical"
tolerance: {rule: rounding}
doc: Of equal ones any.
""".replace("MODULE", __name__)


def reference(
    values: torch.Tensor, out: torch.Tensor, self: torch.Tensor, weights: torch.Tensor
) -> dict[str, torch.Tensor]:
    largest = torch.topk(self, 2)
    return {"values": largest.values, "out": largest.indices}


def canonical(outputs: dict[str, torch.Tensor], arguments: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The values at the places, sorted; -1, which is nobody's, where places are out of range or the same."""
    given, places = arguments["self"], outputs["out"].long()
    right = ((places >= 0) & (places < given.shape[1])).all(dim=1, keepdim=True) & (places[:, :1] != places[:, 1:])
    found = given.gather(1, torch.where(right, places, 0))
    return {
        "values": outputs["values"].sort(dim=1).values,
        "out": torch.where(right, found, -1.0).sort(dim=1).values,
    }


def loaded(folder: Path, text: str = PROBLEM) -> Problem:
    path = folder / "mine" / "places.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return load_problem(path)


class Judged:
    """One call of the problem's only case, and what a candidate left behind."""

    def __init__(self, folder: Path) -> None:
        self.judge = OverloadJudge(loaded(folder).overloads[0], torch.device("cpu"))
        (case,) = expand_cases(self.judge.overload, "cpu", None, "seed")
        self.call = self.judge.place(case, torch.Generator().manual_seed(3))
        self.given = self.call.inputs.arguments()["self"]

    def verdict(self, values: torch.Tensor, out: torch.Tensor) -> Verdict:
        snapshot = torch.zeros(self.call.end, dtype=torch.uint8)
        for offset, image in self.call.inputs.images(0):
            snapshot[offset : offset + image.numel()] = image
        for name, value in (("values", values), ("out", out)):
            chunk = self.call.inputs.chunks[name]
            chunk.view(snapshot[chunk.offset : chunk.offset + chunk.image.numel()]).copy_(value)
        return self.judge.judge(self.call, snapshot)


def test_every_order_of_equals_is_right_and_nothing_else(tmp_path: Path) -> None:
    judged = Judged(tmp_path)
    assert not torch.equal(judged.given.sort(stable=True, descending=True).indices[:, :2], judged.given.topk(2).indices)
    for stable in (False, True):
        values, places = judged.given.sort(stable=stable, descending=True)
        values, places = values[:, :2], places[:, :2]
        assert judged.verdict(values, places) is PASSED
        assert judged.verdict(values.flip(1), places.flip(1)) is PASSED
        for wrong in (places[:, :1].expand(-1, 2), places + 8, places - 8, places.flip(0), -places - 1):
            found = judged.verdict(values, wrong)
            assert found.outcome is Outcome.WRONG_VALUE
            assert isinstance(found.detail, Mismatch)
            assert found.detail.output == "out"
        assert judged.verdict(values + 1e-3, places).outcome is Outcome.WRONG_VALUE


def test_a_form_keeps_dtypes_and_limits() -> None:
    one = torch.ones(3, dtype=torch.float64)

    def form(outputs: dict[str, torch.Tensor], arguments: dict[str, Any]) -> dict[str, torch.Tensor]:
        assert arguments["x"].dtype == torch.float64
        return {"kept": outputs["kept"], "moved": outputs["moved"].flip(0).to(torch.float64), "codes": outputs["codes"]}

    outputs = {"kept": one.half(), "moved": one.half(), "codes": torch.ones(3, dtype=torch.int8)}
    expected = {
        "kept": Expected(one, 7 * one), "moved": Expected(one, 7 * one), "codes": Expected(torch.ones(3).long())
    }  # fmt: skip
    got, wanted = in_one_form(form, outputs, expected, {"x": one.half()})
    assert (got["kept"].dtype, got["moved"].dtype) == (torch.float16, torch.float16)
    assert (wanted["moved"].value.dtype, wanted["codes"].value.dtype) == (torch.float64, torch.int8)
    assert wanted["kept"].magnitude is not None
    assert wanted["moved"].magnitude is None


def test_on_a_gpu_a_tensor_of_the_host_travels_by_its_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged, buffer = Judged(tmp_path), HostBuffer.create(4096)
    assert "tensor" in judged.judge.requests.call(judged.call).args[3]
    monkeypatch.setattr(Chunk, "is_on_host", property(lambda chunk: chunk.spec.host))
    window = WindowLayout(judged.judge, judged.call).draw(2, torch.Generator().manual_seed(4))
    for call in (judged.call, window.call(0), window.call(1)):
        message = judged.judge.requests.call(call)
        assert ["tensor" in each for each in message.args] == [True, True, True, False]
        weights = decode(message.args[3], buffer, 0, "cuda")
        assert torch.equal(weights, judged.call.inputs.arguments()["weights"])
        assert (weights.dtype, weights.device.type) == (torch.int32, "cpu")
    assert not torch.equal(window.call(0).inputs.arguments()["self"], window.call(1).inputs.arguments()["self"])
    assert "tensor" in judged.judge.requests.call(judged.call, trusted_reference=True).args[3]


@pytest.mark.parametrize(
    ("needs", "capability", "lacking"),
    [
        (Needs(90), 90, ""),
        (Needs(90), 120, ""),
        (Needs(90), None, ""),
        (Needs(90), 89, "needs compute capability 9.0 or newer; this GPU has 8.9"),
        (Needs(75, 89, "no code for it"), 75, ""),
        (Needs(75, 89, "no code for it"), 90, "needs compute capability 7.5 to 8.9: no code for it; this GPU has 9.0"),
        (Needs(90, 90), 100, "needs compute capability 9.0; this GPU has 10.0"),
    ],
)
def test_needs_say_what_is_lacking(needs: Needs, capability: int | None, lacking: str) -> None:
    found = needs.lacking(capability)
    assert ("" if found is None else words_of(found)) == lacking


def test_a_device_out_of_reach_skips_with_the_reason(tmp_path: Path) -> None:
    problem = loaded(tmp_path, PROBLEM + "needs: {capability: 90, reason: fp8}\n")
    verdict = Verdict(Outcome.SKIPPED, Capability(90, None, "fp8", 80))
    assert verdict.reason == "needs compute capability 9.0 or newer: fp8; this GPU has 8.0"
    assert out_of_reach(problem, 80) == {"": verdict}
    skipped = Result("mine/places", "mutant:zeros", 0, Outcome.SKIPPED, detail=verdict.detail)
    assert mutation._state(skipped, problem.overloads[0], "zeros") == (mutation.NOT_APPLICABLE, "", verdict.reason)
    assert out_of_reach(problem, None) == {}


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("needs: {capability: [90, 75]}", "needs.capability: expected a compute capability or two, got (90, 75)"),
        ("needs: {capability: sm_90}", "needs.capability: expected a compute capability or two, got sm_90"),
        ("needs: {reason: fp8}", "needs: 'capability' is missing"),
    ],
)
def test_a_wrong_key_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    with pytest.raises(KgbenchError, match=re.escape(complaint)):
        loaded(tmp_path, PROBLEM.replace("tolerance:", f"{line}\ntolerance:"))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("access: readwrite, device: cpu", "device: a tensor on the host is read only"),
        ("access: read, device: cuda", "device: 'cuda' is not known here; there are cpu"),
        ('access: read, device: cpu, strides: "(2,)"', "strides: a tensor on the host is row-major and whole"),
    ],
)
def test_a_tensor_on_the_host_is_plain(tmp_path: Path, change: str, complaint: str) -> None:
    text = PROBLEM.replace(
        'access: read, shape: "(n,)", dtype: "int32", device: cpu', f'{change}, shape: "(n,)", dtype: "int32"'
    )
    with pytest.raises(KgbenchError, match=re.escape(complaint)):
        loaded(tmp_path, text)


def judged(problem_path: Path, problem: str, sort: tuple[str, str], answer: Any) -> list[Outcome | None]:
    """What the judge says of an answer in each check case of (overload, value set); None where it passes."""
    overload = next(
        each for each in load_problem(problem_path / "aten" / f"{problem}.yaml").overloads if each.name == sort[0]
    )
    judge, found = OverloadJudge(overload, torch.device("cpu")), []
    for case in expand_cases(overload, "cpu", None, "s"):
        if case.phase == "check" and case.values == sort[1]:
            call = judge.place(case, torch.Generator().manual_seed(3))
            given = answer(*call.inputs.arguments().values())
            if given is not None:
                verdict = judge.values(call, {"return": given})
                found.append(None if verdict is PASSED else verdict.outcome)
    assert found
    return found


def test_a_real_factor_of_a_complex_number_may_be_made_complex_or_not(problem_path: Path) -> None:
    def by_parts(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor | None:
        if not self.is_complex() or other.is_complex():
            return None
        return torch.view_as_complex(torch.view_as_real(self) * other[..., None])

    def finite(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor | None:
        right = by_parts(self, other)
        return None if right is None else torch.nan_to_num(right)

    for answer, wanted in ((torch.mul, {None}), (by_parts, {None}), (finite, {Outcome.WRONG_VALUE})):
        assert set(judged(problem_path, "mul", ("Tensor", "special"), answer)) == wanted


@pytest.mark.parametrize("name", ["eq", "gt", "le"])
def test_a_number_may_be_rounded_before_it_is_compared_or_not(problem_path: Path, name: str) -> None:
    operator = getattr(torch, name)

    def exact(self: torch.Tensor, other: float) -> torch.Tensor:
        return operator(self.double(), other)

    def other_way(self: torch.Tensor, other: float) -> torch.Tensor:
        return ~operator(self, other)

    for answer, wanted in ((operator, {None}), (exact, {None}), (other_way, {Outcome.WRONG_VALUE})):
        assert set(judged(problem_path, name, ("Scalar", "inexact"), answer)) == wanted


@pytest.mark.parametrize("values", ["huge", "tiny"])
def test_a_norm_whose_squares_leave_float32_may_be_infinite_or_zero(problem_path: Path, values: str) -> None:
    def exact(self: torch.Tensor, p: float, dim: int, maxnorm: float) -> torch.Tensor:
        wide = torch.complex128 if self.is_complex() else torch.float64
        return torch.renorm(self.to(wide), p, dim, maxnorm).to(self.dtype)

    def half(self: torch.Tensor, p: float, dim: int, maxnorm: float) -> torch.Tensor:
        return self / 2

    for answer, wanted in ((torch.renorm, {None}), (exact, {None}), (half, {Outcome.WRONG_VALUE})):
        assert set(judged(problem_path, "renorm", ("default", values), answer)) == wanted


@pytest.mark.parametrize("other", [16777219, 16777219.0, -16777219])
def test_a_whole_number_beside_floats_may_be_rounded_first_like_any_number(other: float) -> None:
    """Between two numbers of float32, of which PyTorch takes the even one."""
    self = torch.tensor([16777220.0, -16777220.0], dtype=torch.float64)
    for operator in (torch.le, torch.gt, torch.eq):
        right = compared(operator, self, other)
        exact, rounded = operator(self, other), operator(self.float(), other)
        limits = Limits("exact", exact=True)
        assert compare("return", exact, right, limits) is None
        assert compare("return", rounded, right, limits) is None
        assert compare("return", ~exact, right, limits) is not None
    assert compared(torch.le, torch.tensor([16777220]), other).also is None  # whole numbers beside each other
