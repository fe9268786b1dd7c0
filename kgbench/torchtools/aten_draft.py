"""``python -m kgbench.torchtools.aten_draft``: a first problem file for an ATen operator, from what torch says.

Signatures come from FunctionSchema, cases and shapes from OpInfo's samples, words from torch's documentation. Standard
input is JSON ``{"operator", "overload"}``, overload empty for all that take tensors; standard output gets one line of
JSON: ``{"text"}`` of the file, ``{"unknown"}`` where torch has no such operator, or ``{"failed"}``. ``kgbench new aten
NAME`` starts it.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.utils._pytree import tree_leaves, tree_map

from kgbench.core.errors import ExpressionError
from kgbench.harness.machine.processes import own_lines
from kgbench.problem.calls import Call, TensorLike, TorchName, format_call, parse_call
from kgbench.problem.expressions import Expr, evaluate_reference
from kgbench.torchtools.opinfo import NoSamples, SampledCall, collect, infos_of
from kgbench.torchtools.opinfo_update import choose, list_lines, without_dtype

FLOATS: Final = ("float32", "float16", "bfloat16")
OTHERS: Final = ("int32", "int64", "bool", "complex64")
SMALL: Final = ((), (0, 3), (1,), (997,), (1, 1), (7, 97), (5, 3, 2))
"""Shapes of check cases, where every tensor of a call may have the same."""
LARGE: Final = {"cpu": (64, 1024), "gpu": (4096, 4096), "gpu80": (8192, 8192), "gpu140": (16384, 8192)}
EDGES: Final = (((13, 31), (1, 16)), ((6, 33), (0, 1)))
"""Column-major with a gap, and expanded."""
FORMS: Final = 4
"""Of a call's other arguments, how many combinations the check cases take from the samples."""
EDIT: Final = "  # EDIT: "
NEVER: Final = frozenset({"layout", "device", "pin_memory", "memory_format", "generator", "non_blocking", "out"})
"""Arguments that no reference needs."""


class Unknown(Exception):
    """Torch has no such operator, or none that a problem file can say; the text says which."""


@dataclass(frozen=True)
class Side:
    """One overload with what the file says about it."""

    name: str
    schema: Any
    entry: str
    returns: str
    """The argument that comes back; empty where there is none."""
    reference: str
    calls: tuple[SampledCall, ...]

    model: str
    """The overload that answers the same in a new tensor; empty where there is none."""

    @property
    def function(self) -> Any:
        """What can be called without ``out``."""
        return getattr(getattr(torch.ops.aten, self.schema.name.removeprefix("aten::")), self.model)

    @property
    def given(self) -> tuple[tuple[str, str], ...]:
        """Parameters that are not only written: overloads that agree in them share their cases."""
        return _given(self.schema)


def main() -> None:
    # What torch prints must not be taken for our line.
    lines = own_lines()
    torch.set_num_threads(1)
    asked = json.loads(sys.stdin.read())
    try:
        said = {"text": file_text(asked["operator"], asked["overload"])}
    except Unknown as error:
        said = {"unknown": str(error)}
    except NoSamples as error:
        said = {"failed": str(error)}
    print(json.dumps(said), file=lines, flush=True)


def file_text(operator: str, overload: str = "") -> str:
    """A problem file for all overloads of an operator that take or return tensors, or for one of them."""
    schemas = _schemas(operator, overload)
    dtypes = _dtypes(operator)
    # For an overload with out, those of the one that it writes for are needed.
    every = list(dict.fromkeys([*schemas, *_schemas(operator, "")]))
    calls = collect(operator, every, dtypes, shapes=10).calls
    if operator.endswith("_") and not any(calls.values()):
        # No function works in place: the calls of the one that does not.
        calls |= collect(operator.rstrip("_"), every, dtypes, shapes=10).calls
    models = {_given(schema): name for name, schema in _schemas(operator, "").items() if not _has_out(schema)}
    sides = [
        _side(operator, name, schema, calls[name], name if not _has_out(schema) else models.get(_given(schema), ""))
        for name, schema in schemas.items()
    ]
    sides = [side for side in sides if side.calls] or sides
    return "\n".join(line.rstrip() for line in _lines(operator, sides, dtypes)) + "\n"


