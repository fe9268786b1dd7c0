"""Makes a problem concrete: templates to cases, and a case to the exact tensors and scalars of one call.

Pure: sizes, strides and Python values, no tensor. ``kgbench/harness/verdict/inputs.py`` draws the values.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kgbench.core.errors import ExpressionError
from kgbench.problem.calls import Call, TensorLike, TorchName, TraceError, parse_call, placeholders, substitute
from kgbench.problem.expressions import ITEMSIZE, Expr
from kgbench.problem.format import CALL_VARIABLES, CASE_VARIABLES, TENSOR_LISTS, plain_type, takes_tensors
from kgbench.problem.model import CaseTemplate, Draw, Fuzz, Overload, Parameter, ScalarArgument, TensorArgument

__all__ = (
    "ITEMSIZE", "BoundArgument", "BoundCase", "BoundDraw", "Case", "TensorSpec", "bench_cases", "bind", "case_bytes",
    "choose_preset", "expand_cases", "in_other_values", "judged_dtypes", "may_overlap",
)  # fmt: skip

_ALONG: Final = ("dim", "keepdim")
"""Arguments that say along what an operator of ATen works."""
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
    lazy: str = ""
    """``conj`` or ``neg``: handed over with that bit set, so that its values are those of storage, changed so."""
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
    """A TensorSpec, a tuple of them and of None, or what is passed: number, text, truth value, None, the name of a
    dtype, layout or memory format, or a tuple of numbers."""

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        """Its tensors, each by its own name: the argument's, or ``NAME[i]`` in a list."""
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        return tuple(value for value in values if isinstance(value, TensorSpec))


@dataclass(frozen=True)
class BoundCase:
    case: Case
    arguments: tuple[BoundArgument, ...]
    """In the signature's order."""

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        """Every tensor, in the signature's order."""
        return tuple(spec for argument in self.arguments for spec in argument.specs)


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
    return _expanded(overload, [choose_preset(overload, device_kind, memory_gb)], seed, optional_dtypes)


def expand_for_all_devices(overload: Overload, seed: str) -> list[Case]:
    """The cases of all devices together, in every dtype; those that no device changes come once."""
    return _expanded(overload, list(overload.bench), seed, optional_dtypes=True)


def bench_cases(overload: Overload, preset: str) -> list[Case]:
    """The timed cases of a preset, which are no secret; empty where it has none."""
    return _phase(overload, "bench", overload.bench.get(preset, ()), overload.dtypes, preset)


def in_other_values(overload: Overload, case: Case) -> list[Case]:
    """The case in each of the value sets in which a check case is drawn that has its dtypes and its other arguments.

    Sizes may differ, along which dimension, and of sources other than ATen, where sizes are arguments, all whole
    numbers. Whoever was asked with another flag, scale or order may have been asked in those values for good reason.
    """
    if overload.kind != "compute":
        return []
    found: dict[str, Case] = {}
    wanted = _asked(overload, case)
    for other in _phase(overload, "check", overload.check, overload.dtypes):
        values, variables = other.variables["values"], other.variables
        known = values in (case.variables["values"], *found) or variables.get("exact") or variables.get("unjudged")
        if not known and _asked(overload, other) == wanted:
            found[values] = replace(case, variables={**case.variables, "values": values})
    return list(found.values())


def _asked(overload: Overload, case: Case) -> list[Any]:
    """All about a call but its values and sizes."""
    whole = int if not overload.baseline.get("cuda", "").startswith("aten:") else ()
    plain: list[Any] = []
    for argument in bind(overload, case).arguments:
        value = argument.value
        if argument.specs:
            plain += [spec.dtype for spec in argument.specs]
        elif argument.name not in _ALONG and (isinstance(value, bool) or not isinstance(value, whole)):
            plain.append((argument.name, repr(value)))
    return plain


def judged_dtypes(overload: Overload) -> frozenset[str]:
    """Every dtype that a call of a run comes in, also those that only some calls have."""
    templates = itertools.chain(overload.check, overload.opinfo, *overload.bench.values())
    found = {dtype for each in templates for dtype in _template_dtypes(overload, each, overload.dtypes)}
    if overload.fuzz is not None:
        found.update(overload.fuzz.dtypes, overload.fuzz.draw.get("dtype", {}).get("choice", ()))
    return frozenset(found)


