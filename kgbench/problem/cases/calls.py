"""Cases that are calls in the trace format: their values by the parameters of the entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgbench.core.errors import ExpressionError
from kgbench.problem.calls import Call, ParsedCall, TensorLike, TorchName, TraceError, format_call, parse
from kgbench.problem.cases.layout import row_major
from kgbench.problem.expressions import ITEMSIZE
from kgbench.problem.model import Overload, ScalarArgument, takes_tensors


def parsed_call(overload: Overload, text: str) -> ParsedCall:
    """Parses a call that is not in a problem file. Raises ExpressionError."""
    try:
        return parse(text)
    except TraceError as error:
        raise _wrong_call(overload, text, str(error)) from None


def with_values(overload: Overload, call: ParsedCall, variables: Mapping[str, Any]) -> Call:
    """The call with each ``$name`` replaced by its value. Raises ExpressionError."""
    try:
        return call.with_values(variables)
    except TraceError as error:
        raise _wrong_call(overload, call.text, str(error)) from None


def first_dtype(overload: Overload, call: Call) -> str:
    """The dtype of a call: its first tensor's; without tensors, the first dtype among its arguments; else float32."""
    values = list(given_arguments(overload, call).values())
    flat = [each for value in values for each in (value if isinstance(value, (tuple, list)) else (value,))]
    tensors = [each.dtype for each in flat if isinstance(each, TensorLike)]
    named = [each.name for each in flat if isinstance(each, TorchName) and each.name in ITEMSIZE]
    return (tensors + named + ["float32"])[0]


def given_arguments(overload: Overload, call: Call) -> dict[str, Any]:
    """The arguments of a call, by the name of the entry's parameter. Raises ExpressionError."""
    positional = [each.name for each in overload.signature.parameters if not each.keyword_only]
    known = {each.name for each in overload.signature.parameters}
    if len(call.args) > len(positional):
        words = f"has {len(call.args)} positional arguments, the entry {len(positional)}"
        raise _wrong_call(overload, format_call(call), words)
    given = dict(zip(positional, call.args, strict=False))
    for name, value in call.kwargs.items():
        if name not in known or name in given:
            words = "is given twice" if name in given else "is no parameter of the entry"
            raise _wrong_call(overload, format_call(call), f"'{name}' {words}")
        given[name] = value
    return given


def call_variables(overload: Overload, call: Call) -> dict[str, Any]:
    """Shapes, strides and dtypes of a call's tensors, and its other arguments by name."""
    given, variables = given_arguments(overload, call), {}
    for parameter, argument in zip(overload.signature.parameters, overload.arguments, strict=True):
        value = given.get(parameter.name)
        if not takes_tensors(parameter):
            absent = parameter.default if parameter.name not in given else None
            variables[parameter.name] = plain_value(value) if parameter.name in given else absent
        elif parameter.name in given or isinstance(argument, ScalarArgument) or argument.shape is None:
            for part in ("shape", "strides", "dtype"):
                variables[f"{parameter.name}_{part}"] = _fact(value, part)
    return variables


def _fact(value: Any, part: str) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_fact(each, part) for each in value)
    if not isinstance(value, TensorLike):
        return None
    return row_major(value.shape) if part == "strides" and value.strides is None else getattr(value, part)


def plain_value(value: Any) -> Any:
    """The value as expressions use it: names of torch are text, lists are tuples."""
    if isinstance(value, TorchName):
        return value.name
    return tuple(plain_value(each) for each in value) if isinstance(value, (list, tuple)) else value


def _wrong_call(overload: Overload, text: str, what: str) -> ExpressionError:
    return ExpressionError("KGB257", f"{overload.signature.name}: the call '{text}': {what}")