# --- the signature ---


def _schemas(operator: str, overload: str) -> dict[str, Any]:
    packet = getattr(torch.ops.aten, operator, None) if operator.isidentifier() else None
    if packet is None or not hasattr(packet, "overloads"):
        raise Unknown(f"torch {torch.__version__} has no operator aten::{operator}")
    schemas = {name: getattr(packet, name)._schema for name in packet.overloads()}
    if overload:
        if overload not in schemas:
            raise Unknown(f"aten::{operator} has no overload '{overload}'; it has {', '.join(schemas)}")
        if words := _unsayable(schemas[overload]):
            raise Unknown(f"aten::{operator}.{overload} {words}")
        return {overload: schemas[overload]}
    kept = {name: schema for name, schema in schemas.items() if not _unsayable(schema)}
    if not kept and schemas:
        raise Unknown(f"aten::{operator} {_unsayable(next(iter(schemas.values())))}")
    return kept


_PLAIN: Final = {
    "Tensor": "Tensor", "int": "int", "SymInt": "int", "float": "float", "complex": "complex", "bool": "bool",
    "str": "str", "number": "Scalar", "ScalarType": "dtype", "Layout": "layout", "Device": "device",
    "MemoryFormat": "memory_format", "Generator": "Generator",
}  # fmt: skip
_IN_LISTS: Final = frozenset({"Tensor", "Tensor | None", "int", "float", "bool"})


def _type(kind: str) -> str | None:
    """The entry's word for a schema's type; None where an entry cannot say it."""
    if kind.startswith("Optional["):
        inner = _type(kind[len("Optional[") : -1])
        return None if inner is None else f"{inner} | None"
    if kind.startswith("List["):
        inner = _type(kind[len("List[") : -1])
        return f"list[{inner}]" if inner in _IN_LISTS else None
    return _PLAIN.get(kind)


def _unsayable(schema: Any) -> str:
    """Why no entry can be this overload; empty where one can."""
    for argument in schema.arguments:
        if _type(str(argument.real_type)) is None:
            return f"has the parameter '{argument.name}' of type {argument.real_type}, which no entry can have"
    returned = [str(each.type) for each in schema.returns]
    tensors = any("Tensor" in str(each.type) for each in (*schema.arguments, *schema.returns))
    right = set(returned) <= {"Tensor"} or returned in (["List[Tensor]"], ["number"])
    return "" if tensors and right else f"returns {', '.join(returned) or 'nothing'}, which is for TorchScript"


def _given(schema: Any) -> tuple[tuple[str, str], ...]:
    return tuple((each.name, str(each.real_type)) for each in schema.arguments if not each.is_out)


def _has_out(schema: Any) -> bool:
    return any(each.is_out for each in schema.arguments)


def _side(operator: str, name: str, schema: Any, calls: Sequence[SampledCall], model: str) -> Side:
    parameters, starred = [], False
    for argument in schema.arguments:
        if argument.kwarg_only and not starred:
            parameters.append("*")
            starred = True
        parameters.append(f"{argument.name}: {_type(str(argument.real_type))}{_default(argument)}")
    kinds = [_type(str(each.type)) for each in schema.returns]
    result = kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(map(str, kinds))}]" if kinds else "None"
    written = {next(iter(a.alias_info.before_set)): a.name for a in schema.arguments if _is_written(a)}
    aliases = [each.alias_info.before_set for each in schema.returns if each.alias_info is not None]
    back = [written[mark] for marks in aliases for mark in marks if mark in written]
    return Side(
        name=name,
        schema=schema,
        entry=f"{operator if name == 'default' else f'{operator}_{name}'}({', '.join(parameters)}) -> {result}",
        returns=back[0] if len(back) == 1 else "",
        reference=_reference(operator, schema),
        calls=tuple(calls),
        model=model,
    )


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _default(argument: Any) -> str:
    if not argument.has_default_value():
        return ""
    value = argument.default_value
    if str(argument.real_type) == "MemoryFormat":
        value = str(torch.contiguous_format).removeprefix("torch.")
    return f" = {value!r}"


# --- what is right ---


