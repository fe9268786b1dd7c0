"""What a prompt says of a problem, as values for the templates. Nothing here says what gives an answer away.

Of a problem's cases only the timed ones are told, and of those only what a caller sees: shapes and Python values. Of
the others it is told which dtypes they come in, no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kgbench.core.kinds import DeviceKind, Kind
from kgbench.policy.rules import allowed, family, own_operators
from kgbench.policy.tables import ALIASES, GROUPS, KIND_GROUPS, KIND_WORDS, WORK
from kgbench.problem.cases import (
    ALWAYS,
    MOST_ROWS,
    BoundArgument,
    Case,
    Sizes,
    TensorSpec,
    bench_cases,
    bind,
    choose_preset,
    judged_dtypes,
    sizes_of,
)
from kgbench.problem.expressions import CONSTANTS, Expr
from kgbench.problem.model import Access, Overload, PassedAs, Problem, TensorArgument
from kgbench.prompts.gpus import Gpu

_ACCESS: Final = {
    Access.READ: "read only",
    Access.WRITE: "output: {written}; what it holds before the call means nothing",
    Access.READWRITE: "read and updated in place",
}
_EVERY: Final = "every element is to be written unless the description says otherwise"
_NAMED: Final = "the elements that the description names, the others are neither read nor written"
"""What is told of a tensor of which some elements are no part."""
_PASSED: Final = {
    "storage": "its storage as a one-dimensional tensor",
    "pointers": "a one-dimensional int64 tensor of device addresses, one per matrix or vector",
}
_SUBNORMALS: Final = {
    True: "Subnormal numbers may be taken for zeros of their sign, in arguments and in results.",
    False: "Subnormal numbers are kept: they are not zeros.",
}
"""What is told of subnormal numbers, by whether they may be zero."""
_OWN_DTYPE: Final = "the arguments' own dtype (16-bit numbers may just as well be computed in float32 and rounded once)"
_EITHER: Final = (
    "the arguments' own dtype or float32, depending on the call; float32 inside, float64 for float64, is enough for all"
)
_DEFAULT: Final = "float32 (float64 for float64 and complex128)"
_RULES: Final = {
    "accumulate": (
        "Sums may be formed in any order. An element may be off by what honest arithmetic in {arithmetic} makes of "
        "a sum of so many terms, measured by the size of the terms, so that cancellation is allowed for; over a whole "
        "output the mean error is judged too, more tightly. Inputs in fewer bits (TF32 for float32) do not pass."
    ),
    "rounding": (
        "An element may be off by a few units in the last place of the arithmetic, and by the rounding to the output's "
        "dtype. The arithmetic is {arithmetic}. Approximations that lose digits do not pass."
    ),
    "quantize": (
        "A code is right where it is nearest to some number within a few roundings of the exact one, formed in "
        "{arithmetic}: on a tie both neighbours are, elsewhere only one. What is no code may be off by a few units in "
        "the last place, but must be equal where the description says bit for bit."
    ),
    "exact": "Values must be equal, to the last bit; only -0 and 0 count as equal.",
}
"""Tolerances in words, never in numbers."""
_FREE: Final = "Where the operator leaves something free, every answer that it allows is right."
_LISTED: Final = 6
"""Numbers of a list that are told one by one."""


@dataclass(frozen=True)
class OverloadWords:
    name: str
    """``softmax_int``: what a candidate defines."""
    signature: str
    arguments: tuple[str, ...]
    returns: tuple[str, ...]
    dtypes: str
    further_dtypes: str
    """Dtypes in which some calls come, and not all."""
    tolerance: str
    needs: str
    calls: tuple[str, ...]
    """The timed ones."""
    edges: tuple[str, ...] = ()
    """What is promised of special arguments."""
    sizes: tuple[str, ...] = ()
    """Up to which sizes it must be right."""


@dataclass(frozen=True)
class ProblemWords:
    """Everything that the template of a question may use."""

    id: str
    source: str
    kind: Kind
    summary: str
    doc: str
    overloads: tuple[OverloadWords, ...]
    not_required: tuple[str, ...]
    """Entries that may be left out."""
    may_call: str
    own: tuple[str, ...]
    """Operators that the problem is."""
    timed: bool
    target: Gpu | None


def problem_words(problem: Problem, *, bench_shapes: bool, target: Gpu | None) -> ProblemWords:
    """What may be told of a problem."""
    required = [overload for overload in problem.overloads if overload.required]
    return ProblemWords(
        id=problem.id,
        source=problem.source,
        kind=problem.kind,
        summary=problem.summary,
        doc=problem.doc.strip(),
        overloads=tuple(_overload(problem, each, bench_shapes=bench_shapes, target=target) for each in required),
        not_required=tuple(each.signature.name for each in problem.overloads if not each.required),
        may_call=_may_call(problem),
        own=tuple(sorted(f"aten::{name}" for name in _by_all_names(own_operators(problem)))),
        timed=any(overload.bench for overload in required),
        target=target,
    )


def _by_all_names(own: set[str]) -> set[str]:
    """With the operators that are another name for one of them, or what one is another name for."""
    families = {family(name) for name in own}
    same = {each for name, other in ALIASES.items() if other in families for each in (name, other)}
    return own | {name for name in same if not name.startswith("_")}


def _may_call(problem: Problem) -> str:
    """The policy's row; a problem that is itself a copy or a fill may use none of its group."""
    own = [group for group in WORK if group in KIND_GROUPS[problem.kind] and not _any_allowed(problem, group)]
    rest = f"; the problem is one of the {' and '.join(own)} itself, and none of those may be called" if own else ""
    return KIND_WORDS[problem.kind] + rest


