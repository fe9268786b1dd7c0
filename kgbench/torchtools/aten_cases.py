"""Cases of a drafted problem file, from OpInfo's samples: check, opinfo, fuzz and bench."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import torch
from torch.utils._pytree import tree_leaves, tree_map

from kgbench.core.kinds import Kind
from kgbench.problem.calls import Call, TensorLike, TorchName, format_call, parse_call
from kgbench.torchtools.aten_schema import Side, is_written
from kgbench.torchtools.opinfo import SampledCall
from kgbench.torchtools.opinfo_samples import infos_of
from kgbench.torchtools.opinfo_update import choose, list_lines, without_dtype

FLOATS: Final = ("float32", "float16", "bfloat16")
OTHERS: Final = ("int32", "int64", "bool", "complex64")
SMALL: Final = ((), (0, 3), (1,), (997,), (1, 1), (7, 97), (5, 3, 2))
"""Shapes of check cases in which every tensor has the same shape."""
LARGE: Final = {"cpu": (64, 1024), "gpu": (4096, 4096), "gpu80": (8192, 8192), "gpu140": (16384, 8192)}
"""Rows and columns of the bench cases, by preset."""
EDGES: Final = (((13, 31), (1, 16)), ((6, 33), (0, 1)))
"""Shapes and strides of check cases that are not contiguous: column-major with a gap, and expanded."""
FORMS: Final = 4
"""Maximum number of combinations of a sample's non-tensor arguments that become check cases."""
EDIT: Final = "  # EDIT: "
"""Comment after a line that the author must replace."""


# --- samples ---


def float_dtypes(operator: str) -> list[str]:
    """The 16- and 32-bit float dtypes that the operator supports; without any, its other dtypes."""
    infos = infos_of(operator)
    had = [d for d in (*FLOATS, *OTHERS) if any(getattr(torch, d) in each.supported_dtypes("cpu") for each in infos)]
    return [each for each in had if each in FLOATS] or had or list(FLOATS)


def _forms(calls: Sequence[SampledCall]) -> list[Call]:
    """Calls whose tensors all have one shape and dtype, once for each combination of the other arguments."""
    found: dict[str, Call] = {}
    for sampled in calls:
        call = parse_call(sampled.text)
        tensors = [leaf for leaf in tree_leaves((call.args, call.kwargs)) if isinstance(leaf, TensorLike)]
        alike = {(each.shape, each.dtype, each.strides) for each in tensors}
        if alike and alike == {(tensors[0].shape, sampled.dtype, None)} and not sampled.lazy:
            found.setdefault(format_call(_reshaped(call, (), dtype="float32")), call)
    return list(found.values())


def _reshaped(call: Call, shape: tuple[int, ...], strides: tuple[int, ...] | None = None, dtype: str = "") -> Call:
    """The call with this shape for every tensor, and this dtype if one is given."""

    def one(leaf: Any) -> Any:
        return TensorLike(shape, dtype or leaf.dtype, strides) if isinstance(leaf, TensorLike) else leaf

    args, kwargs = tree_map(one, (call.args, call.kwargs))
    return Call(tuple(args), kwargs)


def answer_on_meta(side: Side, call: Call) -> Any:
    """The overload's result on the meta device, which has no values; None if it raises."""

    def made(leaf: Any) -> Any:
        if isinstance(leaf, TensorLike):
            strides = leaf.strides or _dense(leaf.shape)
            return torch.empty_strided(leaf.shape, strides, dtype=getattr(torch, leaf.dtype), device="meta")
        return getattr(torch, leaf.name) if isinstance(leaf, TorchName) else leaf

    args, kwargs = tree_map(made, (call.args, call.kwargs))
    try:
        return side.function(*args, **kwargs)
    except Exception:  # whatever torch raises is a refusal
        return None


def _dense(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(torch.empty(tuple(shape), device="meta").stride())


def quoted(words: str) -> str:
    return json.dumps(words, ensure_ascii=False)


def cases_lines(side: Side, kind: Kind, dtypes: Sequence[str], indent: str, anchor: str = "") -> Iterator[str]:
    forms = [form for form in _forms(side.calls) if answer_on_meta(side, form) is not None][:FORMS]
    check = list(_check(side, forms, dtypes[0])) or [quoted(call.text) for call in choose(side.calls, dtypes, most=8)]
    yield f"{indent}cases:{anchor}"
    yield f"{indent}  check:" if check else f'{indent}  check: ["{_NO_CALL}"]{EDIT}list calls'
    yield from (f"{indent}    - {item}" for item in check)
    yield from list_lines(choose(side.calls, dtypes), f"{indent}  ")
    form = next((each for each in forms if _fits(side, each, (40, 300), dtypes[0])), None)
    timed = kind in (Kind.COMPUTE, Kind.RANDOM)
    if form is not None:
        drawn = _placed(_reshaped(form, (7777, 8888))).replace("7777", "$m").replace("8888", "$n")
        yield f"{indent}  fuzz:"
        yield f"{indent}    count: 4"
        yield f"{indent}    call: {quoted(drawn)}"
        yield f"{indent}    draw: {{m: {{range: [1, 40]}}, n: {{range: [1, 300]}}}}"
    if timed:
        flat = form is None
        form = form or next((each for each in forms if _fits(side, each, (4096,), dtypes[0])), None)
        yield f"{indent}  bench:" if form is not None else f"{indent}  bench:{EDIT}give large, realistic calls"
        for preset, (rows, columns) in LARGE.items():
            shape = (rows * columns,) if flat else (rows, columns)
            of = dict.fromkeys(dtypes[:1] if preset == "cpu" else [dtypes[0], dtypes[-1]])
            texts = [check[-1].replace("$dtype", "f32") if check else quoted(_NO_CALL)] if form is None else [
                quoted(format_call(_reshaped(form, shape, dtype=dtype))) for dtype in of
            ]  # fmt: skip
            yield f"{indent}    {preset}: [{', '.join(texts)}]"


_NO_CALL: Final = "((), {})"


def _check(side: Side, forms: Sequence[Call], dtype: str) -> Iterator[str]:
    """Small calls of each form: shapes in turn, then strides, an odd address and special values of the first."""
    for number, form in enumerate(forms):
        for shape in SMALL if number == 0 else SMALL[-2:]:
            if _fits(side, form, shape, dtype):
                yield quoted(_placed(_reshaped(form, shape)))
    for form in forms[:1]:
        for shape, strides in () if _in_place(side) else EDGES:
            if answer_on_meta(side, _reshaped(form, shape, strides, dtype)) is not None:
                yield quoted(_placed(_reshaped(form, shape, strides)))
        if _fits(side, form, (5, 130), dtype):
            text = quoted(format_call(_reshaped(form, (5, 130), dtype=dtype)))
            yield f"{{call: {text}, offset: 1}}"
            if dtype in FLOATS:
                yield f"{{call: {text}, values: special}}"


def _in_place(side: Side) -> bool:
    return any(is_written(each) and not each.is_out for each in side.schema.arguments)


def _fits(side: Side, form: Call, shape: tuple[int, ...], dtype: str) -> bool:
    return answer_on_meta(side, _reshaped(form, shape, dtype=dtype)) is not None


def _placed(form: Call) -> str:
    """The form's text with ``$dtype`` for its tensors' dtype."""
    leaves = tree_leaves((form.args, form.kwargs))
    dtype = next(leaf.dtype for leaf in leaves if isinstance(leaf, TensorLike))
    return without_dtype(SampledCall(format_call(form), dtype), "$dtype")