def _function(operator: str) -> str:
    """The function of torch that an operator is, as an expression may name it; empty where there is none."""
    base = operator.rstrip("_")
    for folder in ("special", "linalg", "fft"):
        if base.startswith(f"{folder}_") and hasattr(getattr(torch, folder), base.removeprefix(f"{folder}_")):
            return f"torch.{folder}.{base.removeprefix(f'{folder}_')}"
    if hasattr(torch, base) and not base.startswith("_"):
        return f"torch.{base}"
    return f"torch.nn.functional.{base}" if hasattr(torch.nn.functional, base) else ""


def _reference(operator: str, schema: Any) -> str:
    function = _function(operator)
    if not function:
        return ""
    given = [each for each in schema.arguments if each.name not in NEVER and not each.is_out]
    words = [f"{each.name}={each.name}" if each.kwarg_only else each.name for each in given]
    return f"{function}({', '.join(words)})"


def _documentation(operator: str) -> str:
    function = _function(operator)
    found: Any = torch
    for part in function.split(".")[1:]:
        found = getattr(found, part)
    text = inspect.getdoc(found) if function else ""
    alias = re.search(r"Alias for :\w+:`~?torch\.([\w.]+)`", text or "")
    if alias:
        found = torch
        for part in alias.group(1).split("."):
            found = getattr(found, part, None)
        text = inspect.getdoc(found)
    return text or ""


def _prose(operator: str) -> list[str]:
    """Paragraphs of torch's documentation in front of its lists of arguments, without markup."""
    text = _documentation(operator).strip()
    text = re.split(r"\n\s*(?:Args?|Arguments|Keyword args|Example|Examples|Returns|Shape|Parameters)::?\s*\n", text)[0]
    text = re.sub(r":\w+:`~?([^`<]+?)(?:\s*<[^>]*>)?`", r"\1", text).replace("``", "`")
    text = re.sub(r"\.\. \w+::\s*", "", text)
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]
    return [each for each in paragraphs if each and not re.match(rf"{operator.strip('_')}\(|.*\) -> ", each)]


def _kind(schema: Any, tags: frozenset[str]) -> str:
    if "nondeterministic_seeded" in tags:
        return "random"
    if any(str(each.type) == "number" for each in schema.returns):
        return "sync"
    if any(each.alias_info is not None and not each.alias_info.is_write for each in schema.returns):
        return "view"
    tensors = any("Tensor" in str(each.type) for each in schema.arguments if not each.is_out)
    return "compute" if tensors else "creation"


def _tags(operator: str, name: str) -> frozenset[str]:
    return frozenset(str(tag).removeprefix("Tag.") for tag in getattr(getattr(torch.ops.aten, operator), name).tags)


# --- samples ---


def _dtypes(operator: str) -> list[str]:
    """The dtypes of 16- and 32-bit floats that the operator has, or else others."""
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


def _answer(side: Side, call: Call) -> Any:
    """What the overload answers on the meta device, which has no values; None where it refuses."""

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


# --- the file ---


