"""The trace format: what is written comes back the same, and what is wrong is named where it stands."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgbench.problem.calls import (
    DTYPES,
    Call,
    TensorLike,
    TorchName,
    TraceError,
    format_call,
    parse,
    parse_call,
)
from kgbench.problem.trace_files import read_trace_file

VERBATIM = (
    "((T([48, 24, 28, 28], f16),), {})",
    "((T([128, 256], f16), [1024, 249, 249]), {'dtype': torch.float16, 'device': 'cuda'})",
    "(([T([5, 5], f32), T([3, 3], i64), 42],), {'weight': T([3, 3], f32)})",
    "((T([2, 3], f32, [3, 1]), T([2, 3], f32, stride=(1, 2))), {})",
    "((), {'layout': torch.strided, 'memory_format': torch.contiguous_format, 'pin_memory': None})",
    "((True, False, None, -1, 1e-05, inf, -inf, nan, -0.0, 'trunc', \"it's $no variable\"), {})",
    "((2j, -2j, (1+2j), (-1-2.5j), (-0-2j), (nan+infj), (inf-infj)), {})",
    "((T([], b8), [[1, (2,)], []], ()), {'dim': [0, -1]})",
    "((T([0, 3], c128), T([1], bf16), T([1], u8), T([1], i8), T([1], c32)), {})",
)


@pytest.mark.parametrize("text", VERBATIM)
def test_what_is_read_is_printed_back_the_same(text: str) -> None:
    assert format_call(parse_call(text)) == text


def test_a_call_is_data() -> None:
    call = parse_call(" ((T([2, 3], f32, [3, 1]), [7], -1),\n  {'dtype': torch.float16}) ")
    tensor = TensorLike((2, 3), "float32", (3, 1))
    assert call == Call((tensor, [7], -1), {"dtype": TorchName("float16")})
    assert parse_call("((T([2, 3], f32, stride=(3, 1)), [7], -1), {'dtype': torch.float16})") == call


SIZES = st.lists(st.integers(0, 2**40), max_size=5)
TENSORS = SIZES.flatmap(
    lambda shape: st.builds(
        TensorLike,
        st.just(tuple(shape)),
        st.sampled_from(sorted(DTYPES.values())),
        st.none() | st.lists(st.integers(0, 2**40), min_size=len(shape), max_size=len(shape)).map(tuple),
        st.booleans(),
    )
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(), TENSORS,
    st.sampled_from(["float16", "strided", "channels_last"]).map(TorchName),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple), max_leaves=12
)
CALLS = st.builds(
    Call,
    st.lists(VALUES, max_size=4).map(tuple),
    st.dictionaries(st.from_regex(r"[a-z_]\w{0,8}", fullmatch=True).filter(str.isidentifier), VALUES, max_size=3),
)


@settings(database=None, deadline=None)
@given(call=CALLS)
def test_every_call_comes_back_from_its_text(call: Call) -> None:
    text = format_call(call)
    again = parse_call(text)
    assert format_call(again) == text
    # The text tells True from 1, 0.0 from -0.0 and a tuple from a list; nan equals nothing.
    assert "nan" in text or again == call


@settings(database=None, deadline=None)
@given(text=st.text(alphabet="()[]{},'$T f16nanj-+.torch\\\"\n\t0é", max_size=30) | st.text(max_size=20))
def test_whatever_is_written_is_read_or_refused(text: str) -> None:
    refused = -1
    try:
        assert parse_call(format_call(parse_call(text))) is not None
    except TraceError as error:
        refused = error.position
    assert -1 <= refused <= len(text)


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("((T([2], f99),), {})", 9, "expected a dtype, one of f16 f32 f64 bf16 i8 i16 i32 i64 u8 b8 c32 c64 c128"),
        ("((T([2], torch.float16),), {})", 9, "expected a dtype"),
        ("((T([2, -1], f32),), {})", 4, "expected a list of sizes, whole numbers from 0 on, got [2, -1]"),
        ("((T([True], f32),), {})", 4, "expected a list of sizes"),
        ("((T(2, f32),), {})", 4, "expected a list of sizes"),
        ("((T([2, 3], f32, [1]),), {})", 17, "expected 2 strides for 2 sizes, got [1]"),
        ("((T([2]),), {})", 2, "expected T(SHAPE, DTYPE) or T(SHAPE, DTYPE, STRIDES), got T([2])"),
        ("((T([2], f32, device=1),), {})", 2, "expected T(SHAPE, DTYPE)"),
        ("(('é',), open('x'))", 9, "expected a dict of keyword arguments, {} for none, got open('x')"),
        ("((open('x'),), {})", 2, "expected a number, a text, True, False, None, a list, a tuple, torch.NAME or T"),
        ("((x,), {})", 2, "got x"),
        ("((os.path,), {})", 2, "got os.path"),
        ("((torch.nn.Linear,), {})", 2, "got torch.nn.Linear"),
        ("((1 + 2,), {})", 2, "got 1 + 2"),
        ("((1 * 2j,), {})", 2, "got 1 * 2j"),
        ("((+1,), {})", 2, "got +1"),
        ("((-True,), {})", 2, "got -True"),
        ("((b'x',), {})", 2, "got b'x'"),
        ("((...,), {})", 2, "got ..."),
        ("((1), {})", 2, "expected a tuple of arguments (one alone is written (ARGUMENT,)), got 1"),
        ("((1,),)", 0, "expected ((ARGUMENTS,), {KEYWORDS})"),
        ("((), {1: 2})", 6, "expected a keyword argument's name as a text, got 1"),
        ("((), {**x})", 8, "expected a keyword argument's name as a text"),
        ("((), {'a': 1, 'a': 2})", 14, "expected each keyword argument once, got 'a'"),
        ("((), {'a': 1)", 12, "not a call: closing parenthesis"),
        ("(($dim,), {})", 2, "there is no variable $dim; there is none"),
    ],
)
def test_what_is_wrong_is_named_where_it_stands(text: str, position: int, words: str) -> None:
    with pytest.raises(TraceError) as caught:
        parse_call(text)
    assert words in caught.value.message
    assert caught.value.position == position
    assert str(caught.value).startswith(f"character {position + 1}: ")


@pytest.mark.parametrize(
    "text", ["", "   ", "((\0,), {})", "(" * 500, "((" + "-" * 100_000 + "1,), {})", "((1,), {}) # x ["]
)
def test_no_text_stops_the_reader(text: str) -> None:
    with contextlib.suppress(TraceError):
        assert parse_call(text) == Call((1,), {})


@pytest.mark.parametrize(
    ("text", "variables", "becomes"),
    [
        ("((T([7, $n], $dtype), $dim), {})", {"n": 97, "dtype": "float16", "dim": -1}, "((T([7, 97], f16), -1), {})"),
        ("((T($shape, f32), $dims), {})", {"shape": (2, 3), "dims": [0, 1]}, "((T([2, 3], f32), [0, 1]), {})"),
        ("((T([1], $dtype, [$s]),), {'dtype': $dtype})", {"dtype": "bool", "s": 4},
         "((T([1], b8, [4]),), {'dtype': torch.bool})"),
        ("((), {'layout': $layout, 'mode': $mode})", {"layout": "strided", "mode": "trunc"},
         "((), {'layout': torch.strided, 'mode': 'trunc'})"),
        ("(($a, -$b, [$c, $c]), {'x': '$a'})", {"a": 1e-05, "b": 2.5, "c": None},
         "((1e-05, -2.5, [None, None]), {'x': '$a'})"),
        ("((T([1], f32),), {})", {}, "((T([1], f32),), {})"),
    ],
)  # fmt: skip
def test_placeholders_take_values(text: str, variables: dict[str, Any], becomes: str) -> None:
    assert format_call(parse(text).with_values(variables)) == becomes


@pytest.mark.parametrize(
    ("text", "variables", "words"),
    [
        ("((T([7, $n], f32),), {})", {"m": 1}, "character 9: there is no variable $n; there is $m"),
        ("((T([7, $n], f32),), {})", {"n": 1.5}, "expected a list of sizes, whole numbers from 0 on, got [7, $n]"),
        ("((T([7], $d),), {})", {"d": "float8"}, "expected a dtype, one of"),
        ("((T([7], $d),), {})", {"d": 3}, "got $d"),
        ("((é, $n), {})", {"n": 1}, "expected a number"),
        ("(($n,), {})", {"n": {1}}, "a variable of type set cannot stand in a call"),
        ("(($,), {})", {}, "character 3: expected a variable's name after $"),
        ("((1,), {$n: 1})", {"n": "dim"}, "expected a keyword argument's name as a text, got $n"),
    ],
)
def test_placeholders_that_do_not_fit_are_refused(text: str, variables: dict[str, Any], words: str) -> None:
    with pytest.raises(TraceError) as caught:
        parse(text).with_values(variables)
    assert words in str(caught.value)


def test_placeholders_are_listed_once_and_not_within_texts() -> None:
    parsed = parse("((T([$a, $b], $dtype), $a), {'x': '$c', 'y': \"$d\"})")
    assert parsed.names == ("a", "b", "dtype")


def test_negative_zeros_and_nan_keep_their_place() -> None:
    (zero, pair, nan), _ = (call := parse_call("((-0.0, (-0+0j), nan), {})")).args, call.kwargs
    assert math.copysign(1, zero) == -1.0
    assert math.copysign(1, pair.real) == -1.0
    assert math.isnan(nan)


TRACE = """\
# of a model