def _any_allowed(problem: Problem, group: str) -> bool:
    return any(allowed(problem, f"aten::{name}").allowed for name in GROUPS[group])


def _overload(problem: Problem, overload: Overload, *, bench_shapes: bool, target: Gpu | None) -> OverloadWords:
    return OverloadWords(
        name=overload.signature.name,
        signature=overload.signature.text,
        arguments=tuple(_arguments(overload)),
        returns=tuple(_returns(overload)),
        dtypes=", ".join(overload.dtypes),
        further_dtypes=", ".join(_further_dtypes(overload)),
        tolerance=_tolerance(problem, overload),
        needs=overload.needs.words if overload.needs else "",
        calls=tuple(_calls(overload, target)) if bench_shapes else (),
        edges=tuple(edge.words for edge in overload.edges),
        sizes=tuple(_sizes(overload, sizes_of(overload))),
    )


def _further_dtypes(overload: Overload) -> list[str]:
    return sorted(judged_dtypes(overload) - set(overload.dtypes))


def _arguments(overload: Overload) -> Iterator[str]:
    """One line per tensor; what the others are, the signature's types and the description say."""
    types = {parameter.name: parameter.type for parameter in overload.signature.parameters}
    for argument in overload.arguments:
        if isinstance(argument, TensorArgument):
            yield f"{argument.name}: {'; '.join(_tensor(argument, types[argument.name]))}"


def _tensor(argument: TensorArgument, written_type: str) -> Iterator[str]:
    yield _ACCESS[argument.access].format(written=_EVERY if argument.live is None else _NAMED)
    if argument.live is not None and argument.access != Access.WRITE:
        yield f"of it only {_NAMED}"
    if argument.passed in _PASSED:
        yield _PASSED[argument.passed]
    dtype = _constant(argument.dtype)
    if dtype:
        yield f"always {dtype}"
    if argument.host:
        yield "in the host's memory, also on a GPU"
    if argument.none_when is not None or written_type.endswith("| None"):
        yield "may be None"


def _returns(overload: Overload) -> Iterator[str]:
    signature = overload.signature
    if overload.returned_argument:
        yield f"returns the argument `{overload.returned_argument}` itself, the same tensor object"
    elif signature.returns == "None":
        yield "returns None: results go into the arguments that are output or updated"
    elif overload.alias:
        yield f"returns a view that shares the storage of `{overload.alias}`: nothing is copied"
    for number, item in enumerate(overload.returns):
        where = f"returned tensor {number}" if len(overload.returns) > 1 else "the returned tensor"
        if item.dtype is not None and (dtype := _constant(item.dtype)):
            yield f"{where} has dtype {dtype}"
        if item.as_aten:
            yield f"{where} has the strides that PyTorch gives it"


def _constant(expression: Expr) -> str:
    """The dtype that an expression names; empty where it depends on the call."""
    text = expression.text.strip("'\"")
    return text if text in CONSTANTS else ""


def _tolerance(problem: Problem, overload: Overload) -> str:
    if not overload.values_defined:
        return "No value of the result is defined, so none is judged: shape, dtype and strides are."
    if problem.kind == Kind.RANDOM:
        return "Values are judged by their distribution, as described above; no library's own stream is asked for."
    words = _RULES[overload.tolerance.rule].format(arithmetic=_arithmetic(overload.tolerance.compute))
    words = f"{words} {_FREE}" if overload.canonical else words
    return f"{words} {_SUBNORMALS[overload.subnormals_may_be_zero]}" if problem.kind == Kind.COMPUTE else words