def _lines(operator: str, sides: Sequence[Side], dtypes: Sequence[str]) -> Iterator[str]:
    plain = next((side for side in sides if not _has_out(side.schema)), sides[0])
    tags, prose = _tags(operator, plain.name), _prose(operator)
    kind = _kind(plain.schema, tags)
    summary = re.split(r"(?<=[a-z`)])\.(?:\s|$)", prose[0])[0] if prose else f"aten::{operator}"
    category = "elementwise" if "pointwise" in tags else "reduction" if "reduction" in tags else kind
    yield f"# A first draft by kgbench new aten {operator}, torch {torch.__version__}: to be read line by line."
    yield f"summary: {_text(summary[:110])}"
    yield f"kind: {kind}"
    yield f"category: {category}"
    several = len(sides) > 1 or plain.name != "default"
    if not several:
        yield f"entry: {_text(plain.entry)}"
    yield f"dtypes: {{required: [{', '.join(dtypes)}]}}"
    shared = len({side.given for side in sides}) == 1
    agree = _agree(sides)
    if agree:
        yield from _argument_lines({name: line for side in sides for name, line in _arguments(side).items()}, "")
    if shared:
        yield from _cases(plain, kind, dtypes, "")
    references = {side.reference for side in sides}
    if len(references) == 1:
        yield f"reference: {_reference_value(plain, kind)}"
    if kind not in ("view", "sync"):
        yield f"tolerance: {_tolerance(plain, kind, tags)}"
    timed = kind in ("compute", "random")
    if timed and shared and (cost := _cost(plain)):
        yield f"cost: {cost}"
    if several:
        yield "overloads:"
        leaders: dict[tuple[tuple[str, str], ...], str] = {}
        for side in sides:
            yield f"  {side.name}:"
            yield f"    entry: {_text(side.entry)}"
            if side.returns:
                yield f"    returns: {side.returns}"
            if not agree:
                yield from _argument_lines(_arguments(side), "    ")
            if len(references) > 1:
                yield f"    reference: {_reference_value(side, kind)}"
            if timed and not shared and (cost := _cost(side)):
                yield f"    cost: {cost}"
            if not shared and side.given in leaders:
                yield f"    cases: *{leaders[side.given]}"
            elif not shared:
                leaders[side.given] = side.name
                anchor = f" &{side.name}" if sum(other.given == side.given for other in sides) > 1 else ""
                yield from _cases(side, kind, dtypes, "    ", anchor)
    elif plain.returns:
        yield f"returns: {plain.returns}"
    yield "doc: |"
    yield from (f"  {line}" if line else "" for line in _doc(sides, prose))


def _text(words: str) -> str:
    return json.dumps(words, ensure_ascii=False)


def _reference_value(side: Side, kind: str) -> str:
    if kind == "random":
        return f'"torch.clone(self)"{EDIT}give the distribution'
    if not side.reference:
        return f'"torch.clone(self)"{EDIT}torch has no function of this name; say what is right'
    doubt = "" if _agrees_with_torch(side) else f"{EDIT}this fails or differs from ATen; say what is right"
    return f"{_text(side.reference)}{doubt}"


def _agrees_with_torch(side: Side, most: int = 8) -> bool:
    """The reference gives what the overload gives, for some samples of the widest dtype."""
    for sampled in side.calls[:most]:
        torch.manual_seed(0)
        call = parse_call(sampled.text)
        args, kwargs = tree_map(_real, (call.args, call.kwargs))
        positional = [each.name for each in side.schema.arguments if not each.kwarg_only]
        given = {each.name: each.default_value for each in side.schema.arguments if each.has_default_value()}
        given |= dict(zip(positional, args, strict=False)) | kwargs
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                mine = evaluate_reference(side.reference, given, torch)
                theirs = side.function(*args, **kwargs)
            torch.testing.assert_close(mine, theirs, equal_nan=True)
        except Exception:  # whatever either raises: the two differ
            return False
    return True


def _real(leaf: Any) -> Any:
    if isinstance(leaf, TensorLike):
        return torch.randn(leaf.shape).to(getattr(torch, leaf.dtype))
    return getattr(torch, leaf.name) if isinstance(leaf, TorchName) else leaf


def _tolerance(side: Side, kind: str, tags: frozenset[str]) -> str:
    tensors = _tensors(side)
    if kind == "creation":
        return "{rule: exact}"
    if "pointwise" in tags or kind == "random" or not tensors:
        return "{rule: rounding, ulps: 4}"
    length = f"max(1, prod({tensors[0]}_shape))"
    return f'{{rule: accumulate, length: "{length}"}}  # more than enough; say how many terms make one element'


def _tensors(side: Side) -> list[str]:
    """Parameters that are one tensor that is always there."""
    return [a.name for a in side.schema.arguments if str(a.real_type) == "Tensor" and not a.is_out]


def _cost(side: Side) -> str:
    names = _tensors(side)
    others = [a for a in side.schema.arguments if "Tensor" in str(a.real_type) and a.name not in names and not a.is_out]
    if not names or others:
        return ""
    shapes = " + ".join(f"prod({name}_shape)" for name in names)
    shape, _, _ = _out_facts(side)
    largest = f"max({', '.join(f'prod({name}_shape)' for name in names)})" if len(names) > 1 else shapes
    return f'{{flops: "{largest}", bytes: "itemsize * ({shapes} + prod({shape}))"}}'