Operator: aten.add.Tensor
cnt: 156, ((T([1, 128], f16), T([1, 128], f16)), {})
cnt: 0, ((T([7], f32), 3), {'alpha': 2})
Operator: aten._softmax.default
cnt: 2, ((T([4, 16], f16, stride=(1, 4)), -1, False, ), {})
"""


def test_a_trace_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    path.write_text(TRACE)
    calls = read_trace_file(path)
    assert [(call.operator, call.count, call.line) for call in calls] == [
        ("aten.add.Tensor", 156, 4), ("aten.add.Tensor", 0, 5), ("aten._softmax.default", 2, 7),
    ]  # fmt: skip
    assert calls[1].call == "((T([7], f32), 3), {'alpha': 2})"
    assert calls[2].call == "((T([4, 16], f16, stride=(1, 4)), -1, False), {})", "as results have it"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cnt: 1, ((), {})", ":1: expected 'Operator: NAMESPACE.NAME.OVERLOAD', got 'cnt: 1, ((), {})'"),
        ("Operator: aten.t.default\n\ncall: 1", ":3: expected 'Operator: NAMESPACE.NAME.OVERLOAD or cnt: COUNT"),
        ("Operator: add", ":1: expected 'Operator: NAMESPACE.NAME.OVERLOAD'"),
        ("Operator: aten.t.default\ncnt: -1, ((), {})", ":2: expected 'cnt: COUNT, ((…), {…})' with a whole number"),
        ("Operator: aten.t.default\ncnt: 1", ":2: expected 'cnt: COUNT, ((…), {…})'"),
        ("Operator: aten.t.default\ncnt: 1, ((T([2], f3),), {})", ":2: the call's character 10: expected a dtype"),
    ],
)
def test_a_trace_file_is_refused_with_the_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "model.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"model\.txt") as caught:
        read_trace_file(path)
    assert words in str(caught.value)
