"""Which calls of an operator were judged, as data, and whether a call is one of them. No torch.

A call is a tuple of values in the order of the entry's parameters: a ``Tensor``, a tuple, a number, a text or None.

* Its *form* must be one that was judged: the dtypes, the number of dimensions, the layout, which dimensions are
  broadcast, which arguments are None, and each text and truth value. Forms are compared whole: float16 in two
  dimensions and float32 in three say nothing about float16 in three.
* Whole numbers lie between the least and the greatest that were judged in that form.
* *Sizes* lie in the range that was judged in the same dtypes and kinds of layout, in any number of dimensions: the
  length of a dimension, the number of elements, the elements of memory from the first to the last. So do other numbers.
* Where nobody else checks shapes (``alike``), lengths that were equal in all judged calls are equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

ALIGNMENT_BYTES: Final = 16
"""A tensor whose first element lies at a multiple of this is aligned: Triton compiles such a call of its own."""


@dataclass(frozen=True)
class Tensor:
    """What a guard looks at of a tensor. Strides count elements."""

    dtype: str
    """Torch's name, ``float16``."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    aligned: bool
    host: bool = False
    """True where the tensor lies in host memory while the call runs on a GPU."""

    @property
    def extent(self) -> int:
        """Elements of memory from the first to the last."""
        if 0 in self.shape:
            return 0
        return 1 + sum((size - 1) * abs(stride) for size, stride in zip(self.shape, self.strides, strict=True))


def layout(shape: Sequence[int], strides: Sequence[int]) -> str:
    """``contiguous``; else the order of dimensions in memory, and whether it has gaps, repeats or steps.

    Dimensions of one element lie nowhere, so they count as in row-major order.
    """
    if 0 in shape or _row_major(shape, strides):
        return "contiguous"
    real = [(stride, dim) for dim, (size, stride) in enumerate(zip(shape, strides, strict=True)) if size > 1]
    repeated = [dim for stride, dim in real if stride == 0]
    ordered = sorted((pair for pair in real if pair[0]), key=lambda pair: (-abs(pair[0]), pair[1]))
    words = [f"order {','.join(str(dim) for _, dim in ordered)}"]
    words += [f"repeated {','.join(map(str, repeated))}"] if repeated else []
    words += ["backwards"] if any(stride < 0 for stride, _ in real) else []
    expected, dense = 1, True
    for stride, dim in reversed(ordered):
        dense, expected = dense and abs(stride) == expected, expected * shape[dim]
    if not dense:
        words.append("gaps" if ordered and abs(ordered[-1][0]) == 1 else "steps")
    return " ".join(words)


def _row_major(shape: Sequence[int], strides: Sequence[int]) -> bool:
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


# --- forms ---


def form_of(call: Sequence[Any]) -> tuple[str, ...]:
    """One text per argument."""
    stretched = _broadcast(call)
    return tuple(_form(value, stretched) for value in call)


def _form(value: Any, stretched: Mapping[int, str]) -> str:
    if isinstance(value, Tensor):
        words = [value.dtype, f"{len(value.shape)}d", layout(value.shape, value.strides)]
        words += [] if value.aligned else ["unaligned"]
        words += ["host"] if value.host else []
        words += [f"broadcast {stretched[id(value)]}"] if id(value) in stretched else []
        return " ".join(words)
    if isinstance(value, tuple):
        parts = [_form(each, stretched) for each in value]
        whole = parts if None in value or not any(isinstance(each, Tensor) for each in value) else sorted(set(parts))
        return f"[{'; '.join(whole)}]"
    if isinstance(value, bool) or value is None:
        return str(value)
    return repr(value) if isinstance(value, str) else type(value).__name__


def _broadcast(call: Sequence[Any]) -> dict[int, str]:
    """By identity of a tensor the dimensions, counted from the last, that have one element where another has more."""
    tensors = list(_tensors(call))
    longest: dict[int, int] = {}
    for tensor in tensors:
        for place, size in enumerate(reversed(tensor.shape)):
            longest[place] = max(longest.get(place, 1), size)
    found = {}
    for tensor in tensors:
        dims = [place for place, size in enumerate(reversed(tensor.shape)) if size == 1 and longest[place] > 1]
        if dims:
            found[id(tensor)] = ",".join(f"-{place + 1}" for place in dims)
    return found


def _tensors(call: Iterable[Any]) -> Iterable[Tensor]:
    for value in call:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, tuple):
            yield from _tensors(value)


# --- sizes ---


def kinds_of(call: Sequence[Any]) -> str:
    """The dtypes and kinds of layout of a call: calls that agree in them share a range of sizes."""
    return "; ".join(_kinds(value) for value in call if isinstance(value, (Tensor, tuple)))


def _kinds(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(sorted({_kinds(each) for each in value if isinstance(each, Tensor)}))}]"
    kind = "contiguous" if layout(value.shape, value.strides) == "contiguous" else "strided"
    return f"{value.dtype} {kind}"


