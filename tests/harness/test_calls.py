"""Problems whose cases are calls, judged with real workers: what comes back in every form, and what may be wrong."""

# ruff: noqa: E501  (signatures and kernels are texts of one line)

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from kgbench.core.outcomes import Outcome  # noqa: E402
from kgbench.core.paths import problems_dir  # noqa: E402
from kgbench.harness.session.session import Job, Session  # noqa: E402
from kgbench.harness.verdict.inputs import make_inputs  # noqa: E402
from kgbench.harness.verdict.judge import OverloadJudge  # noqa: E402
from kgbench.problem.cases import bind, expand_cases  # noqa: E402
from kgbench.problem.registry import load_problem  # noqa: E402

pytestmark = pytest.mark.torch

TEMPLATE = """\
summary: an operator of ATen
kind: {kind}
category: any
entry: "{entry}"
{keys}
dtypes: {{required: [float32]}}
arguments: {{{arguments}}}
cases:
  check: {calls}
  bench: {{cpu: {calls}, gpu24: {calls}}}
reference: "{reference}"
tolerance: {{rule: exact}}
doc: any
"""


@dataclass(frozen=True)
class Operator:
    """A problem of one overload."""

    entry: str
    reference: str
    calls: str
    kind: str = "compute"
    arguments: str = "self: {access: read, draw: normal()}"
    keys: str = ""
    name: str = ""

    def write(self, folder: Path) -> tuple[str, str]:
        """Its file below ``folder``, and its id."""
        name = self.name or self.entry.partition("(")[0]
        path = folder / "aten" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(TEMPLATE.format(**vars(self)), encoding="utf-8")
        return str(path), f"aten/{name}"


OPERATORS = {
    "split": Operator(
        "unsafe_split(self: Tensor, split_size: int, dim: int = 0) -> list[Tensor]",
        "def reference(self, split_size, dim): return list(torch.split(self, split_size, dim))",
        '["((T([5, 3], f32), 2), {})"]',
        kind="view",
        keys="overloads: {Tensor: {entry: 'unsafe_split_Tensor(self: Tensor, split_size: int, dim: int = 0) -> list[Tensor]'}}",
    ),
    "sort": Operator(
        "sort_stable(self: Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]",
        "def reference(self, stable, dim, descending): return tuple(torch.sort(self, dim=dim, descending=descending, stable=True))",
        """["((T([4, 9], f32),), {'stable': True})"]""",
        keys='baseline: {cuda: "aten:sort.stable", cpu: "aten:sort.stable"}',
        name="sort",
    ),
    "cat": Operator(
        "cat(tensors: list[Tensor], dim: int = 0) -> Tensor",
        "torch.cat(tensors, dim)",
        '["(([T([2, 3], f32), T([4, 3], f32, [1, 4])],), {})"]',
        arguments="tensors: {access: read, draw: normal()}",
    ),
    "index": Operator(
        "index_Tensor(self: Tensor, indices: list[Tensor | None]) -> Tensor",
        "def reference(self, indices): return self[:, indices[1]]",
        '["((T([4, 5], f32), [None, T([7], i64)]), {})"]',
        arguments="self: {access: read, draw: normal()}, indices: {access: read, draw: 'integers(0, self_shape[1] - 1)'}",
        keys='baseline: {cuda: "aten:index.Tensor", cpu: "aten:index.Tensor"}',
        name="index",
    ),
    "square_": Operator(
        "square_(self: Tensor) -> Tensor",
        "torch.mul(self, self)",
        '[{call: "((T([3, 4], f32, [1, 5]),), {})", values: whole, offset: 1}]',
        arguments="self: {access: readwrite, draw: {default: normal(), whole: 'integers(-9, 9)'}}",
        keys="returns: self",
    ),
    "neg_out": Operator(
        "neg_out(self: Tensor, *, out: Tensor) -> Tensor",
        "torch.neg(self)",
        '["((T([3, 4], f32),), {})"]',
        arguments="self: {access: read, draw: normal()}, out: {access: write, shape: self_shape}",
        keys='returns: out\nbaseline: {cuda: "aten:neg.out", cpu: "aten:neg.out"}',
        name="neg",
    ),
    "clone": Operator(
        "clone(self: Tensor, *, memory_format: memory_format | None = None) -> Tensor",
        "torch.clone(self)",
        """["((T([2, 3, 4, 5], f32, [60, 1, 15, 3]),), {'memory_format': torch.contiguous_format})",
           "((T([2, 3, 4, 5], f32, [60, 1, 15, 3]),), {})"]""",
        keys="returns: [{strides: aten}]",
    ),
    "resolve_conj": Operator(
        "resolve_conj(self: Tensor) -> Tensor",
        "torch.clone(self)",
        '[{call: "((T([3, 4], c64),), {})", lazy: conj}]',
    ),
    "item": Operator(
        "item(self: Tensor) -> Scalar",
        "def reference(self): return self.item()",
        '["((T([], f32),), {})", {call: "((T([1, 1], i64),), {})", offset: 2}]',
        kind="sync",
    ),
    "zeros": Operator(
        "zeros(size: list[int], *, dtype: dtype | None = None, layout: layout | None = None, device: device | None = None) -> Tensor",
        "def reference(size, **rest): return torch.zeros(size)",
        """["(([64, 33],), {'dtype': torch.float32, 'device': 'cuda'})"]""",
        kind="creation",
        arguments="",
    ),
    "empty_strided": Operator(
        "empty_strided(size: list[int], stride: list[int], *, device: device | None = None) -> Tensor",
        "def reference(size, stride, device): return torch.zeros(size)",
        """["(([4, 3], [1, 4]), {'device': 'cuda'})"]""",
        kind="creation",
        arguments="",
        keys="values: undefined",
    ),
}  # fmt: skip

