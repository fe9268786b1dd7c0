"""PyTorch's own sample inputs (OpInfo) as calls in the trace format, by the overload that each call reaches.

A sample is an argument list for a Python function. The function runs under a dispatch mode, which records the ATen
overloads that it calls with their arguments. Needs torch and expecttest.

``python -m kgbench.torchtools.opinfo`` keeps the coordinator free of torch: standard input is JSON ``{"device_kind",
"operators": [{"operator", "overloads", "dtypes"}]}``, standard output gets one JSON line per operator, or one line
``{"failed": …}`` with the reason.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import torch
from torch.utils._pytree import tree_leaves, tree_map

from kgbench.core.kinds import DeviceKind
from kgbench.harness.machine.processes import own_lines
from kgbench.problem.calls import Call, TensorLike, TorchName, format_call, parse_call
from kgbench.torchtools.opinfo_arguments import Lazy, Reached, Unfit, fits, parameters, schemas_of, without_out
from kgbench.torchtools.opinfo_samples import NoSamples, infos_of, recorded_samples, whatever_happens


@dataclass(frozen=True)
class SampledCall:
    """A call that a sample makes."""

    text: str
    dtype: str
    """Torch's name of the dtype for which the sample was made."""
    lazy: str = ""
    """``conj`` or ``neg`` if tensors have that bit set."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """Shapes of the call's tensors."""
    count: int = 1
    """Number of samples that make this call."""


@dataclass
class Samples:
    """Torch's samples for an operator."""

    operator: str
    samples: int = 0
    """Number of samples that reach the operator."""
    used: int = 0
    """Number of those that can be written as calls of the requested overloads."""
    refused: Counter[str] = field(default_factory=Counter)
    """For the others, the number of samples by reason."""
    elsewhere: Counter[str] = field(default_factory=Counter)
    """Overloads that were not requested, with the number of samples that reach only those and are not counted."""
    calls: dict[str, list[SampledCall]] = field(default_factory=dict)
    """Calls by overload, each call once."""
    derived: list[str] = field(default_factory=list)
    """Overloads that have the calls of another one, since they write its result to an argument."""

    def to_json(self) -> dict[str, Any]:
        return {
            "operator": self.operator,
            "samples": self.samples,
            "used": self.used,
            "refused": dict(self.refused),
            "elsewhere": dict(self.elsewhere),
            "derived": self.derived,
            "calls": {name: [vars(call) for call in calls] for name, calls in self.calls.items()},
        }


def collect(
    operator: str,
    overloads: Sequence[str],
    dtypes: Sequence[str],
    device_kind: DeviceKind = DeviceKind.CPU,
    shapes: int = 1,
) -> Samples:
    """Every sample of the dtypes that reaches one of an operator's overloads (``default`` for the plain one).

    Overloads that write ``out`` get the calls of those whose result they write. An overload with fewer than ``shapes``
    distinct shapes also gets the calls of OpInfo's larger set of reference inputs. Raises NoSamples.
    """
    found = Samples(operator, calls={name: [] for name in overloads})
    infos = infos_of(operator)
    _add(found, infos, dtypes, device_kind, reference=False)
    few = [
        name for name in without_out(operator, overloads) if len({call.shapes for call in found.calls[name]}) < shapes
    ]
    if few:
        _add(found, infos, dtypes, device_kind, reference=True, only=few)
    for name in overloads:
        if not found.calls[name]:
            found.calls[name] = _of_functional(operator, name, found.calls)
            found.derived.append(name)
    return found


def _add(
    found: Samples,
    infos: Iterable[Any],
    dtypes: Sequence[str],
    device_kind: DeviceKind,
    *,
    reference: bool,
    only: Sequence[str] = (),
) -> None:
    """Add the calls that samples reach; with ``only``, only calls of those overloads."""
    wanted = only or list(found.calls)
    known = {
        (name, call.text, call.lazy): number for name, calls in found.calls.items() for number, call in enumerate(calls)
    }
    for info in infos:
        for dtype in dtypes:
            for calls in recorded_samples(info, found.operator, dtype, device_kind, reference):
                kept = [moved for call in calls if (moved := _moved(found.operator, call, wanted)) is not None]
                if not kept:
                    found.elsewhere.update({call[0] for call in calls} if not only else ())
                    continue
                found.samples += 1
                reasons = [_taken(found, call, dtype, known) for call in kept]
                if "" in reasons:
                    found.used += 1
                else:
                    found.refused[reasons[0]] += 1


def _moved(operator: str, call: Reached, wanted: Sequence[str]) -> Reached | None:
    """The call as one of a wanted overload: unchanged, or with the same arguments by name and None for missing ones."""
    name, args, kwargs = call
    if name in wanted:
        return call
    schemas = schemas_of(operator)
    given = {each.name: value for each, value in zip(schemas[name].arguments, args, strict=False)} | kwargs
    for other in without_out(operator, wanted):
        arguments = schemas[other].arguments
        left_out = {a.name: None for a in arguments if a.name not in given and not a.has_default_value()}
        first = [a.name for a in arguments if not a.kwarg_only and a.name in given]
        rest = {key: value for key, value in given.items() if key not in first}
        ordered = tuple(given[key] for key in first)
        if fits(schemas[other], ordered, {**rest, **left_out}) and first == list(given)[: len(first)]:
            return other, ordered, {**rest, **left_out}
    return None