def _arithmetic(compute: Expr | None) -> str:
    if compute is None:
        return _DEFAULT
    if constant := _constant(compute):
        return constant
    depends = " if " in compute.text or "compute_dtype(" in compute.text
    return _EITHER if depends else _OWN_DTYPE


# --- sizes ---


def _sizes(overload: Overload, sizes: Sizes) -> Iterator[str]:
    """A line for each tensor or list, in which each number of dimensions has its largest shape; then whole numbers."""
    tensors = {argument.name for argument in overload.arguments if isinstance(argument, TensorArgument)}
    for name, shapes in sizes.shapes.items():
        # Dimensions by number, and the like.
        if tensors and name not in tensors and {size for shape in shapes.values() for size in shape} == {ALWAYS}:
            continue
        most = sizes.elements.get(name, {}) if name in tensors else {}
        each = (_shape(shapes[dimensions], most.get(dimensions)) for dimensions in sorted(shapes))
        yield f"{name}: {' or '.join(each)}"
    larger = {name: number for name, number in sizes.numbers.items() if number > ALWAYS}
    if sizes.numbers:
        rest = ["others" if larger else "whole numbers"] if len(larger) < len(sizes.numbers) else []
        told = [f"{name} {_count(number)}" for name, number in larger.items()]
        yield ", ".join(told + [f"{words} {ALWAYS}" for words in rest])


def _shape(bounds: tuple[int, ...], most: int | None) -> str:
    """``[70000, 8200] with 1.4e8 elements``: the most elements, where all dimensions at their bounds have more."""
    words = f"[{', '.join(map(_count, bounds))}]"
    return f"{words} with {_count(most)} elements" if most and most < math.prod(bounds) else words


def _count(number: int) -> str:
    """``70000``, ``3.4e7``, or where 32 bits end."""
    if number == MOST_ROWS:
        return "2**31 - 1"
    return f"{number:.1e}".replace("e+0", "e").replace("e+", "e") if number >= 10**6 else str(number)


# --- the timed calls ---


def _calls(overload: Overload, target: Gpu | None) -> Iterator[str]:
    preset = choose_preset(overload, DeviceKind.CUDA, target.memory_gb if target else None)
    # Two cases may differ in nothing but values, which are not told.
    yield from dict.fromkeys(_call(overload, case) for case in bench_cases(overload, preset))


def timed_calls(problem: Problem, preset: str) -> dict[tuple[str, str], str]:
    """The timed calls of a preset as prompts name them, by overload and case."""
    return {
        (overload.name, case.id): _call(overload, case)
        for overload in problem.overloads
        for case in bench_cases(overload, preset)
    }


def _call(overload: Overload, case: Case) -> str:
    return f"{overload.signature.name}({', '.join(_told(bind(overload, case).arguments))})"


def _told(arguments: Sequence[BoundArgument]) -> Iterator[str]:
    for argument in arguments:
        if argument.value is not None:
            yield f"{argument.name}={_value(argument.value)}"


def _value(value: Any) -> str:
    if isinstance(value, TensorSpec):
        return _spec(value)
    if isinstance(value, tuple):
        return _list(value)
    return str(value) if not isinstance(value, str) or value in CONSTANTS else repr(value)


def _list(values: tuple[Any, ...]) -> str:
    texts = [_value(each) for each in values]
    if len(texts) > 1 and len(set(texts)) == 1 and isinstance(values[0], TensorSpec):
        return f"[{len(texts)} × {texts[0]}]"
    more = [f"… {len(texts) - _LISTED} more"] if len(texts) > _LISTED else []
    return f"[{', '.join(texts[:_LISTED] + more)}]"


def _spec(spec: TensorSpec) -> str:
    """``float32[4096, 4096]``, with strides where it is not row-major; of storage its length, of pointers how many."""
    if spec.passed == PassedAs.STORAGE:
        return f"{spec.dtype}[{spec.extent}]"
    if spec.passed == PassedAs.POINTERS:
        sizes = " x ".join(map(str, spec.shape[1:]))
        return f"int64[{spec.shape[0]}] → {spec.dtype} {sizes}"
    strides = "" if spec.contiguous else f" strides {list(spec.strides)}"
    return f"{spec.dtype}{list(spec.shape)}{strides}"
