"""PyTorch's own sample inputs (OpInfo) as calls in the trace format, by the overload that each call reaches.

A sample is an argument list for a Python function; which ATen overload gets which arguments is seen by running the
function under a dispatch mode. Needs torch and expecttest.

``python -m kgbench.torchtools.opinfo`` keeps the coordinator free of torch: standard input is JSON ``{"device_kind",
"operators": [{"operator", "overloads", "dtypes"}]}``, standard output gets one JSON line per operator, or one line
``{"failed": …}`` that says why nothing can be said.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from kgbench.harness.machine.processes import own_lines
from kgbench.problem.calls import DTYPES, Call, TensorLike, TorchName, format_call, parse_call

FURTHER: Final[dict[str, tuple[str, ...]]] = {
    "_index_put_impl_": ("index_put",),
    "_local_scalar_dense": ("item",),
    "_to_copy": ("to", "double", "half", "bfloat16", "long", "int", "bool", "cfloat"),
    "copy_": ("nn.functional.instance_norm", "nn.functional.pad", "linalg.matrix_power", "diff"),
    "index": ("__getitem__",),
    "log_sigmoid_backward": ("nn.functional.logsigmoid",),
    "pow": ("__rpow__",),
    "reflection_pad1d_backward": ("nn.functional.pad",),
    "rrelu_with_noise": ("nn.functional.rrelu",),
    "rrelu_with_noise_backward": ("nn.functional.rrelu",),
    "unsafe_split_with_sizes": ("split",),
    "upsample_nearest2d_backward": ("nn.functional.interpolate", "nn.functional.upsample_nearest"),
}
"""Functions whose samples reach an operator that is not named like them."""
LIKE: Final = {"_index_put_impl_": "index_put_", "unsafe_split_with_sizes": "split_with_sizes"}
"""Operators that no Python function reaches, and the operator that takes the same arguments."""
SEED: Final = 20260101
"""Some samples have random numbers among their arguments; every process finds the same."""


class NoSamples(Exception):
    """The installed torch has no sample inputs that can be read; the text says what to do."""


@dataclass(frozen=True)
class SampledCall:
    """A call that a sample makes."""

    text: str
    dtype: str
    """What the sample was made for: torch's name."""
    lazy: str = ""
    """``conj`` or ``neg`` where tensors have that bit set."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """Of its tensors."""
    count: int = 1
    """Samples that make this call."""


@dataclass
class Samples:
    """What torch has for an operator."""

    operator: str
    samples: int = 0
    """Samples that reach it."""
    used: int = 0
    """Of those, how many can be written as calls of the overloads asked for."""
    refused: Counter[str] = field(default_factory=Counter)
    """Why the others cannot."""
    elsewhere: Counter[str] = field(default_factory=Counter)
    """Samples that are not counted: they reach only overloads that were not asked for."""
    calls: dict[str, list[SampledCall]] = field(default_factory=dict)
    """By overload, each call once."""
    derived: list[str] = field(default_factory=list)
    """Overloads that have the calls of another one, since they only write its answer somewhere."""

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
    operator: str, overloads: Sequence[str], dtypes: Sequence[str], device_kind: str = "cpu", shapes: int = 1
) -> Samples:
    """Every sample of the dtypes that reaches one of an operator's overloads (``default`` for the plain one).

    Overloads that write ``out`` get the calls of those that they write for. An overload with fewer than ``shapes``
    distinct shapes gets those of OpInfo's larger set of reference inputs besides. Raises NoSamples.
    """
    found = Samples(operator, calls={name: [] for name in overloads})
    infos = infos_of(operator)
    _add(found, infos, dtypes, device_kind, reference=False)
    few = [name for name in _plain(operator, overloads) if len({call.shapes for call in found.calls[name]}) < shapes]
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
    device_kind: str,
    *,
    reference: bool,
    only: Sequence[str] = (),
) -> None:
    """Add what samples reach; with ``only``, the calls of those overloads and no others."""
    wanted = only or list(found.calls)
    known = {
        (name, call.text, call.lazy): number for name, calls in found.calls.items() for number, call in enumerate(calls)
    }
    for info in infos:
        for dtype in dtypes:
            for calls in _samples(info, found.operator, dtype, device_kind, reference):
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


Reached = tuple[str, tuple[Any, ...], dict[str, Any]]
"""An overload with the arguments of one call, tensors as TensorLike."""


def _moved(operator: str, call: Reached, wanted: Sequence[str]) -> Reached | None:
    """The call as one of a wanted overload: itself, or with the same arguments by name, what is left out None."""
    name, args, kwargs = call
    if name in wanted:
        return call
    schemas = _schemas(operator)
    given = {each.name: value for each, value in zip(schemas[name].arguments, args, strict=False)} | kwargs
    for other in _plain(operator, wanted):
        arguments = schemas[other].arguments
        left_out = {a.name: None for a in arguments if a.name not in given and not a.has_default_value()}
        first = [a.name for a in arguments if not a.kwarg_only and a.name in given]
        rest = {key: value for key, value in given.items() if key not in first}
        ordered = tuple(given[key] for key in first)
        if _fits(schemas[other], ordered, {**rest, **left_out}) and first == list(given)[: len(first)]:
            return other, ordered, {**rest, **left_out}
    return None


def _taken(found: Samples, call: Reached, dtype: str, known: dict[tuple[str, str, str], int]) -> str:
    """Keep a call, unless it is known; why it cannot be kept, or nothing."""
    name, args, kwargs = call
    leaves = tree_leaves((args, kwargs))
    unfit = next((leaf for leaf in leaves if isinstance(leaf, _Unfit)), None)
    if unfit is not None:
        return unfit.reason
    if found.operator == "as_strided" and _beyond(*args):
        return "a tensor within a larger storage, whose rest is part of the call"
    lazy = next((leaf.lazy for leaf in leaves if isinstance(leaf, _Lazy)), "")
    plain_args, plain_kwargs = tree_map(lambda leaf: leaf.tensor if isinstance(leaf, _Lazy) else leaf, (args, kwargs))
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


# --- which OpInfos ---


def infos_of(operator: str) -> list[Any]:
    """OpInfos of the functions that reach an operator, in torch's order. Raises NoSamples."""
    stem = operator.strip("_").removesuffix("_backward")
    names = {operator, operator.rstrip("_"), stem, f"nn.functional.{stem}", *FURTHER.get(operator, ())}
    return [info for info in _all_infos() if names & {info.name, info.aten_name, *(a.name for a in info.aliases)}]


