"""The kinds of cases, each with how it is recognised in a problem's file."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kgbench.core.kinds import Phase
from kgbench.problem.case_kinds.facts import FLAGS, Drawn, Facts
from kgbench.problem.cases import last_place, reach
from kgbench.problem.cases.concrete import TensorSpec
from kgbench.problem.model import Access

ONE_DIMENSION: Final = 65_535
"""Blocks that a grid takes in its second and third dimension."""
BEYOND_32_BITS: Final = 1 << 31
"""Offset in elements that 32 bits with a sign do not hold."""
FAR: Final = 1 << 29
"""Step in elements of which two reach beyond 2^30."""
CACHES: Final = "kv-cache"
"""Category of the problems whose tensors are caches, cut into blocks."""
COUNTER_STEP: Final = 16
"""The smallest block by which kernels count."""
BEYOND_FLOAT32: Final = 1 << 24
"""Whole numbers above which float32 does not hold each."""
LARGE: Final = 100.0
"""Size from which on values count as large: their exponentials leave float32, their squares nearly float16."""
SMALL: Final = 5e-3
"""Size up to which values count as small: of their squares a sum with 1 keeps little in float32."""
LEAST_NORMAL: Final = 2.0**-126
"""Smallest normal number of float32."""
LARGE_NUMBER: Final = 100.0
"""A parameter's number from which on it counts as large."""
SMALL_NUMBER: Final = 1e-3
"""A parameter's number up to which it counts as small."""


@dataclass(frozen=True)
class CaseKind:
    """One kind of case."""

    name: str
    """Head of its column."""
    words: str
    """What a case of it is."""
    has: Callable[[Facts], bool]


def _any(test: Callable[[Drawn], bool]) -> Callable[[Facts], bool]:
    return lambda facts: any(map(test, facts.drawn))


def _not_finite(drawn: Drawn) -> bool:
    return drawn.is_floating and (drawn.is_special or any(not math.isfinite(each) for each in drawn.numbers))


def _denormal(drawn: Drawn) -> bool:
    return drawn.is_floating and (drawn.is_special or 0 < drawn.largest < LEAST_NORMAL * 4 or _holds_denormal(drawn))


def _holds_denormal(drawn: Drawn) -> bool:
    return any(0 < abs(each) < LEAST_NORMAL for each in drawn.numbers)


def _ends(drawn: Drawn) -> bool:
    bits = int(drawn.spec.dtype.lstrip("uint") or 0) if drawn.is_whole else 0
    return drawn.is_whole and (drawn.is_special or drawn.largest >= 2.0 ** (bits - 2))


def _close(drawn: Drawn) -> bool:
    if drawn.name == "normal" and len(drawn.numbers) == 2:
        return abs(drawn.numbers[0]) >= 10 * drawn.numbers[1]
    narrow = drawn.name == "uniform" and len(drawn.numbers) == 2 and drawn.numbers[0] > 0
    few = drawn.name in ("choice", "listed") and len(finite := [x for x in drawn.numbers if math.isfinite(x)]) > 1
    if few:
        return 0 < max(finite) - min(finite) <= 0.1 * max(map(abs, finite))
    return narrow and drawn.numbers[1] <= 1.2 * drawn.numbers[0]


def _alike(drawn: Drawn) -> bool:
    few = drawn.name in ("choice", "listed", "full", "signs", "zeros")
    return few or (drawn.name == "integers" and drawn.numbers[1] - drawn.numbers[0] < 32) or _ints(drawn)


def _ints(drawn: Drawn) -> bool:
    return drawn.name == "normal" and not drawn.is_floating


def _numbers(test: Callable[[complex], bool]) -> Callable[[Facts], bool]:
    return lambda facts: any(test(each) for each in facts.numbers if not isinstance(each, bool))


def _both_ways(facts: Facts) -> bool:
    return all(len(values) > 1 for values in facts.parameters(FLAGS).values()) and bool(facts.parameters(FLAGS))


def _absent_and_there(facts: Facts) -> bool:
    optional = [values for name, values in facts.values.items() if name.endswith("| None")]
    return bool(optional) and all(None in values and len(values) > 1 for values in optional)


