"""Expressions: what they can say, what they cannot, and that nothing is coerced on the way."""

from __future__ import annotations

import gc
import math
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kgbench.core.errors import ExpressionError
from kgbench.problem.expressions import CONSTANTS, ITEMSIZE, Expr, evaluate_reference, reference_names
from kgbench.problem.file_place import FilePlace

PLACE = FilePlace("file.yaml", 3, "key")
VARIABLES = {"m": 5, "n": 7, "ta": "T", "pad": 0, "shape": (2, 3, 4), "flag": True, "nothing": None}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(m, n) if ta == 'N' else (n, m)", (7, 5)),
        ("max(1, m + pad) * 2 ** 3", 40),
        ("m // 2, m % 2, -m, +m, m / 2", (2, 1, -5, 5, 2.5)),
        ("0 < m <= 5 != n", True),
        ("0 < m < 5 < n", False),
        ("m > 9 and n // 0", False),
        ("pad or ta", "T"),
        ("not pad", True),
        ("ta in ('N', 'T')", True),
        ("nothing is None", True),
        ("shape[1], shape[-1], shape[1:]", (3, 4, (3, 4))),
        ("prod(shape) + sum(shape) + len(shape)", 36),
        ("ceil_div(m, 2), round_up(m, 4)", (3, 8)),
        ("distinct(1, 9), distinct(4, 0), distinct(2, 2), distinct(0.25, 3)", (1.0, 0.0, 1.5, 0.25)),
        ("(1,) * len(shape) + shape", (1, 1, 1, 2, 3, 4)),
        ("complex(1, -1) * 1j", 1 + 1j),
        ("sqrt(16)", 4.0),
        ("float16", "float16"),
        ("itemsize_of(bfloat16)", 2),
        ("-inf", -math.inf),
        ("[m, n]", [5, 7]),
        ("5 & 4 | 2 ^ 1", 7),
    ],
)
def test_value(text: str, value: Any) -> None:
    assert Expr.parse(text).evaluate(VARIABLES) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("m.real", "attributes are not allowed, got '.real'"),
        ("__import__('os')", "there is no function '__import__'; there are abs, broadcast, ceil_div"),
        ("shape[0](1)", "only a named function can be called"),
        ("[x for x in shape]", "listcomp is not allowed in an expression"),
        ("lambda: 1", "lambda is not allowed in an expression"),
        ("max(m, key=n)", "keyword arguments are not allowed"),
        ("f'{m}'", "joinedstr is not allowed in an expression"),
        ("b'm'", "b'm' is not allowed"),
        ("(m", "'(m' is not an expression: '(' was never closed"),
        ("m := 1", "is not an expression"),
        ("(*shape, 1)", "starred is not allowed in an expression"),
        ("1 + " * 600 + "1", "an expression has at most 2000 characters"),
    ],
)
def test_refused_at_parsing(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        Expr.parse(text, PLACE)
    assert words in str(caught.value)
    assert str(caught.value).startswith("file.yaml:3: key: ")
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rows", "there is no variable 'rows'"),
        ("m // pad", "by zero"),
        ("9 ** 9 ** 9", "is too large"),
        ("(1,) * 10 ** 9", "a sequence of more than 4096 elements"),
        ("'a' * 5", "only a tuple or list can be repeated"),
        ("'%99999999d' % 1", "% does not format text here"),
        ("1 << 10 ** 9", "is too large"),
        ("shape[9]", "out of range"),
        ("m + ta", "unsupported operand"),
    ],
)
def test_refused_at_evaluation(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        Expr.parse(text, PLACE).evaluate(VARIABLES)
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"file.yaml:3: key: cannot evaluate '{text}': ")


def test_names_are_variables_only() -> None:
    assert Expr.parse("max(m, nan) if ta == float32 else len(shape)").names == {"m", "ta", "shape"}


def test_equality_is_of_texts() -> None:
    assert Expr.parse("m + 1", PLACE) == Expr.parse("m + 1")
    assert hash(Expr.parse("m + 1", PLACE)) == hash(Expr.parse("m + 1"))
    assert Expr.parse("m+1") != Expr.parse("m + 1")


def test_masks_go_through_uncoerced() -> None:
    i, j = np.meshgrid(np.arange(3), np.arange(3), indexing="ij")
    mask = Expr.parse("(i >= j) & ~(i == 2) | (0 <= j < 1)").evaluate({"i": i, "j": j})
    assert mask.tolist() == [[True, False, False], [True, True, False], [True, False, False]]


def test_variables_come_before_constants() -> None:
    assert Expr.parse("pi").evaluate({"pi": 3}) == 3


def test_every_dtype_is_a_constant_with_a_size() -> None:
    assert all(CONSTANTS[name] == name and size in (1, 2, 4, 8, 16) for name, size in ITEMSIZE.items())


def test_reference_calls_torch_with_keywords() -> None:
    def softmax(x: list[float], dim: int = 0) -> tuple[list[float], int]:
        return x, dim

    torch = SimpleNamespace(nn=SimpleNamespace(functional=SimpleNamespace(softmax=softmax)), float64="f64")
    assert evaluate_reference("torch.nn.functional.softmax(self, dim=m - 1)", {"self": [1.0], "m": 3}, torch) == (
        [1.0],
        2,
    )
    assert evaluate_reference("torch.float64", {}, torch) == "f64"
    assert reference_names("torch.nn.functional.softmax(self, dim=m - 1)") == {"self", "m"}


@pytest.mark.parametrize(
    "text",
    ["torch.load('x')", "torch.os.system('x')", "torch.__dict__", "self.data", "torch.hub.load('x')", "torch._C.f()",
     "torch.nn.functional.os.f()", "torch.ops.aten.mul(self, 2)", "torch.manual_seed(0)", "torch.softmax(**self)"],
)  # fmt: skip
def test_reference_reaches_no_further(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate_reference(text, {"self": 1}, SimpleNamespace())


def test_plain_expression_cannot_call_torch() -> None:
    with pytest.raises(ExpressionError, match="only a named function can be called"):
        Expr.parse("torch.softmax(m)")


def test_several_threads_may_parse_at_once() -> None:
    """CPython 3.11 raises SystemError where a thread begins a tree while another one's is being built."""

    def let_others_run(phase: str, info: dict[str, int]) -> None:
        time.sleep(1e-4)

    threshold = gc.get_threshold()
    gc.callbacks.append(let_others_run)
    gc.set_threshold(5)
    try:
        with ThreadPoolExecutor(8) as pool:
            parsed = list(pool.map(lambda n: Expr.parse(f"(a + b, 1) if c == 0 else (d * e, e, {n})"), range(600)))
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(let_others_run)
    assert len(parsed) == 600