def bind(overload: Overload, case: Case) -> BoundCase:
    """The exact arguments of a case. ExpressionError naming file, line and key where one has no sensible value."""
    given = _given(overload, case.variables["call"]) if case.variables.get("call") else {}
    parameters = zip(overload.signature.parameters, overload.arguments, strict=True)
    bound = [_bind_argument(parameter, argument, case, given) for parameter, argument in parameters]
    return BoundCase(case, tuple(bound))


def case_bytes(bound: BoundCase) -> int:
    """Bytes of all argument tensors' storages."""
    return sum(spec.extent * ITEMSIZE[spec.dtype] for spec in bound.specs)


def _expanded(overload: Overload, presets: Iterable[str], seed: str, optional_dtypes: bool) -> list[Case]:
    dtypes = overload.dtypes + (overload.optional_dtypes if optional_dtypes else ())
    cases = _phase(overload, "check", overload.check, dtypes) + _phase(overload, "opinfo", overload.opinfo, dtypes)
    if overload.fuzz is not None:
        rng = random.Random(f"{seed}/{overload.name}")
        drawn = [_fuzz_template(overload, overload.fuzz, rng) for _ in range(overload.fuzz.count)]
        cases += _phase(overload, "fuzz", drawn, dtypes)
    for preset in presets:
        cases += _phase(overload, "bench", overload.bench.get(preset, ()), dtypes, preset)
    return cases


def _phase(
    overload: Overload, phase: str, templates: Iterable[CaseTemplate], dtypes: tuple[str, ...], preset: str = ""
) -> list[Case]:
    cases = []
    for number, template in enumerate(templates, 1):
        for dtype in _template_dtypes(overload, template, dtypes):
            name = "-".join(part for part in (phase, preset, str(number), dtype) if part)
            cases.append(Case(name, overload.name, phase, dtype, _variables(overload, template, dtype)))
    return cases


def _template_dtypes(overload: Overload, template: CaseTemplate, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Its own where it has one, else all of the overload's."""
    own = template.variables.get("dtype", overload.defaults.get("dtype"))
    text = template.variables.get("call", "")
    if text and own is None and "dtype" not in placeholders(text):
        own = _first_dtype(overload, template)
    return dtypes if own is None else (own,)


def _variables(overload: Overload, template: CaseTemplate, dtype: str) -> dict[str, Any]:
    by_call = CALL_VARIABLES if "call" in template.variables else {}
    given = {**CASE_VARIABLES, **by_call, **overload.defaults, **template.variables}
    variables = {**given, "dtype": dtype, "itemsize": ITEMSIZE[dtype]}
    if "call" in template.variables:
        variables["call"] = _substituted(overload, template, variables)
        variables |= _call_variables(overload, variables["call"])
    for name, expr in overload.variables.items():
        variables[name] = expr.evaluate(variables)
    return variables


def _fuzz_template(overload: Overload, fuzz: Fuzz, rng: random.Random) -> CaseTemplate:
    variables = {name: _drawn(rule, rng) for name, rule in fuzz.draw.items()}
    if fuzz.call:
        variables["call"] = fuzz.call
    if "dtype" not in variables and (not fuzz.call or "dtype" in placeholders(fuzz.call)):
        variables["dtype"] = rng.choice(fuzz.dtypes or overload.dtypes)
    return CaseTemplate(variables, 0)


def _drawn(rule: Any, rng: random.Random) -> Any:
    if not isinstance(rule, Mapping):
        return rule
    return rng.choice(rule["choice"]) if "choice" in rule else rng.randint(*rule["range"])


# --- calls in the trace format ---


def _substituted(overload: Overload, template: CaseTemplate, variables: Mapping[str, Any]) -> str:
    try:
        return substitute(template.variables["call"], variables)
    except TraceError as error:
        raise _wrong_call(overload, template.variables["call"], str(error)) from None


def _first_dtype(overload: Overload, template: CaseTemplate) -> str:
    """The dtype of a call that names one: its first tensor's; without tensors that of its keyword ``dtype``."""
    given = {**CASE_VARIABLES, **CALL_VARIABLES, **overload.defaults, **template.variables}
    values = list(_given(overload, _substituted(overload, template, given)).values())
    flat = [each for value in values for each in (value if isinstance(value, (tuple, list)) else (value,))]
    tensors = [each.dtype for each in flat if isinstance(each, TensorLike)]
    named = [each.name for each in flat if isinstance(each, TorchName) and each.name in ITEMSIZE]
    return (tensors + named + ["float32"])[0]


def _given(overload: Overload, text: str) -> dict[str, Any]:
    """What a call gives, by the entry's parameters."""
    try:
        call: Call = parse_call(text)
    except TraceError as error:
        raise _wrong_call(overload, text, str(error)) from None
    positional = [each.name for each in overload.signature.parameters if not each.keyword_only]
    known = {each.name for each in overload.signature.parameters}
    if len(call.args) > len(positional):
        raise _wrong_call(overload, text, f"has {len(call.args)} positional arguments, the entry {len(positional)}")
    given = dict(zip(positional, call.args, strict=False))
    for name, value in call.kwargs.items():
        if name not in known or name in given:
            words = "is given twice" if name in given else "is no parameter of the entry"
            raise _wrong_call(overload, text, f"'{name}' {words}")
        given[name] = value
    return given


def _call_variables(overload: Overload, text: str) -> dict[str, Any]:
    """Shapes, strides and dtypes of a call's tensors, and its other arguments by name."""
    given, variables = _given(overload, text), {}
    for parameter, argument in zip(overload.signature.parameters, overload.arguments, strict=True):
        value = given.get(parameter.name)
        if not takes_tensors(parameter):
            absent = parameter.default if parameter.name not in given else None
            variables[parameter.name] = _plain_value(value) if parameter.name in given else absent
        elif parameter.name in given or isinstance(argument, ScalarArgument) or argument.shape is None:
            for part in ("shape", "strides", "dtype"):
                variables[f"{parameter.name}_{part}"] = _fact(value, part)
    return variables


def _fact(value: Any, part: str) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_fact(each, part) for each in value)
    if not isinstance(value, TensorLike):
        return None
    return _row_major(value.shape) if part == "strides" and value.strides is None else getattr(value, part)