def _arguments(side: Side) -> dict[str, str]:
    """What the file says of each tensor parameter; what a call gives needs no shape."""
    lines = {}
    for argument in side.schema.arguments:
        if argument.is_out:
            shape, dtype, doubt = _out_facts(side)
            own = f', dtype: "{dtype}"' if dtype else ""
            lines[argument.name] = f'{{access: write, shape: "{shape}"{own}}}{doubt}'
        elif "Tensor" in str(argument.real_type) and _is_index(argument.name, side):
            edit = f"{EDIT}draw indices that are in range"
            lines[argument.name] = f'{{access: read, draw: "integers(0, 0)"}}{edit}'
        elif "Tensor" in str(argument.real_type):
            access = "readwrite" if _is_written(argument) else "read"
            lines[argument.name] = f"{{access: {access}, {_NORMAL}}}"
    return lines


_NORMAL: Final = 'draw: "normal()"'


def _argument_lines(arguments: Mapping[str, str], indent: str) -> Iterator[str]:
    """The arguments, and the value set ``special`` of those whose elements may be any numbers."""
    yield f"{indent}arguments:"
    yield from (f"{indent}  {name}: {line}" for name, line in arguments.items())
    if drawn := [f'{name}: "special()"' for name, line in arguments.items() if _NORMAL in line]:
        yield f"{indent}value_sets:"
        yield f"{indent}  special: {{{', '.join(drawn)}}}"


def _agree(sides: Sequence[Side]) -> bool:
    """What one overload says of a parameter is what all say that have it."""
    said = [_arguments(side) for side in sides]
    kinds = [{each.name: "Tensor" in str(each.real_type) for each in side.schema.arguments} for side in sides]
    return all(
        one[name] == other[name] for group in (said, kinds) for one in group for other in group for name in one
        if name in other
    )  # fmt: skip


def _is_index(name: str, side: Side) -> bool:
    """In every sample its tensors are whole numbers, whatever the others are."""
    at = [each.name for each in side.schema.arguments].index(name)
    parsed = [(parse_call(call.text), call.dtype) for call in side.calls]
    leaves = [
        (leaf.dtype, dtype)
        for call, dtype in parsed
        for leaf in tree_leaves([call.args[at] if at < len(call.args) else call.kwargs.get(name)])
        if isinstance(leaf, TensorLike)
    ]
    return bool(leaves) and all(own in ("int32", "int64") and dtype not in ("int32", "int64") for own, dtype in leaves)


def _out_facts(side: Side) -> tuple[str, str, str]:
    """Expressions for shape and dtype of a result, the dtype empty where it is the case's; and a mark to doubt it."""
    names = [each.name for each in side.schema.arguments]
    own = [f"{name}_shape" for name in _tensors(side)]
    shapes = ["()"] if not own else own if len(own) == 1 else [f"broadcast({', '.join(own)})"]
    if "dim" in names and own:
        shapes.append(f"reduced({own[0]}, dim{', keepdim' if 'keepdim' in names else ''})")
    if "size" in names:
        shapes.append("size")
    answers = [(call, _answer(side, parse_call(call.text))) for call in side.calls]
    known = [(call, answer) for call, answer in answers if isinstance(answer, torch.Tensor)]
    right = [shape for shape in [*shapes, "()"] if all(_shape_is(side, shape, *each) for each in known)]
    results = {str(answer.dtype).removeprefix("torch.") for _, answer in known}
    fixed = len(results) == 1 and any(call.dtype not in results for call, _ in known)
    dtype = f"{own[0].removesuffix('_shape')}_dtype if dtype is None else dtype" if "dtype" in names and own else ""
    doubt = "" if right and known else f"{EDIT}give the result's shape"
    return (right or shapes)[0], dtype or (results.pop() if fixed else ""), doubt


def _shape_is(side: Side, expression: str, call: SampledCall, answer: torch.Tensor) -> bool:
    parsed = parse_call(call.text)
    positional = [each.name for each in side.schema.arguments if not each.kwarg_only]
    given = {each.name: each.default_value for each in side.schema.arguments if each.has_default_value()}
    given |= dict(zip(positional, parsed.args, strict=False)) | parsed.kwargs
    variables = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    variables |= {f"{name}_shape": value.shape for name, value in given.items() if isinstance(value, TensorLike)}
    try:
        return tuple(Expr.parse(expression).evaluate(variables)) == tuple(answer.shape)
    except (ExpressionError, TypeError):
        return False