def _taken(found: Samples, call: Reached, dtype: str, known: dict[tuple[str, str, str], int]) -> str:
    """Keep a call, unless it is known. Returns why it cannot be kept, or nothing."""
    name, args, kwargs = call
    leaves = tree_leaves((args, kwargs))
    unfit = next((leaf for leaf in leaves if isinstance(leaf, Unfit)), None)
    if unfit is not None:
        return unfit.reason
    if found.operator == "as_strided" and _beyond(*args):
        return "a tensor within a larger storage, whose rest is part of the call"
    lazy = next((leaf.lazy for leaf in leaves if isinstance(leaf, Lazy)), "")
    plain_args, plain_kwargs = tree_map(lambda leaf: leaf.tensor if isinstance(leaf, Lazy) else leaf, (args, kwargs))
    text = format_call(Call(tuple(plain_args), plain_kwargs))
    number = known.setdefault((name, text, lazy), len(found.calls[name]))
    if number < len(found.calls[name]):
        call_before = found.calls[name][number]
        found.calls[name][number] = replace(call_before, count=call_before.count + 1)
    else:
        plain = tree_leaves((plain_args, plain_kwargs))
        shapes = tuple(leaf.shape for leaf in plain if isinstance(leaf, TensorLike))
        found.calls[name].append(SampledCall(text, dtype, lazy, shapes))
    return ""


def _beyond(like: Any, size: Sequence[int], strides: Sequence[int], offset: int | None = None, *rest: Any) -> bool:
    """Whether the view reaches past the end of the tensor's own storage."""
    tensor = like.tensor if isinstance(like, Lazy) else like
    view = torch.empty_strided(tensor.shape, tensor.strides, device="meta") if tensor.strides else None
    held = math.prod(tensor.shape) if view is None else view.untyped_storage().nbytes() // view.itemsize
    last = sum((n - 1) * step for n, step in zip(size, strides, strict=True)) + (offset or 0)
    return 0 not in size and last >= held


def _of_functional(operator: str, overload: str, calls: Mapping[str, list[SampledCall]]) -> list[SampledCall]:
    """For an overload with ``out``: the calls of the overload with the same other arguments."""
    schemas = schemas_of(operator)
    if overload not in schemas or not any(argument.is_out for argument in schemas[overload].arguments):
        return []
    wanted = parameters(schemas[overload])
    for name, own in calls.items():
        given = parameters(schemas[name])
        if own and wanted.items() <= given.items() and given.keys() - wanted.keys() <= _OF_OUT:
            alike = {call.text: call for call in (_without(each, _OF_OUT - wanted.keys()) for each in own)}
            function = getattr(getattr(torch.ops.aten, operator), overload)
            outs = [argument.name for argument in schemas[overload].arguments if argument.is_out]
            reduces = "reduction" in wanted
            return [call for call in alike.values() if not (reduces and _outgrows(function, outs, call))]
    return []


def _outgrows(function: Any, outs: Sequence[str], call: SampledCall) -> bool:
    """Whether ATen temporarily makes ``out`` larger than the result, which memory of a fixed size does not allow.

    For example, a loss first stores every element's loss in ``out``, then their sum.
    """
    parsed = parse_call(call.text)
    args, kwargs = tree_map(_made, (list(parsed.args), parsed.kwargs))
    dtype = next((each.dtype for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)), None)
    given = {name: torch.empty(0, dtype=dtype) for name in outs}
    with whatever_happens():
        function(*args, **kwargs, **given)
    return any(out.untyped_storage().nbytes() > out.numel() * out.element_size() for out in given.values())


def _made(value: Any) -> Any:
    """An argument's value: tensors of ones; integer tensors of zeros, which are valid indices for any size."""
    if isinstance(value, TorchName):
        return getattr(torch, value.name)
    if not isinstance(value, TensorLike):
        return "cpu" if value == "cuda" else value
    strides = value.strides or torch.empty(value.shape, device="meta").stride()
    dtype = getattr(torch, value.dtype)
    return torch.empty_strided(value.shape, strides, dtype=dtype).fill_(int(dtype.is_floating_point))


_OF_OUT: Final = frozenset({"dtype", "layout", "device", "pin_memory", "memory_format"})
"""Arguments of creation functions that ``out`` decides if it is given."""


def _without(call: SampledCall, keywords: frozenset[str]) -> SampledCall:
    parsed = parse_call(call.text)
    kwargs = {name: value for name, value in parsed.kwargs.items() if name not in keywords}
    return replace(call, text=format_call(Call(parsed.args, kwargs)))


def main() -> None:
    # Torch's output must not be mistaken for the answers.
    lines = own_lines()
    torch.set_num_threads(1)
    asked = json.loads(sys.stdin.read())
    try:
        for each in asked["operators"]:
            found = collect(each["operator"], each["overloads"], each["dtypes"], DeviceKind(asked["device_kind"]))
            print(json.dumps(found.to_json()), file=lines, flush=True)
    except NoSamples as error:
        print(json.dumps({"failed": str(error)}), file=lines, flush=True)


if __name__ == "__main__":
    main()