def _plain_value(value: Any) -> Any:
    """As expressions have it: torch's names as text, lists as tuples."""
    if isinstance(value, TorchName):
        return value.name
    return tuple(_plain_value(each) for each in value) if isinstance(value, (list, tuple)) else value


def _wrong_call(overload: Overload, text: str, what: str) -> ExpressionError:
    return ExpressionError("KGB257", f"{overload.signature.name}: the call '{text}': {what}")


# --- arguments ---


def _bind_argument(parameter: Parameter, argument: Any, case: Case, given: Mapping[str, Any]) -> BoundArgument:
    if parameter.name in given:
        value = _from_call(parameter, argument, case, given[parameter.name])
    elif isinstance(argument, ScalarArgument):
        if argument.is_default and not parameter.has_default:
            raise _wrong(argument.value, case, f"expected a value for '{parameter.name}' in the call", None)
        value = _scalar(parameter, argument.value.evaluate(case.variables), argument.value, case)
    elif _is_none(parameter, argument, case):
        value = None
    elif plain_type(parameter.type) in TENSOR_LISTS:
        value = _tensor_list(argument, case)
    else:
        value = _tensor(argument, case)
    return BoundArgument(parameter.name, parameter.type, parameter.keyword_only, value)


def _is_none(parameter: Parameter, argument: TensorArgument, case: Case) -> bool:
    """A tensor that is left out: where the file says so, or where neither it nor the call says what it would be."""
    if argument.none_when is not None and argument.none_when.evaluate(case.variables):
        return True
    return argument.shape is None and parameter.has_default and parameter.default is None


def _from_call(parameter: Parameter, argument: Any, case: Case, value: Any) -> Any:
    """An argument as the call has it."""
    where = argument.value if isinstance(argument, ScalarArgument) else argument.dtype
    if not takes_tensors(parameter):
        return _scalar(parameter, _plain_value(value), where, case)
    plain, optional = plain_type(parameter.type), parameter.type.endswith("| None")
    if value is None and (optional or parameter.has_default):
        return None
    if plain in TENSOR_LISTS and isinstance(value, (list, tuple)):
        may_hold_none = plain != "list[Tensor]"
        if all(isinstance(each, TensorLike) or (each is None and may_hold_none) for each in value):
            named = ((f"{argument.name}[{number}]", each) for number, each in enumerate(value))
            return tuple(None if each is None else _like(argument, case, name, each) for name, each in named)
    if plain != "Tensor" or not isinstance(value, TensorLike):
        raise _wrong(where, case, f"expected {parameter.type} for '{parameter.name}'", value)
    return _like(argument, case, argument.name, value)


def _like(argument: TensorArgument, case: Case, name: str, value: TensorLike) -> TensorSpec:
    offset = case.variables["offset"] if argument.offset is None else argument.offset.evaluate(case.variables)
    strides = _row_major(value.shape) if value.strides is None else tuple(value.strides)
    return _spec(argument, case, name, tuple(value.shape), strides, offset, value.dtype)