def sizes_of(call: Sequence[Any]) -> Iterable[tuple[int, str, float]]:
    """What has a range: the argument's place, what is counted, and how much it is."""
    for place, value in enumerate(call):
        for each in value if isinstance(value, tuple) else (value,):
            for name, number in _quantities(each):
                yield place, name, number
        if isinstance(value, tuple) and any(isinstance(each, Tensor) for each in value):
            yield place, "tensors", len(value)


def _quantities(value: Any) -> Iterable[tuple[str, float]]:
    if isinstance(value, Tensor):
        yield from (("length", size) for size in value.shape)
        yield "elements", math.prod(value.shape)
        yield "extent", value.extent
    elif isinstance(value, float):
        yield "number", value
    elif isinstance(value, complex):
        yield from (("real part", value.real), ("imaginary part", value.imag))


def whole_numbers(call: Sequence[Any]) -> list[int]:
    """Every whole number of the call that is no size of a tensor, in order; a form has always as many."""
    flat = (each for value in call for each in (value if isinstance(value, tuple) else (value,)))
    return [each for each in flat if isinstance(each, int) and not isinstance(each, bool)]


def _key(place: int, what: str) -> str:
    """The key of a range in the table."""
    return f"{place} {what}"


def _widen(found: dict[str, list[float]], key: str, number: float) -> None:
    low, high = found.setdefault(key, [number, number])
    found[key] = [min(low, number), max(high, number)]


def _lengths(call: Sequence[Any]) -> tuple[str, list[int]]:
    """The lengths of all dimensions and the whole numbers, with a text that says how many there are of each."""
    shapes = [each.shape for each in _tensors(call)]
    numbers = whole_numbers(call)
    return f"{','.join(str(len(shape)) for shape in shapes)} {len(numbers)}", [
        *(n for s in shapes for n in s),
        *numbers,
    ]


# --- the table of an operator ---


def judged_table(calls: Iterable[Sequence[Any]], *, alike: bool) -> dict[str, Any]:
    """What ``Judged`` reads, as JSON-ready data, of the calls that a kernel was right in."""
    forms: dict[tuple[str, ...], dict[str, Any]] = {}
    sizes: dict[str, dict[str, list[float]]] = {}
    columns: dict[str, list[list[int]]] = {}
    for call in calls:
        numbers = whole_numbers(call)
        entry = forms.setdefault(form_of(call), {"least": numbers, "greatest": numbers})
        entry["least"] = list(map(min, entry["least"], numbers))
        entry["greatest"] = list(map(max, entry["greatest"], numbers))
        own = sizes.setdefault(kinds_of(call), {})
        for place, what, number in sizes_of(call):
            if math.isfinite(number):  # else the range would have every number in it
                _widen(own, _key(place, what), number)
        if alike:
            key, lengths = _lengths(call)
            columns.setdefault(key, []).append(lengths)
    return {
        "forms": [{"form": list(form), **entry} for form, entry in forms.items()],
        "sizes": sizes,
        "alike": {key: _equal_columns(rows) for key, rows in columns.items()},
    }


def _equal_columns(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Places whose numbers are equal to each other in every row, in groups."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, column in enumerate(zip(*rows, strict=True)):
        groups.setdefault(column, []).append(place)
    return [places for places in groups.values() if len(places) > 1]


class Judged:
    """The judged calls of one operator."""

    def __init__(self, table: Mapping[str, Any], names: Sequence[str]) -> None:
        """``names`` are the entry's parameters, for the reasons."""
        self._forms = {tuple(each["form"]): (each["least"], each["greatest"]) for each in table["forms"]}
        self._sizes: Mapping[str, Mapping[str, Sequence[float]]] = table["sizes"]
        self._alike: Mapping[str, Sequence[Sequence[int]]] = table["alike"]
        self._names = names

    def refusal(self, call: Sequence[Any]) -> str:
        """Why a call is none that was judged; empty where it is one."""
        form = form_of(call)
        found = self._forms.get(form)
        if found is None:
            return f"not judged: form {self._words(form)}"
        for number, least, greatest in zip(whole_numbers(call), *found, strict=True):
            if not least <= number <= greatest:
                return f"not judged: number {number} is not in {least}..{greatest}"
        own = self._sizes.get(kinds_of(call), {})
        for place, what, size in sizes_of(call):
            low, high = own.get(_key(place, what), (math.inf, -math.inf))
            if not (low <= size <= high and math.isfinite(size)):
                return f"not judged: {what} {size:g} of {self._names[place]} is not in {low:g}..{high:g}"
        if self._alike:
            key, lengths = _lengths(call)
            for places in self._alike.get(key, ()):
                if len({lengths[place] for place in places}) > 1:
                    return "not judged: lengths differ that were always equal"
        return ""

    def _words(self, form: Sequence[str]) -> str:
        return ", ".join(f"{name}: {text}" for name, text in zip(self._names, form, strict=True))