RIGHT = {
    "split": "def unsafe_split_Tensor(x, n, dim=0):\n    return list(torch.split(x, n, dim))",
    "sort": "def sort_stable(x, *, stable, dim=-1, descending=False):\n    return tuple(torch.sort(x, dim=dim, descending=descending, stable=True))",
    "cat": "def cat(tensors, dim=0):\n    assert type(tensors) is list\n    return torch.cat(tensors, dim)",
    "index": "def index_Tensor(x, indices):\n    assert indices[0] is None\n    return x[:, indices[1]]",
    "square_": "def square_(x):\n    return x.mul_(x)",
    "neg_out": "def neg_out(x, *, out):\n    out.copy_(-x)\n    return out",
    "clone": "def clone(x, *, memory_format=None):\n    return x.clone() if memory_format is None else x.clone(memory_format=memory_format)",
    "resolve_conj": "def resolve_conj(x):\n    assert x.is_conj()\n    return x.resolve_conj()",
    "item": "def item(x):\n    return x.tolist() if x.dim() == 0 else x[0, 0].item()",
    "zeros": "def zeros(size, *, dtype=None, layout=None, device=None):\n    assert dtype is torch.float32 and device.type == 'cpu'\n    return torch.zeros(size, device=device)",
    "empty_strided": "def empty_strided(size, stride, *, device=None):\n    return torch.empty_strided(size, stride, device=device)",
}  # fmt: skip