_TAKES: Final[dict[str, tuple[type, ...]]] = {
    "int": (int,), "float": (int, float), "complex": (int, float, complex), "bool": (bool,),
    "str": (str,), "dtype": (str,), "Scalar": (bool, int, float, complex), "Tensor": (), "layout": (str,),
    "device": (str,), "memory_format": (str,), "Generator": (int,), "list[Tensor]": (), "list[Tensor | None]": (),
}  # fmt: skip
_BECOMES: Final[dict[str, type]] = {"float": float, "complex": complex}


def _scalar(parameter: Parameter, value: Any, where: Expr, case: Case) -> Any:
    """The value as the entry's type wants it: ``1`` for a float is ``1.0``."""
    plain = plain_type(parameter.type)
    if value is None and (plain != parameter.type or (parameter.has_default and parameter.default is None)):
        return None
    if plain not in _TAKES:
        return _number_list(parameter, value, where, case)
    fits = isinstance(value, _TAKES[plain]) and (not isinstance(value, bool) or bool in _TAKES[plain])
    if not fits or (plain == "dtype" and value not in ITEMSIZE):
        raise _wrong(where, case, f"expected {parameter.type} for '{parameter.name}'", value)
    return _BECOMES[plain](value) if plain in _BECOMES else value


def _number_list(parameter: Parameter, value: Any, where: Expr, case: Case) -> Any:
    """A tuple of numbers; one number stays one, as ATen takes it where it wants a list."""
    takes = _TAKES[plain_type(parameter.type).removeprefix("list[").removesuffix("]")]
    listed = value if isinstance(value, (list, tuple)) else (value,)
    if not all(isinstance(each, takes) and (not isinstance(each, bool) or bool in takes) for each in listed):
        raise _wrong(where, case, f"expected {parameter.type} for '{parameter.name}'", value)
    return tuple(value) if isinstance(value, (list, tuple)) else value


def _tensor_list(argument: TensorArgument, case: Case) -> tuple[TensorSpec, ...]:
    if argument.count is None:
        raise _wrong(argument.dtype, case, f"expected 'count' beside the shape of '{argument.name}'", None)
    count = argument.count.evaluate(case.variables)
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise _wrong(argument.count, case, "expected a whole number, 0 or more", count)
    numbered = (Case(case.id, case.overload, case.phase, case.dtype, {**case.variables, "n": n}) for n in range(count))
    return tuple(_tensor(argument, each, f"{argument.name}[{n}]") for n, each in enumerate(numbered))


def _tensor(argument: TensorArgument, case: Case, name: str | None = None) -> TensorSpec:
    if argument.shape is None:
        raise _wrong(
            argument.dtype, case, f"expected a shape of '{argument.name}', from the call or its argument", None
        )
    shape = _sizes(argument.shape, case)
    dense = _row_major(shape)
    strides = dense if argument.strides is None else _sizes(argument.strides, case, absent=dense)
    if argument.strides is not None and len(strides) != len(shape):
        raise _wrong(argument.strides, case, f"expected {len(shape)} strides for the shape {shape}", strides)
    by_call = case.variables["offset"] if case.variables.get("call") else 0
    offset = by_call if argument.offset is None else argument.offset.evaluate(case.variables)
    if argument.offset is not None and (isinstance(offset, bool) or not isinstance(offset, int) or offset < 0):
        raise _wrong(argument.offset, case, "expected a whole number, 0 or more", offset)
    dtype = argument.dtype.evaluate(case.variables)
    if not isinstance(dtype, str) or dtype not in ITEMSIZE:
        raise _wrong(argument.dtype, case, "expected a dtype", dtype)
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
    dense = _row_major(shape)
    span = 0 if 0 in shape else 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    lazy = str(case.variables.get("lazy", "")) if case.variables.get("call") else ""
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
    """An order that no constant step gives, the same in every call of the case; two are exchanged."""
    if argument.passed == "pointers" and not shape:
        raise _wrong(
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


def may_overlap(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements may lie on one another: a stride that does not step over all that the smaller ones reach."""
    reach = 0
    for step, size in sorted((step, size) for step, size in zip(strides, shape, strict=True) if size > 1):
        if step <= reach:
            return True
        reach += step * (size - 1)
    return False


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _wrong(expr: Expr, case: Case, expected: str, value: Any) -> ExpressionError:
    return ExpressionError("KGB265", f"{expr.where}: '{expr.text}' is {value!r} in case {case.id}; {expected}")
