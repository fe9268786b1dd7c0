"""``python -m kgbench.torchtools.aten_draft``: drafts a problem file for an ATen operator from torch's facts.

Signatures come from FunctionSchema, cases and shapes from OpInfo's samples, words from torch's documentation. Standard
input is JSON ``{"operator", "overload"}``, overload empty for all that take tensors; standard output gets one line of
JSON: ``{"text"}`` of the file, ``{"unknown"}`` where torch has no such operator, or ``{"failed"}``. ``kgbench new aten
NAME`` starts it.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import torch
from torch.utils._pytree import tree_leaves, tree_map

from kgbench.core.errors import ExpressionError
from kgbench.core.kinds import Kind
from kgbench.harness.machine.processes import own_lines
from kgbench.problem.calls import TensorLike, TorchName, parse_call
from kgbench.problem.expressions import Expr, evaluate_reference
from kgbench.problem.model import Access
from kgbench.torchtools.aten_cases import EDIT, answer_on_meta, cases_lines, float_dtypes, quoted
from kgbench.torchtools.aten_schema import (
    Side,
    Unknown,
    given_parameters,
    has_out,
    is_written,
    kind_of,
    prose_of,
    schemas_of,
    side_of,
    tags_of,
)
from kgbench.torchtools.opinfo import SampledCall, collect
from kgbench.torchtools.opinfo_samples import NoSamples


def main() -> None:
    # Torch's output must not be mistaken for the answer.
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
    schemas = schemas_of(operator, overload)
    dtypes = float_dtypes(operator)
    # An overload with out uses the calls of the overload whose result it writes.
    every = list(dict.fromkeys([*schemas, *schemas_of(operator, "")]))
    calls = collect(operator, every, dtypes, shapes=10).calls
    if operator.endswith("_") and not any(calls.values()):
        # No function works in place: use the calls of the one that returns a new tensor.
        calls |= collect(operator.rstrip("_"), every, dtypes, shapes=10).calls
    models = {
        given_parameters(schema): name for name, schema in schemas_of(operator, "").items() if not has_out(schema)
    }
    sides = [
        side_of(
            operator,
            name,
            schema,
            calls[name],
            name if not has_out(schema) else models.get(given_parameters(schema), ""),
        )
        for name, schema in schemas.items()
    ]
    sides = [side for side in sides if side.calls] or sides
    return "\n".join(line.rstrip() for line in _lines(operator, sides, dtypes)) + "\n"


# --- the file ---


def _lines(operator: str, sides: Sequence[Side], dtypes: Sequence[str]) -> Iterator[str]:
    plain = next((side for side in sides if not has_out(side.schema)), sides[0])
    tags, prose = tags_of(operator, plain.name), prose_of(operator)
    kind = kind_of(plain.schema, tags)
    summary = re.split(r"(?<=[a-z`)])\.(?:\s|$)", prose[0])[0] if prose else f"aten::{operator}"
    category = "elementwise" if "pointwise" in tags else "reduction" if "reduction" in tags else kind
    yield f"# A first draft by kgbench new aten {operator}, torch {torch.__version__}: to be read line by line."
    yield f"summary: {quoted(summary[:110])}"
    yield f"kind: {kind}"
    yield f"category: {category}"
    several = len(sides) > 1 or plain.name != "default"
    if not several:
        yield f"entry: {quoted(plain.entry)}"
    yield f"dtypes: {{required: [{', '.join(dtypes)}]}}"
    shared = len({side.given for side in sides}) == 1
    if _agree(sides):
        yield from _argument_lines({name: line for side in sides for name, line in _arguments(side).items()}, "")
    if shared:
        yield from cases_lines(plain, kind, dtypes, "")
    references = {side.reference for side in sides}
    if len(references) == 1:
        yield f"reference: {_reference_value(plain, kind)}"
    if kind not in (Kind.VIEW, Kind.SYNC):
        yield f"tolerance: {_tolerance(plain, kind, tags)}"
    timed = kind in (Kind.COMPUTE, Kind.RANDOM)
    if timed and shared and (cost := _cost(plain)):
        yield f"cost: {cost}"
    if several:
        yield from _overloads(sides, kind, dtypes)
    elif plain.returns:
        yield f"returns: {plain.returns}"
    yield "doc: |"
    yield from (f"  {line}" if line else "" for line in _doc(sides, prose))


def _overloads(sides: Sequence[Side], kind: Kind, dtypes: Sequence[str]) -> Iterator[str]:
    """The mapping of overloads; each has only the keys that are not given for all."""
    agree, shared = _agree(sides), len({side.given for side in sides}) == 1
    references = {side.reference for side in sides}
    timed = kind in (Kind.COMPUTE, Kind.RANDOM)
    yield "overloads:"
    leaders: dict[tuple[tuple[str, str], ...], str] = {}
    for side in sides:
        yield f"  {side.name}:"
        yield f"    entry: {quoted(side.entry)}"
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
            yield from cases_lines(side, kind, dtypes, "    ", anchor)


def _reference_value(side: Side, kind: Kind) -> str:
    if kind == Kind.RANDOM:
        return f'"torch.clone(self)"{EDIT}give the distribution'
    if not side.reference:
        return f'"torch.clone(self)"{EDIT}torch has no function of this name; give the correct result'
    doubt = "" if _agrees_with_torch(side) else f"{EDIT}this fails or differs from ATen; give the correct result"
    return f"{quoted(side.reference)}{doubt}"


def _agrees_with_torch(side: Side, most: int = 8) -> bool:
    """Whether reference and overload return the same, for some samples of the widest dtype."""
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


def _tolerance(side: Side, kind: Kind, tags: frozenset[str]) -> str:
    tensors = _tensors(side)
    if kind == Kind.CREATION:
        return "{rule: exact}"
    if "pointwise" in tags or kind == Kind.RANDOM or not tensors:
        return "{rule: rounding, ulps: 4}"
    length = f"max(1, prod({tensors[0]}_shape))"
    return f'{{rule: accumulate, length: "{length}"}}  # more than enough; say how many terms make one element'


def _tensors(side: Side) -> list[str]:
    """Parameters that are one tensor and not optional."""
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
    """The file's text for each tensor parameter. Parameters that calls give need no shape."""
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
            access = Access.READWRITE if is_written(argument) else Access.READ
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
    """Whether all overloads that have a parameter describe it in the same way."""
    said = [_arguments(side) for side in sides]
    kinds = [{each.name: "Tensor" in str(each.real_type) for each in side.schema.arguments} for side in sides]
    return all(
        one[name] == other[name] for group in (said, kinds) for one in group for other in group for name in one
        if name in other
    )  # fmt: skip


def _is_index(name: str, side: Side) -> bool:
    """Whether its tensors are integers in every sample, whatever the dtypes of the others are."""
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
    """Expressions for a result's shape and dtype (empty: the case's dtype), and a comment if they are uncertain."""
    names = [each.name for each in side.schema.arguments]
    own = [f"{name}_shape" for name in _tensors(side)]
    shapes = ["()"] if not own else own if len(own) == 1 else [f"broadcast({', '.join(own)})"]
    if "dim" in names and own:
        shapes.append(f"reduced({own[0]}, dim{', keepdim' if 'keepdim' in names else ''})")
    if "size" in names:
        shapes.append("size")
    answers = [(call, answer_on_meta(side, parse_call(call.text))) for call in side.calls]
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


def _doc(sides: Sequence[Side], prose: Sequence[str]) -> list[str]:
    lines = []
    for paragraph in prose[:4]:
        lines += [*textwrap.wrap(paragraph, 120, break_long_words=False), ""]
    return [*lines, "The overloads, as torch has them:", *(f"- {side.schema}" for side in sides)]


if __name__ == "__main__":
    main()