def _all_infos() -> list[Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as error:
        raise NoSamples(
            f"torch's sample inputs cannot be imported: {error}; pip install expecttest, or 'kgbench[opinfo]'"
        ) from None
    return list(op_db)


# --- what a sample reaches ---


def _samples(info: Any, operator: str, dtype: str, device_kind: str, reference: bool) -> Iterator[list[Reached]]:
    """Per sample the calls of the operator that it makes; none where it does not reach it."""
    torch_dtype = getattr(torch, dtype)
    if torch_dtype not in info.supported_dtypes(device_kind):
        return
    backward = operator.endswith("_backward")
    if backward and not (info.supports_autograd and torch_dtype.is_floating_point):
        return
    torch.manual_seed(SEED)
    random.seed(SEED)
    make = info.reference_inputs if reference else info.sample_inputs
    for sample in make("cpu", torch_dtype, requires_grad=backward):
        yield _reached_backward(info, sample, operator) if backward else _reached(info, sample, operator)


def _reached(info: Any, sample: Any, operator: str) -> list[Reached]:
    """The calls that a sample makes forward: as a function, as a method, in place."""
    for form in dict.fromkeys((info.op, info.method_variant, info.inplace_variant)):
        if form is None or (form is info.inplace_variant and sample.broadcasts_input):
            continue
        # Composite operators are seen whole in inference mode, and what they are made of outside of it.
        for whole in (True, False):
            recorder = _Recorder(operator)
            given = tree_map(_copied, sample.input) if form is info.inplace_variant else sample.input
            with torch.inference_mode(whole), recorder, _whatever_happens():
                form(given, *sample.args, **sample.kwargs)
            if recorder.reached:
                return recorder.reached
    fitting = _fitting(operator, *_noted((sample.input, *sample.args), sample.kwargs))
    return [fitting] if fitting is not None and _own(info, operator) else []


def _own(info: Any, operator: str) -> bool:
    return operator in (info.aten_name, info.name)


def _reached_backward(info: Any, sample: Any, operator: str) -> list[Reached]:
    recorder = _Recorder(operator)
    with _whatever_happens():
        outputs = tree_leaves(info.op(sample.input, *sample.args, **sample.kwargs))
        differentiable = [each for each in outputs if isinstance(each, torch.Tensor) and each.requires_grad]
        with recorder:
            torch.autograd.backward(differentiable, [torch.ones_like(each) for each in differentiable])
    return recorder.reached


@contextlib.contextmanager
def _whatever_happens() -> Iterator[None]:
    """A call that torch cannot do on this machine has been seen by then, or does not reach the operator."""
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        yield


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the calls of one operator."""

    def __init__(self, operator: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operator = operator
        self.reached: list[Reached] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        namespace, _, name = func._schema.name.partition("::")
        if namespace == "aten" and name in (self.operator, LIKE.get(self.operator)):
            self._note(func, name, args, kwargs)
        return func(*args, **kwargs)

    def _note(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        noted = _noted(args, kwargs)
        overload = func._schema.overload_name or "default"
        if name == self.operator and _fits(func._schema, *noted):
            self.reached.append((overload, *noted))
        else:
            # A number where the schema has a tensor; or another operator, of the same arguments.
            fitting = _fitting(self.operator, *noted)
            self.reached.append(fitting or (overload, (_Unfit("arguments that fit no overload's schema"),), {}))


def _beyond(like: Any, size: Sequence[int], strides: Sequence[int], offset: int | None = None, *rest: Any) -> bool:
    """The view reaches behind the end of the tensor's own storage."""
    tensor = like.tensor if isinstance(like, _Lazy) else like
    view = torch.empty_strided(tensor.shape, tensor.strides, device="meta") if tensor.strides else None
    held = math.prod(tensor.shape) if view is None else view.untyped_storage().nbytes() // view.itemsize
    last = sum((n - 1) * step for n, step in zip(size, strides, strict=True)) + (offset or 0)
    return 0 not in size and last >= held


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


# --- arguments as data ---


@dataclass(frozen=True)
class _Lazy:
    tensor: TensorLike
    lazy: str


@dataclass(frozen=True)
class _Unfit:
    """An argument that the trace format cannot say."""

    reason: str


def _noted(args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return tuple(_value(each) for each in args), {name: _value(each) for name, each in kwargs.items()}


def _value(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, (list, tuple)):
        return [_value(each) for each in value]
    if value is None or type(value) in (bool, int, float, complex, str):
        return value
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return TorchName(str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return "cuda"
    return _Unfit(f"an argument of type {type(value).__name__}")


def _tensor(value: torch.Tensor) -> Any:
    dtype = str(value.dtype).removeprefix("torch.")
    if value.layout is not torch.strided or value.is_quantized or value.is_nested:
        return _Unfit(f"a tensor of layout {value.layout}")
    if dtype not in DTYPES.values():
        return _Unfit(f"a tensor of dtype {dtype}")
    strides = None if value.is_contiguous() else tuple(value.stride())
    tensor = TensorLike(tuple(value.shape), dtype, strides)
    lazy = "conj" if value.is_conj() else "neg" if value.is_neg() else ""
    return _Lazy(tensor, lazy) if lazy else tensor


# --- schemas ---


def _schemas(operator: str) -> dict[str, Any]:
    """Schemas of an ATen operator by overload."""
    packet = getattr(torch.ops.aten, operator)
    return {name: getattr(packet, name)._schema for name in packet.overloads()}


def _plain(operator: str, overloads: Sequence[str]) -> list[str]:
    """Overloads without arguments that are only written."""
    schemas = _schemas(operator)
    return [name for name in overloads if name in schemas and not any(a.is_out for a in schemas[name].arguments)]


def _of_functional(operator: str, overload: str, calls: Mapping[str, list[SampledCall]]) -> list[SampledCall]:
    """For an overload with ``out``: the calls of the one with the same arguments but for that."""
    schemas = _schemas(operator)
    if overload not in schemas or not any(argument.is_out for argument in schemas[overload].arguments):
        return []
    wanted = _parameters(schemas[overload])
    for name, own in calls.items():
        given = _parameters(schemas[name])
        if own and wanted.items() <= given.items() and given.keys() - wanted.keys() <= _OF_OUT:
            alike = {call.text: call for call in (_without(each, _OF_OUT - wanted.keys()) for each in own)}
            function = getattr(getattr(torch.ops.aten, operator), overload)
            outs = [argument.name for argument in schemas[overload].arguments if argument.is_out]
            reduces = "reduction" in wanted
            return [call for call in alike.values() if not (reduces and _outgrows(function, outs, call))]
    return []


def _outgrows(function: Any, outs: Sequence[str], call: SampledCall) -> bool:
    """ATen makes ``out`` larger than its answer for a while, which memory of a fixed size does not allow.

    Of losses, it holds every element's loss before their sum.
    """
    parsed = parse_call(call.text)
    args, kwargs = tree_map(_made, (list(parsed.args), parsed.kwargs))
    dtype = next((each.dtype for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)), None)
    given = {name: torch.empty(0, dtype=dtype) for name in outs}
    with _whatever_happens():
        function(*args, **kwargs, **given)
    return any(out.untyped_storage().nbytes() > out.numel() * out.element_size() for out in given.values())


def _made(value: Any) -> Any:
    """An argument's value: tensors of ones, integers of zeros, which index anything."""
    if isinstance(value, TorchName):
        return getattr(torch, value.name)
    if not isinstance(value, TensorLike):
        return "cpu" if value == "cuda" else value
    strides = value.strides or torch.empty(value.shape, device="meta").stride()
    dtype = getattr(torch, value.dtype)
    return torch.empty_strided(value.shape, strides, dtype=dtype).fill_(int(dtype.is_floating_point))


_OF_OUT: Final = frozenset({"dtype", "layout", "device", "pin_memory", "memory_format"})
"""What creation functions are told, and have from ``out`` where there is one."""


def _without(call: SampledCall, keywords: frozenset[str]) -> SampledCall:
    parsed = parse_call(call.text)
    kwargs = {name: value for name, value in parsed.kwargs.items() if name not in keywords}
    return replace(call, text=format_call(Call(parsed.args, kwargs)))


def _parameters(schema: Any) -> dict[str, str]:
    return {each.name: str(each.type) for each in schema.arguments if not each.is_out}


def _fitting(operator: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Reached | None:
    """The first overload without ``out`` whose schema takes these arguments."""
    for name, schema in _schemas(operator).items():
        if not any(argument.is_out for argument in schema.arguments) and _fits(schema, args, kwargs):
            return name, args, kwargs
    return None


def _fits(schema: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    positional = [each for each in schema.arguments if not each.kwarg_only]
    by_name = {each.name: each for each in schema.arguments}
    if len(args) > len(positional) or not kwargs.keys() <= by_name.keys():
        return False
    given = {each.name: value for each, value in zip(positional, args, strict=False)}
    if given.keys() & kwargs.keys():
        return False
    given |= kwargs
    needed = {each.name for each in schema.arguments if not each.has_default_value()}
    return needed <= given.keys() and all(_takes(str(by_name[name].type), value) for name, value in given.items())


_TAKES: Final[dict[str, Callable[[Any], bool]]] = {
    "Tensor": lambda value: isinstance(value, (TensorLike, _Lazy, _Unfit)),
    "number": lambda value: isinstance(value, (bool, int, float, complex)),
    "float": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "int": lambda value: isinstance(value, (int, TorchName)) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
    "Device": lambda value: isinstance(value, str),
}


def _takes(kind: str, value: Any) -> bool:
    """Whether a schema's type takes a value; dtypes, layouts and memory formats are of type int there."""
    if kind.startswith("Optional["):
        return value is None or _takes(kind[len("Optional[") : -1], value)
    if kind.startswith("List["):
        inner = kind[len("List[") : -1]
        return isinstance(value, list) and all(_takes(inner, each) for each in value)
    return kind not in _TAKES or _TAKES[kind](value)


def main() -> None:
    # What torch prints must not be taken for our lines.
    lines = own_lines()
    torch.set_num_threads(1)
    asked = json.loads(sys.stdin.read())
    try:
        for each in asked["operators"]:
            found = collect(each["operator"], each["overloads"], each["dtypes"], asked["device_kind"])
            print(json.dumps(found.to_json()), file=lines, flush=True)
    except NoSamples as error:
        print(json.dumps({"failed": str(error)}), file=lines, flush=True)


if __name__ == "__main__":
    main()
