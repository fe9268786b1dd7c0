"""Makes a problem concrete: templates to cases, and a case to the exact tensors and scalars of one call.

Pure: sizes, strides and Python values, no tensor. ``harness/inputs.py`` draws the values.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kgbench.errors import ExpressionError
from kgbench.expr import ITEMSIZE, Expr
from kgbench.problem import CaseTemplate, Draw, Fuzz, Overload, Parameter, ScalarArgument, TensorArgument
from kgbench.problemfile import CASE_VARIABLES

__all__ = (
    "ITEMSIZE", "BoundArgument", "BoundCase", "BoundDraw", "Case", "TensorSpec", "bind", "case_bytes", "choose_preset",
    "expand_cases",
)  # fmt: skip

_PRESET_SHARE: Final = 0.95
"""A device sold with 24 GB reports a little less; it still takes the preset for 24 GB."""


@dataclass(frozen=True)
class Case:
    """One call's sizes and options."""

    id: str
    """``check-3-float16``: unique within the overload."""
    overload: str
    phase: str
    dtype: str
    variables: dict[str, Any]
    """Every variable of the problem's expressions, derived ones, ``dtype`` and ``itemsize`` included."""


@dataclass(frozen=True)
class BoundDraw:
    """How values are drawn, with the arguments evaluated."""

    name: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class TensorSpec:
    """A tensor to be made: a view of ``extent`` elements of storage. Sizes are in elements."""

    name: str
    access: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    extent: int
    """Elements of storage from its begin to the view's last element."""
    dtype: str
    passed: str
    live: Expr | None
    draw: BoundDraw
    """What stands in it before the call; ``zeros`` for access ``write``, whose content is the harness's choice."""
    contiguous: bool
    """The view is row-major without gaps."""
    slots: tuple[int, ...] = ()
    """Where in memory ``view[b]`` lies, in steps of the first stride; empty where it lies in order."""
    host: bool = False
    """The candidate gets it in the memory of the host."""

    @property
    def elements(self) -> int:
        """Elements of the view."""
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(frozen=True)
class BoundArgument:
    name: str
    type: str
    keyword_only: bool
    value: Any
    """A TensorSpec, or what is passed: number, text, truth value, None, or a dtype's name."""


@dataclass(frozen=True)
class BoundCase:
    case: Case
    arguments: tuple[BoundArgument, ...]
    """In the signature's order."""


def choose_preset(overload: Overload, device_kind: str, memory_gb: float | None) -> str:
    """Name of the bench preset: ``cpu`` there, else the largest ``gpuN`` whose N GB the device has.

    ``memory_gb`` is in 10^9 bytes; without it, or when nothing fits, the smallest. Empty when the kind has no preset.
    """
    if device_kind == "cpu":
        return "cpu" if "cpu" in overload.bench else ""
    sizes = sorted(int(preset.removeprefix("gpu")) for preset in overload.bench if preset != "cpu")
    fitting = [size for size in sizes if memory_gb is not None and size * _PRESET_SHARE <= memory_gb]
    return f"gpu{(fitting or sizes[:1])[-1]}" if sizes else ""


def expand_cases(
    overload: Overload, device_kind: str, memory_gb: float | None, seed: str, optional_dtypes: bool = False
) -> list[Case]:
    """All cases of an overload: check, fuzz drawn from the secret ``seed``, then bench of the preset that fits.

    A template that names no dtype becomes one case per required dtype, and per optional one if ``optional_dtypes``.
    The same seed gives the same cases. Raises ExpressionError where a derived variable has no value.
    """
    dtypes = overload.dtypes + (overload.optional_dtypes if optional_dtypes else ())
    cases = _phase(overload, "check", overload.check, dtypes)
    if overload.fuzz is not None:
        rng = random.Random(f"{seed}/{overload.name}")
        drawn = [_fuzz_template(overload, overload.fuzz, rng) for _ in range(overload.fuzz.count)]
        cases += _phase(overload, "fuzz", drawn, dtypes)
    preset = choose_preset(overload, device_kind, memory_gb)
    return cases + _phase(overload, "bench", overload.bench.get(preset, ()), dtypes, preset)


def bind(overload: Overload, case: Case) -> BoundCase:
    """The exact arguments of a case. ExpressionError naming file, line and key where one has no sensible value."""
    parameters = zip(overload.signature.parameters, overload.arguments, strict=True)
    bound = [_bind_argument(parameter, argument, case) for parameter, argument in parameters]
    return BoundCase(case, tuple(bound))


def case_bytes(bound: BoundCase) -> int:
    """Bytes of all argument tensors' storages."""
    specs = (each.value for each in bound.arguments if isinstance(each.value, TensorSpec))
    return sum(spec.extent * ITEMSIZE[spec.dtype] for spec in specs)