SPLIT_COPIES = """
def unsafe_split_Tensor(x, n, dim=0):
    whole = x.clone()
    return list(torch.split(whole, n, dim))
"""
"""Copies with the geometry of the views."""
WRONG = [
    ("split", "def unsafe_split_Tensor(x, n, dim=0):\n    return [y.clone() for y in torch.split(x, n, dim)]", "not a view"),
    ("split", SPLIT_COPIES, "not a view"),
    ("split", "def unsafe_split_Tensor(x, n, dim=0):\n    return torch.split(x, n, dim)[0]", "returned 1 values"),
    ("sort", "def sort_stable(x, *, stable, dim=-1, descending=False):\n    return torch.sort(x).values", "returned 1 values"),
    ("index", "def index_Tensor(x, indices):\n    return x[:, indices[1].flip(0)]", "wanted"),
    ("square_", "def square_(x):\n    return x * x", "did not return 'self' itself"),
    ("square_", "def square_(x):\n    x.mul_(x)\n    return x.clone()", "did not return 'self' itself"),
    ("square_", "def square_(x):\n    x.mul_(x)\n    return x.t()", "did not return 'self' itself"),
    ("square_", "def square_(x):\n    x.mul_(x)", "did not return 'self' itself"),
    ("neg_out", "def neg_out(x, *, out):\n    x.copy_(-x)\n    return out", "changed input 'self'"),
    ("clone", "def clone(x, *, memory_format=None):\n    return x if memory_format is None else x.contiguous()", "shares storage"),
    ("clone", "def clone(x, *, memory_format=None):\n    return x.contiguous().clone()", "strides"),
    ("resolve_conj", "def resolve_conj(x):\n    return x.conj().clone().conj()", "lazy conjugate"),
    ("resolve_conj", "def resolve_conj(x):\n    return x.conj().clone()", "wanted"),
    ("item", "def item(x):\n    return float(x)", "wrong type: got float, expected int"),
    ("item", "def item(x):\n    return x.flatten()[0].item() + 1", "wrong value: got "),
    ("item", "def item(x):\n    return x", "wrong type: got Tensor, expected float"),
    ("zeros", "def zeros(size, *, dtype=None, layout=None, device=None):\n    return torch.zeros(1).expand(size)", "strides"),
    ("zeros", "def zeros(size, *, dtype=None, layout=None, device=None):\n    return torch.empty(size)", "wanted"),
    ("empty_strided", "def empty_strided(size, stride, *, device=None):\n    return torch.empty(size)", "strides"),
]  # fmt: skip


def judged(session: Session, folder: Path, operator: str, source: str) -> tuple[Outcome, str]:
    path, _ = OPERATORS[operator].write(folder)
    result = session.evaluate(Job(load_problem(path), "test", source=f"import torch\n\n\n{source}\n"))
    return result.outcome, f"{result.reason} {result.log_tail}"


@pytest.mark.parametrize("operator", OPERATORS)
def test_right(session: Session, tmp_path: Path, operator: str) -> None:
    assert judged(session, tmp_path, operator, RIGHT[operator])[0] is Outcome.PASSED, judged


@pytest.mark.parametrize(("operator", "source", "words"), WRONG)
def test_wrong(session: Session, tmp_path: Path, operator: str, source: str, words: str) -> None:
    outcome, reason = judged(session, tmp_path, operator, source)
    assert outcome is not Outcome.PASSED
    assert words in reason


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_library_and_the_reference_agree(session: Session, tmp_path: Path, operator: str) -> None:
    path, _ = OPERATORS[operator].write(tmp_path)
    for trusted in ("baseline", "reference"):
        result = session.evaluate(Job(load_problem(path), "test", trusted=trusted))
        assert (result.outcome, result.reason) == (Outcome.PASSED, "")


def test_rules_that_divide_by_a_size_of_zero_are_asked_on_the_cpu() -> None:
    """Without data the mean of no elements raises ZeroDivisionError within torch."""
    overload = load_problem(problems_dir() / "aten" / "smooth_l1_loss_backward.yaml").overloads[0]
    call = "((T([], f32), T([0, 3], f32), T([0, 3], f32), 1, 1.0), {})"
    case = next(case for case in expand_cases(overload, "cpu", None, "any") if case.variables["call"] == call)
    inputs = make_inputs(overload, bind(overload, case), torch.Generator("cpu").manual_seed(0))
    assert [each.shape for each in OverloadJudge(overload, torch.device("cpu")).output_specs(inputs)] == [(0, 3)]