def _several_types(facts: Facts) -> bool:
    return any(len({spec.dtype for spec in bound.specs}) > 1 for _, bound in facts.calls)


def _each_alone(facts: Facts) -> bool:
    """Each floating-point tensor that is read holds NaN or infinity in a call in which all others are finite."""
    names: set[str] = set()
    alone: set[str] = set()
    for _, bound in facts.calls:
        drawn = [each for each in Drawn.all_of(bound.specs) if each.is_floating]
        names |= {each.spec.name for each in drawn}
        odd = [each.spec.name for each in drawn if _not_finite(each)]
        alone |= set(odd) if len(odd) == 1 else set()
    return bool(names) and names == alone


def _each_count(facts: Facts) -> bool:
    """Each size but the last of the tensors that are written, of those that are read where none is, is large once."""
    written = any(spec.access != Access.READ for spec in facts.specs)
    largest: dict[tuple[str, int], int] = {}
    for spec in facts.specs:
        if (spec.access != Access.READ) == written:
            sizes = spec.shape if written and len(spec.shape) == 1 else spec.shape[:-1]
            for at, size in enumerate(sizes):
                largest[spec.name, at] = max(size, largest.get((spec.name, at), 0))
    counts = [size for size in largest.values() if size > 1]
    return bool(counts) and min(counts) > ONE_DIMENSION


def _wide_rows(facts: Facts) -> bool:
    """Two rows or more of 2^31 elements each."""
    return any(s.shape and s.shape[-1] >= BEYOND_32_BITS and s.elements > s.shape[-1] for s in facts.specs)


def _full_counter(facts: Facts) -> bool:
    """A size that a counter of 32 bits leaves with its next block."""
    return any(BEYOND_32_BITS - COUNTER_STEP <= size < BEYOND_32_BITS for s in facts.specs for size in s.shape)


def _long_steps(facts: Facts) -> bool:
    """A dimension in which a second step of 16 begins 2^31 elements, or parts of complex ones, behind the first."""
    return any(
        size > COUNTER_STEP and stride * COUNTER_STEP * (1 + s.dtype.startswith("complex")) >= BEYOND_32_BITS
        for s in facts.specs
        for size, stride in zip(s.shape, s.strides, strict=True)
    )


def _number_of_rows(facts: Facts) -> bool:
    """A tensor with one element for each of the long rows of another tensor of the same call."""
    return any(
        _is_wide(long) and len(s.shape) == len(long.shape) and s.shape[-2] > 1 and 0 in (s.shape[-1] - 1, s.strides[-1])
        for _, bound in facts.calls
        for long in bound.specs
        for s in bound.specs
        if s is not long
    )


def _is_wide(spec: TensorSpec) -> bool:
    return len(spec.shape) > 1 and spec.shape[-1] >= BEYOND_32_BITS


def _from_the_end(facts: Facts) -> bool:
    """Each increment is so negative that its vector begins beyond 2^30 elements, of complex ones 2^31 parts."""
    increments = [values for name, values in facts.values.items() if name.startswith("inc")]
    return bool(increments) and all(min(values) <= -FAR for values in increments)


def _large_block(facts: Facts) -> bool:
    """A block of a cache with offsets of 2^31 elements in it."""
    return facts.problem.category == CACHES and any(
        len(s.shape) > 2 and last_place(s.shape[1:], s.strides[1:]) >= BEYOND_32_BITS for s in facts.specs
    )


def _long_side(facts: Facts) -> bool:
    """A size in a list of sizes, or a number, beyond those that float32 holds one by one."""
    listed = [
        each for values in facts.values.values() for value in values if isinstance(value, tuple) for each in value
    ]
    return any(isinstance(each, int) and abs(each) > BEYOND_FLOAT32 for each in [*listed, *facts.numbers])