def _phase(
    overload: Overload, phase: str, templates: Iterable[CaseTemplate], dtypes: tuple[str, ...], preset: str = ""
) -> list[Case]:
    cases = []
    for number, template in enumerate(templates, 1):
        own = template.variables.get("dtype", overload.defaults.get("dtype"))
        for dtype in (own,) if own is not None else dtypes:
            name = "-".join(part for part in (phase, preset, str(number), dtype) if part)
            cases.append(Case(name, overload.name, phase, dtype, _variables(overload, template, dtype)))
    return cases


def _variables(overload: Overload, template: CaseTemplate, dtype: str) -> dict[str, Any]:
    given = {**CASE_VARIABLES, **overload.defaults, **template.variables}
    variables = {**given, "dtype": dtype, "itemsize": ITEMSIZE[dtype]}
    for name, expr in overload.variables.items():
        variables[name] = expr.evaluate(variables)
    return variables


def _fuzz_template(overload: Overload, fuzz: Fuzz, rng: random.Random) -> CaseTemplate:
    variables = {name: _drawn(rule, rng) for name, rule in fuzz.draw.items()}
    if "dtype" not in variables:
        variables["dtype"] = rng.choice(fuzz.dtypes or overload.dtypes)
    return CaseTemplate(variables, 0)


def _drawn(rule: Any, rng: random.Random) -> Any:
    if not isinstance(rule, Mapping):
        return rule
    return rng.choice(rule["choice"]) if "choice" in rule else rng.randint(*rule["range"])


def _bind_argument(parameter: Parameter, argument: Any, case: Case) -> BoundArgument:
    if isinstance(argument, ScalarArgument):
        value = _scalar(parameter, argument.value, case)
    elif argument.none_when is not None and argument.none_when.evaluate(case.variables):
        value = None
    else:
        value = _tensor(argument, case)
    return BoundArgument(parameter.name, parameter.type, parameter.keyword_only, value)


_TAKES: Final[dict[str, tuple[type, ...]]] = {
    "int": (int,), "float": (int, float), "complex": (int, float, complex), "bool": (bool,),
    "str": (str,), "dtype": (str,), "Scalar": (bool, int, float, complex), "Tensor": (),
}  # fmt: skip
_BECOMES: Final[dict[str, type]] = {"float": float, "complex": complex}


def _scalar(parameter: Parameter, expr: Expr, case: Case) -> Any:
    """The value as the entry's type wants it: ``1`` for a float is ``1.0``."""
    value = expr.evaluate(case.variables)
    plain = parameter.type.removesuffix(" | None")
    if value is None and plain != parameter.type:
        return None
    fits = isinstance(value, _TAKES[plain]) and (not isinstance(value, bool) or bool in _TAKES[plain])
    if not fits or (plain == "dtype" and value not in ITEMSIZE):
        raise _wrong(expr, case, f"expected {parameter.type}", value)
    return _BECOMES[plain](value) if plain in _BECOMES else value


def _tensor(argument: TensorArgument, case: Case) -> TensorSpec:
    shape = _sizes(argument.shape, case)
    dense = _row_major(shape)
    strides = dense if argument.strides is None else _sizes(argument.strides, case, absent=dense)
    if argument.strides is not None and len(strides) != len(shape):
        raise _wrong(argument.strides, case, f"expected {len(shape)} strides for the shape {shape}", strides)
    offset = 0 if argument.offset is None else argument.offset.evaluate(case.variables)
    if argument.offset is not None and (isinstance(offset, bool) or not isinstance(offset, int) or offset < 0):
        raise _wrong(argument.offset, case, "expected a whole number, 0 or more", offset)
    dtype = argument.dtype.evaluate(case.variables)
    if not isinstance(dtype, str) or dtype not in ITEMSIZE:
        raise _wrong(argument.dtype, case, "expected a dtype", dtype)
    span = 0 if 0 in shape else 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return TensorSpec(
        name=argument.name,
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
        host=argument.host,
    )


def _slots(argument: TensorArgument, case: Case, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """An order that no constant step gives, the same in every call of the case; two are exchanged."""
    if argument.passed == "pointers" and not shape:
        raise _wrong(argument.shape, case, "expected a batch as the first dimension, one pointer each", shape)
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
    draw: Draw = argument.draw.get(case.variables["values"], argument.draw["default"])
    return BoundDraw(draw.name, tuple(expr.evaluate(case.variables) for expr in draw.arguments))


def _sizes(expr: Expr, case: Case, absent: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """A tuple of whole numbers, none negative; ``absent`` stands for None where that is allowed."""
    value = expr.evaluate(case.variables)
    if value is None and absent is not None:
        return absent
    right = isinstance(value, (tuple, list)) and all(
        isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in value
    )
    if not right:
        raise _wrong(expr, case, "expected a tuple of whole numbers, 0 or more", value)
    return tuple(value)


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _wrong(expr: Expr, case: Case, expected: str, value: Any) -> ExpressionError:
    return ExpressionError("KGB265", f"{expr.where}: '{expr.text}' is {value!r} in case {case.id}; {expected}")
