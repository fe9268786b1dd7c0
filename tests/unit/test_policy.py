"""The policy's table and what is read from a candidate's text; test_policy_torch.py has PyTorch's side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kgbench.core.kinds import Kind
from kgbench.policy.hints import hints
from kgbench.policy.rules import allowed
from kgbench.policy.tables import GROUPS, KIND_GROUPS, KIND_WORDS, METHODS
from kgbench.problem.model import Problem
from kgbench.problem.registry import Registry, load_problem
from tests.sampling import sampled_examples

PATHS = Registry().paths
MM = load_problem(PATHS["aten/mm"])
VIEW = load_problem(PATHS["aten/t"])


def of_kind(kind: str, name: str) -> Problem:
    """A problem of ATen by kind and operator."""
    return replace(MM, id=f"aten/{name}", name=name, kind=kind, overloads=())


@pytest.mark.parametrize(
    ("kind", "name", "operator", "may"),
    [
        ("compute", "mm", "aten::empty_like", True),
        ("compute", "mm", "aten.empty.memory_format", True),
        ("compute", "mm", "torch.ops.aten.as_strided.default", True),
        ("compute", "mm", "aten::_to_copy", True),
        ("compute", "mm", "aten::zero_", True),
        ("compute", "mm", "aten::constant_pad_nd", True),
        ("compute", "mm", "aten::mm", False),
        ("compute", "mm", "aten::mm.out", False),
        ("compute", "mm", "aten::matmul", False),
        ("compute", "mm", "aten::add.Tensor", False),
        ("compute", "mm", "aten::no_such_operator", False),
        ("compute", "mm", "_quantized::linear", False),
        ("compute", "mm", "aten::_neg_view", False),
        ("compute", "neg", "aten::_neg_view", False),
        ("compute", "clone", "aten::copy_", False),
        ("compute", "clone", "aten::contiguous", False),
        ("compute", "clone", "aten::empty_like", True),
        ("compute", "fill", "aten::full_like", False),
        ("creation", "zeros_like", "aten::zeros_like", False),
        ("creation", "zeros_like", "aten::empty_like", True),
        ("creation", "zeros_like", "aten::zero_", True),
        ("creation", "zeros_like", "aten::copy_", False),
        ("creation", "zeros", "aten::zero_", False),
        ("view", "t", "aten::as_strided", True),
        ("view", "t", "aten::t", False),
        ("view", "t", "aten::t_", False),
        ("view", "t", "aten::t_copy", False),
        ("view", "transpose", "aten::swapaxes", False),
        ("view", "t", "aten::clone", False),
        ("view", "t", "aten::empty", True),
        ("view", "t", "aten::zeros", False),
        ("sync", "item", "aten::_to_copy", True),
        ("sync", "item", "aten::_local_scalar_dense", False),
        ("sync", "is_nonzero", "aten::item", True),
        ("sync", "item", "aten::sum", False),
        ("random", "bernoulli", "aten::empty", True),
        ("random", "bernoulli", "aten::rand", False),
        ("compute", "mm", "_C::rms_norm", False),
        ("compute", "mm", "flag_gems::mm", False),
        ("compute", "mm", "prims::mul", False),
        ("compute", "mm", "mine::mm", True),
    ],
)
def test_what_a_kind_may_call(kind: str, name: str, operator: str, may: bool) -> None:
    verdict = allowed(of_kind(kind, name), operator)
    assert verdict.allowed is may
    assert verdict.why


def test_a_problem_of_another_source_has_its_library_operator_for_its_own() -> None:
    own = replace(MM, id="mine/product", source="mine", name="product")
    assert "operator of mine/product itself" in allowed(own, "aten::mm").why
    assert "operator of" not in allowed(replace(own, overloads=()), "aten::mm").why


def test_what_is_no_operator_is_refused() -> None:
    with pytest.raises(ValueError, match="is no operator's name"):
        allowed(MM, "mm")


def test_every_kind_has_groups_and_no_operator_stands_in_two() -> None:
    assert set(KIND_GROUPS) == set(KIND_WORDS) == set(Kind)
    assert {group for groups in KIND_GROUPS.values() for group in groups} == set(GROUPS)
    named = [name for names in GROUPS.values() for name in names]
    assert len(named) == len(set(named))
    assert not set(METHODS) & set(named)


# --- hints ---


def found(text: str, problem: Problem = MM) -> list[tuple[int, str]]:
    return [(hint.line, hint.what) for hint in hints(problem, text)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("import torch\ntorch.matmul(a, b)", [(2, "calls torch.matmul")]),
        ("import torch as t\nt.mm(a, b)", [(2, "calls torch.mm")]),
        ("from torch import matmul as m\nm(a, b)", [(2, "calls torch.matmul")]),
        ("import torch.nn.functional as F\nF.softmax(a, 0)", [(2, "calls torch.nn.functional.softmax")]),
        ("from torch.nn import functional as F\nF.softmax(a)", [(2, "calls torch.nn.functional.softmax")]),
        ("import torch\ntorch.nn.functional.pad(a, (1, 2))", []),
        ("import torch\ntorch.ops.aten.mm.default(a, b)", [(2, "calls torch.ops.aten.mm.default")]),
        ("import torch\ntorch.ops._C.rms_norm(a)", [(2, "calls torch.ops._C.rms_norm")]),
        ("import torch\ntorch.ops.mine.mm(a)", []),
        ("import torch\nf = torch.compile(f)", [(2, "calls torch.compile")]),
        ("a @ b", [(1, "uses @")]),
        ("a @= b", [(1, "uses @")]),
        ("a.softmax(0)", [(1, "calls .softmax()")]),
        ("import math\nmath.exp(a.size(0))", []),
        ("import torch\ntorch.Tensor.mm(a, b)", [(2, "calls torch.Tensor.mm")]),
        ("import cupy\ncupy.RawModule(code=x)", []),
        ("import cupy\ncupy.matmul(a, b)", [(2, "calls cupy.matmul")]),
        ("import vllm._custom_ops as ops\n", [(1, "imports vllm._custom_ops")]),
        ("from flag_gems import mm\n", [(1, "imports flag_gems")]),
        ("import kgbench.baselines\n", [(1, "imports kgbench.baselines")]),
        ("import ctypes\nctypes.CDLL('libcublas.so.13')", [(2, "names libcublas")]),
        ("code = '''\n\n#include <cublas_v2.h>'''", [(3, "names <cublas_v2.h>")]),
        ("code = 'return at::matmul(a, b);'", [(1, "names at::matmul")]),
        ("def f():\n    'like libcublas, torch.matmul'", []),
        ("import torch\nx = torch.empty_like(a).t().to(torch.float32).contiguous()", []),
        ("import torch\ntorch.cuda.synchronize(); torch.finfo(d); torch.device('cuda'); torch.Size([1])", []),
        ("import triton\n@triton.jit\ndef f(a):\n    a.sum()\n    a @ a", []),
        ("import triton\n@triton.autotune(configs=[], key=[])\n@triton.jit\ndef f(a):\n    a.exp()", []),
        ("class A:\n    def add(self, x):\n        return super().add(x)", []),
        ("not python at all (", []),
        ("import torch\ntorch.mm(a, b)\ntorch.mm(c, d)", [(2, "calls torch.mm")]),
    ],
)
def test_what_a_text_seems_to_call(text: str, what: list[tuple[int, str]]) -> None:
    assert found(text) == what


def test_a_hint_says_line_call_kind_and_rule() -> None:
    (hint,) = hints(MM, "import torch\n\ntorch.matmul(a, b)")
    assert str(hint) == (
        "line 3 calls torch.matmul, which compute candidates may not use "
        "(policy: it computes, which the kernel has to do itself)"
    )


def test_hints_follow_the_kind() -> None:
    text = "import torch\ntorch.clone(a)\ntorch.as_strided(a, (1,), (1,))\ntorch.t(a)"
    assert found(text) == []
    assert found(text, VIEW) == [(2, "calls torch.clone"), (4, "calls torch.t")]


@pytest.mark.parametrize("path", sampled_examples(), ids=lambda path: "/".join(path.parts[-3:]))
def test_the_examples_do_their_own_work(path: Path) -> None:
    problem = "/".join(path.with_suffix("").parts[-2:])
    assert hints(load_problem(PATHS[problem]), path.read_text(encoding="utf-8")) == []