KINDS: Final = (
    CaseKind("empty", "a tensor without elements", lambda facts: any(0 in spec.shape for spec in facts.specs)),
    CaseKind("one", "a tensor of one element", lambda facts: any(spec.elements == 1 for spec in facts.specs)),
    CaseKind(
        "odd",
        "a size above 32 that no power of two beyond 2 divides",
        lambda facts: any(size > 32 and size % 4 for spec in facts.specs for size in spec.shape),
    ),
    CaseKind(
        "gaps", "elements that do not lie row by row without gaps", lambda f: any(not s.contiguous for s in f.specs)
    ),
    CaseKind(
        "expanded",
        "a stride of 0",
        lambda facts: any(
            stride == 0 and size > 1 for s in facts.specs for size, stride in zip(s.shape, s.strides, strict=True)
        ),
    ),
    CaseKind("offset", "a tensor that begins within its storage", lambda facts: any(s.offset for s in facts.specs)),
    CaseKind(
        "grid",
        f"more than {ONE_DIMENSION:,} in a size that is not the last",
        lambda facts: any(size > ONE_DIMENSION for s in facts.specs for size in s.shape[:-1]),
    ),
    CaseKind("2³¹", "offsets beyond 2³¹ elements", lambda f: any(reach(s) >= BEYOND_32_BITS for s in f.specs)),
    CaseKind("grid each", f"each count beyond {ONE_DIMENSION:,}, a call for each", _each_count),
    CaseKind("rows 2³¹", "two rows or more of 2³¹ elements each", _wide_rows),
    CaseKind("number 2³¹", "a tensor with one element for each row of 2³¹ elements", _number_of_rows),
    CaseKind("inc < −2²⁹", "each increment so negative that its vector begins beyond 2³⁰ elements", _from_the_end),
    CaseKind("2³¹ − 1", "a size of 2³¹ − 1, or up to 15 less", _full_counter),
    CaseKind("step 2³¹", "over 16 elements along a dimension, of which 16 reach over 2³¹ elements", _long_steps),
    CaseKind(
        "out 2³¹",
        "an argument that takes the result, with offsets beyond 2³¹ elements",
        lambda facts: any(s.access == Access.WRITE and reach(s) >= BEYOND_32_BITS for s in facts.specs),
    ),
    CaseKind("block 2³¹", "a cache's block of 2³¹ elements, or offsets", _large_block),
    CaseKind("side 2²⁴", "a list of sizes, or a number, with one beyond 2²⁴", _long_side),
    CaseKind(
        "outer",
        "2³¹ elements of which the first and the last differ from all others",
        _any(lambda d: d.name == "outer" and d.spec.elements >= BEYOND_32_BITS),
    ),
    CaseKind("nan", "NaN or infinity among the elements", _any(_not_finite)),
    CaseKind("nan alone", "NaN or infinity in each tensor that is read while all others are finite", _each_alone),
    CaseKind("denormal", "subnormal numbers among the elements", _any(_denormal)),
    CaseKind("large", "elements of 100 and more", _any(lambda d: d.is_floating and d.largest >= LARGE)),
    CaseKind("small", "elements of 0.005 and less", _any(lambda d: d.is_floating and 0 < d.largest <= SMALL)),
    CaseKind(
        "apart",
        "complex elements of both signs whose parts differ in size by many powers of ten",
        _any(lambda d: d.name == "magnitudes" and d.spec.dtype.startswith("complex")),
    ),
    CaseKind("close", "elements that differ little from each other", _any(lambda d: d.is_floating and _close(d))),
    CaseKind("equal", "elements of few values, so that many are equal", _any(_alike)),
    CaseKind("ends", "whole numbers near the ends of their type", _any(_ends)),
    CaseKind("types", "tensors of different types in one call", _several_types),
    CaseKind("number 0", "a number that is 0", _numbers(lambda x: x == 0)),
    CaseKind("number < 0", "a number below 0", _numbers(lambda x: (x.real if isinstance(x, complex) else x) < 0)),
    CaseKind(
        "number large", "a number of 100 and more, infinity or NaN", _numbers(lambda x: not abs(x) < LARGE_NUMBER)
    ),
    CaseKind("number small", "a number of 0.001 and less, not 0", _numbers(lambda x: 0 < abs(x) <= SMALL_NUMBER)),
    CaseKind("flags", "every flag both ways", _both_ways),
    CaseKind("absent", "every argument that may be None, both ways", _absent_and_there),
    CaseKind("fuzz", "sizes from the secret seed", lambda facts: facts.some_call(Phase.FUZZ)),
)
"""In the order of the table's columns."""
