"""Converts Python values to the types that the entry declares."""

from __future__ import annotations

from typing import Any, Final

from kgbench.core.errors import ExpressionError
from kgbench.problem.cases.concrete import Case
from kgbench.problem.expressions import ITEMSIZE, Expr
from kgbench.problem.file_place import expression_error
from kgbench.problem.model import Parameter, plain_type

_TAKES: Final[dict[str, tuple[type, ...]]] = {
    "int": (int,), "float": (int, float), "complex": (int, float, complex), "bool": (bool,),
    "str": (str,), "dtype": (str,), "Scalar": (bool, int, float, complex), "Tensor": (), "layout": (str,),
    "device": (str,), "memory_format": (str,), "Generator": (int,), "list[Tensor]": (), "list[Tensor | None]": (),
}  # fmt: skip
_BECOMES: Final[dict[str, type]] = {"float": float, "complex": complex}


def scalar(parameter: Parameter, value: Any, where: Expr, case: Case) -> Any:
    """The value converted to the parameter's type: ``1`` becomes ``1.0`` for a float.

    Raises ExpressionError when it does not fit.
    """
    plain = plain_type(parameter.type)
    if value is None and (plain != parameter.type or (parameter.has_default and parameter.default is None)):
        return None
    if plain not in _TAKES:
        return _number_list(parameter, value, where, case)
    fits = isinstance(value, _TAKES[plain]) and (not isinstance(value, bool) or bool in _TAKES[plain])
    if not fits or (plain == "dtype" and value not in ITEMSIZE):
        raise wrong_value(where, case, f"expected {parameter.type} for '{parameter.name}'", value)
    return _BECOMES[plain](value) if plain in _BECOMES else value


def _number_list(parameter: Parameter, value: Any, where: Expr, case: Case) -> Any:
    """A tuple of numbers. A single number stays one, because ATen accepts it in place of a list."""
    takes = _TAKES[plain_type(parameter.type).removeprefix("list[").removesuffix("]")]
    listed = value if isinstance(value, (list, tuple)) else (value,)
    if not all(isinstance(each, takes) and (not isinstance(each, bool) or bool in takes) for each in listed):
        raise wrong_value(where, case, f"expected {parameter.type} for '{parameter.name}'", value)
    return tuple(value) if isinstance(value, (list, tuple)) else value


def wrong_value(expr: Expr, case: Case, expected: str, value: Any) -> ExpressionError:
    """The error that an expression has a wrong value in a case."""
    return expression_error("KGB265", f"'{expr.text}' is {value!r} in case {case.id}; {expected}", expr.where)
