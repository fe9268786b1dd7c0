"""Binds a case to the arguments of its call."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kgbench.problem.calls import TensorLike
from kgbench.problem.cases.calls import given_arguments, plain_value
from kgbench.problem.cases.concrete import BoundArgument, BoundCase, BoundDraw, Case, TensorSpec
from kgbench.problem.cases.layout import last_place, row_major
from kgbench.problem.cases.scalars import scalar, wrong_value
from kgbench.problem.expressions import ITEMSIZE, Expr
from kgbench.problem.model import (
    TENSOR_LISTS,
    Draw,
    Overload,
    Parameter,
    PassedAs,
    ScalarArgument,
    TensorArgument,
    plain_type,
    takes_tensors,
)


def bind(overload: Overload, case: Case) -> BoundCase:
    """The exact arguments of a case.

    Raises ExpressionError, which names file, line and key, when an argument has a wrong value.
    """
    given = {} if case.call is None else given_arguments(overload, case.call)
    parameters = zip(overload.signature.parameters, overload.arguments, strict=True)
    bound = [_bind_argument(parameter, argument, case, given) for parameter, argument in parameters]
    return BoundCase(case, tuple(bound))


def _bind_argument(parameter: Parameter, argument: Any, case: Case, given: Mapping[str, Any]) -> BoundArgument:
    if parameter.name in given:
        value = _from_call(parameter, argument, case, given[parameter.name])
    elif isinstance(argument, ScalarArgument):
        if argument.is_default and not parameter.has_default:
            raise wrong_value(argument.value, case, f"expected a value for '{parameter.name}' in the call", None)
        value = scalar(parameter, argument.value.evaluate(case.variables), argument.value, case)
    elif _is_none(parameter, argument, case):
        value = None
    elif plain_type(parameter.type) in TENSOR_LISTS:
        value = _tensor_list(argument, case)
    else:
        value = _tensor(argument, case)
    return BoundArgument(parameter.name, parameter.type, parameter.keyword_only, value)


def _is_none(parameter: Parameter, argument: TensorArgument, case: Case) -> bool:
    """Whether a tensor is left out: ``none_when`` is true, or it has no shape and its default is None."""
    if argument.none_when is not None and argument.none_when.evaluate(case.variables):
        return True
    return argument.shape is None and parameter.has_default and parameter.default is None


def _from_call(parameter: Parameter, argument: Any, case: Case, value: Any) -> Any:
    """The value of an argument that the call gives."""
    where = argument.value if isinstance(argument, ScalarArgument) else argument.dtype
    if not takes_tensors(parameter):
        return scalar(parameter, plain_value(value), where, case)
    plain, optional = plain_type(parameter.type), parameter.type.endswith("| None")
    if value is None and (optional or parameter.has_default):
        return None
    if plain in TENSOR_LISTS and isinstance(value, (list, tuple)):
        may_hold_none = plain != "list[Tensor]"
        if all(isinstance(each, TensorLike) or (each is None and may_hold_none) for each in value):
            named = ((f"{argument.name}[{number}]", each) for number, each in enumerate(value))
            return tuple(None if each is None else _like(argument, case, name, each) for name, each in named)
    if plain != "Tensor" or not isinstance(value, TensorLike):
        raise wrong_value(where, case, f"expected {parameter.type} for '{parameter.name}'", value)
    return _like(argument, case, argument.name, value)


def _like(argument: TensorArgument, case: Case, name: str, value: TensorLike) -> TensorSpec:
    offset = case.offset if argument.offset is None else argument.offset.evaluate(case.variables)
    strides = row_major(value.shape) if value.strides is None else tuple(value.strides)
    return _spec(argument, case, name, tuple(value.shape), strides, offset, value.dtype)


def _tensor_list(argument: TensorArgument, case: Case) -> tuple[TensorSpec, ...]:
    if argument.count is None:
        raise wrong_value(argument.dtype, case, f"expected 'count' beside the shape of '{argument.name}'", None)
    count = argument.count.evaluate(case.variables)
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise wrong_value(argument.count, case, "expected a whole number, 0 or more", count)
    numbered = (replace(case, sizes={**case.sizes, "n": n}) for n in range(count))
    return tuple(_tensor(argument, each, f"{argument.name}[{n}]") for n, each in enumerate(numbered))


def _tensor(argument: TensorArgument, case: Case, name: str | None = None) -> TensorSpec:
    if argument.shape is None:
        raise wrong_value(
            argument.dtype, case, f"expected a shape of '{argument.name}', from the call or its argument", None
        )
    shape = _sizes(argument.shape, case)
    dense = row_major(shape)
    strides = dense if argument.strides is None else _sizes(argument.strides, case, absent=dense)
    if argument.strides is not None and len(strides) != len(shape):
        raise wrong_value(argument.strides, case, f"expected {len(shape)} strides for the shape {shape}", strides)
    offset = case.offset if argument.offset is None else argument.offset.evaluate(case.variables)
    if argument.offset is not None and (isinstance(offset, bool) or not isinstance(offset, int) or offset < 0):
        raise wrong_value(argument.offset, case, "expected a whole number, 0 or more", offset)
    dtype = argument.dtype.evaluate(case.variables)
    if not isinstance(dtype, str) or dtype not in ITEMSIZE:
        raise wrong_value(argument.dtype, case, "expected a dtype", dtype)
    return _spec(argument, case, name or argument.name, shape, strides, offset, dtype)


def _spec(
    argument: TensorArgument,
    case: Case,
    name: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    dtype: str,
) -> TensorSpec:
    dense = row_major(shape)
    span = 0 if 0 in shape else 1 + last_place(shape, strides)
    lazy = case.lazy
    return TensorSpec(
        name=name,
        access=argument.access,
        shape=shape,
        strides=strides,
        offset=offset,
        extent=offset + span,
        dtype=dtype,
        passed=argument.passed,
        live=argument.live,
        draw=_bound_draw(argument, case),
        contiguous=0 in shape
        or all(size == 1 or have == want for size, have, want in zip(shape, strides, dense, strict=True)),
        slots=_slots(argument, case, shape, strides),
        lazy=lazy if dtype.startswith("complex") or (lazy == "neg" and dtype.startswith(("float", "bfloat"))) else "",
        host=argument.host,
    )


def _slots(argument: TensorArgument, case: Case, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """A shuffled order of the batch, the same in every call of the case; empty when it is not shuffled.

    No constant stride gives this order. A batch of two is swapped.
    """
    if argument.passed == PassedAs.POINTERS and not shape:
        raise wrong_value(
            argument.shape or argument.dtype, case, "expected a batch as the first dimension, one pointer each", shape
        )
    shuffled = argument.shuffled is not None and bool(argument.shuffled.evaluate(case.variables))
    if not shuffled or shape[0] < 2 or strides[0] == 0:
        return ()
    slots, rng = list(range(shape[0])), random.Random(f"{case.id}/{argument.name}")
    if len(slots) == 2:
        return (1, 0)
    while len({b - a for a, b in itertools.pairwise(slots)}) == 1:
        rng.shuffle(slots)
    return tuple(slots)


def _bound_draw(argument: TensorArgument, case: Case) -> BoundDraw:
    if not argument.draw:
        return BoundDraw("zeros", ())
    draw: Draw = argument.draw.get(case.values, argument.draw["default"])
    return BoundDraw(draw.name, tuple(expr.evaluate(case.variables) for expr in draw.arguments))


def _sizes(expr: Expr, case: Case, absent: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """A tuple of integers, none negative. ``absent`` replaces None; without it, None is wrong."""
    value = expr.evaluate(case.variables)
    if value is None and absent is not None:
        return absent
    right = isinstance(value, (tuple, list)) and all(
        isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in value
    )
    if not right:
        raise wrong_value(expr, case, "expected a tuple of whole numbers, 0 or more", value)
    return tuple(value)