def _cases(side: Side, kind: str, dtypes: Sequence[str], indent: str, anchor: str = "") -> Iterator[str]:
    forms = [form for form in _forms(side.calls) if _answer(side, form) is not None][:FORMS]
    check = list(_check(side, forms, dtypes[0])) or [_text(call.text) for call in choose(side.calls, dtypes, most=8)]
    yield f"{indent}cases:{anchor}"
    yield f"{indent}  check:" if check else f'{indent}  check: ["{_NO_CALL}"]{EDIT}list calls'
    yield from (f"{indent}    - {item}" for item in check)
    yield from list_lines(choose(side.calls, dtypes), f"{indent}  ")
    form = next((each for each in forms if _fits(side, each, (40, 300), dtypes[0])), None)
    timed = kind in ("compute", "random")
    if form is not None:
        drawn = _placed(_reshaped(form, (7777, 8888))).replace("7777", "$m").replace("8888", "$n")
        yield f"{indent}  fuzz:"
        yield f"{indent}    count: 4"
        yield f"{indent}    call: {_text(drawn)}"
        yield f"{indent}    draw: {{m: {{range: [1, 40]}}, n: {{range: [1, 300]}}}}"
    if timed:
        flat = form is None
        form = form or next((each for each in forms if _fits(side, each, (4096,), dtypes[0])), None)
        yield f"{indent}  bench:" if form is not None else f"{indent}  bench:{EDIT}give large, realistic calls"
        for preset, (rows, columns) in LARGE.items():
            shape = (rows * columns,) if flat else (rows, columns)
            of = dict.fromkeys(dtypes[:1] if preset == "cpu" else [dtypes[0], dtypes[-1]])
            texts = [check[-1].replace("$dtype", "f32") if check else _text(_NO_CALL)] if form is None else [
                _text(format_call(_reshaped(form, shape, dtype=dtype))) for dtype in of
            ]  # fmt: skip
            yield f"{indent}    {preset}: [{', '.join(texts)}]"


_NO_CALL: Final = "((), {})"


def _check(side: Side, forms: Sequence[Call], dtype: str) -> Iterator[str]:
    """Small calls of each form: shapes in turn, then strides, an odd address and special values of the first."""
    for number, form in enumerate(forms):
        for shape in SMALL if number == 0 else SMALL[-2:]:
            if _fits(side, form, shape, dtype):
                yield _text(_placed(_reshaped(form, shape)))
    for form in forms[:1]:
        for shape, strides in () if _in_place(side) else EDGES:
            if _answer(side, _reshaped(form, shape, strides, dtype)) is not None:
                yield _text(_placed(_reshaped(form, shape, strides)))
        if _fits(side, form, (5, 130), dtype):
            text = _text(format_call(_reshaped(form, (5, 130), dtype=dtype)))
            yield f"{{call: {text}, offset: 1}}"
            if dtype in FLOATS:
                yield f"{{call: {text}, values: special}}"


def _in_place(side: Side) -> bool:
    return any(_is_written(each) and not each.is_out for each in side.schema.arguments)


def _fits(side: Side, form: Call, shape: tuple[int, ...], dtype: str) -> bool:
    return _answer(side, _reshaped(form, shape, dtype=dtype)) is not None


def _placed(form: Call) -> str:
    """The form's text with ``$dtype`` for its tensors' dtype."""
    leaves = tree_leaves((form.args, form.kwargs))
    dtype = next(leaf.dtype for leaf in leaves if isinstance(leaf, TensorLike))
    return without_dtype(SampledCall(format_call(form), dtype), "$dtype")


def _doc(sides: Sequence[Side], prose: Sequence[str]) -> list[str]:
    lines = []
    for paragraph in prose[:4]:
        lines += [*textwrap.wrap(paragraph, 120, break_long_words=False), ""]
    return [*lines, "The overloads, as torch has them:", *(f"- {side.schema}" for side in sides)]


if __name__ == "__main__":
    main()
