"""One operator's kernel behind its guard: whether a call is one that was judged, and the call itself."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from .counts import Counts
from .guard import ALIGNMENT_BYTES, Tensor
from .table import Device, Operator

MOST_REMEMBERED: Final = 4096
"""Calls, by shapes and numbers, whose answer an operator remembers; then it begins again."""
_PLAIN: Final = (torch.Tensor, torch.nn.Parameter)

Watcher = Callable[[Operator, Sequence[Any], "Answer"], None]
"""Is told of a call that was left to the library: operator, values of the entry's parameters, the answer."""


class _Inside(threading.local):
    depth = 0


_inside = _Inside()


def is_inside() -> bool:
    """True while a kernel runs in this thread: operators that it calls go to the library."""
    return _inside.depth > 0


@contextlib.contextmanager
def inside() -> Iterator[None]:
    _inside.depth += 1
    try:
        yield
    finally:
        _inside.depth -= 1


@dataclass(frozen=True)
class Answer:
    """Whether a call may go to the kernel."""

    why: str
    """Why the call may not go to the kernel; empty where it may."""
    expected: tuple[torch.Tensor, ...] = ()
    """Results as the library would give them, without memory; empty where nobody knows."""
    unjudged: bool = False
    """Refused only because no call like it was judged, which further judging could change."""
    made: dict[str, Any] = field(default_factory=dict, compare=False)
    """Tensors that stand for the call's numbers, by the argument's name, once the library was given them."""


_YES: Final = Answer("")


class Caller:
    """Calls one operator's kernel, or says why not."""

    def __init__(
        self, operator: Operator, device: Device, library: Callable[[Sequence[Any]], Answer] = lambda values: _YES
    ) -> None:
        """``library`` says what it would make of a call whose form and sizes were judged; asked once per shape."""
        self.operator = operator
        self.counts = Counts()
        self.watcher: Watcher | None = None
        self._device = device
        self._guard = operator.guard()
        self._library = library
        self._remembered: dict[Any, Answer] = {}
        self._written = [place for place, each in enumerate(operator.parameters) if each.written]

    @functools.cached_property
    def kernel(self) -> Callable[..., Any]:
        return self.operator.kernel()

    def answer(self, values: Sequence[Any]) -> Answer:
        """Whether the kernel may be called with these values, one per parameter."""
        if not self.operator.deterministic and torch.are_deterministic_algorithms_enabled():
            return Answer("torch.use_deterministic_algorithms: equal calls gave different bits")
        key = tuple(map(_key, values))
        found = self._remembered.get(key)
        if found is None:
            found = self._found_out(values)
            self._remember(key, found)
        if self._written and not found.why and (why := self._overlap(values)):
            return Answer(why)
        return found

    def _found_out(self, values: Sequence[Any]) -> Answer:
        if why := self._not_plain(values):
            return Answer(why)
        why = self._guard.refusal([_fact(value, self._device.kind) for value in values])
        return Answer(why, unjudged=True) if why else self._library(values)

    def refuse(self, values: Sequence[Any], why: str) -> None:
        """From now on calls of these shapes and numbers are left to the library."""
        self._remember(tuple(map(_key, values)), Answer(why))

    def _remember(self, key: Any, found: Answer) -> None:
        if len(self._remembered) >= MOST_REMEMBERED:
            self._remembered.clear()
        self._remembered[key] = found

    def left(self, values: Sequence[Any], answer: Answer) -> None:
        """Counts a call that is left to the library."""
        self.counts.otherwise(answer.why)
        if self.watcher is not None:
            self.watcher(self.operator, values, answer)

    def run(self, values: Sequence[Any]) -> Any:
        """Calls the kernel, on the device of the tensors. What it returns is as it returns it."""
        parameters = self.operator.parameters
        plain = [_detached(value) for value in values]
        positional = [value for each, value in zip(parameters, plain, strict=True) if not each.keyword_only]
        named = {each.name: value for each, value in zip(parameters, plain, strict=True) if each.keyword_only}
        kernel = self.kernel
        with inside(), _current(values):
            result = kernel(*positional, **named)
        self.counts.kernel()
        return result

    def _not_plain(self, values: Sequence[Any]) -> str:
        """Properties that no kernel was judged with: subclasses of Tensor, other layouts, lazy bits, other devices."""
        found = None
        for each in tensors_of(values):
            if type(each) not in _PLAIN:
                return f"{type(each).__name__} is a subclass of Tensor"
            if each.layout is not torch.strided or each.is_quantized:
                return "a tensor is sparse or quantized"
            if each.is_conj() or each.is_neg():
                return "a tensor is lazily conjugated or negated"
            if each.device.type == self._device.kind:
                if found is not None and each.device != found:
                    return "tensors on several devices"
                found = each.device
            elif each.device.type != "cpu":
                return f"judged on {self._device.kind}, called on {each.device.type}"
        if found is None:
            return f"judged on {self._device.kind}, called without a tensor there"
        return _other_gpu(found, self._device.name) if found.type == "cuda" else ""

    def _overlap(self, values: Sequence[Any]) -> str:
        """Kernels are judged with tensors that lie apart."""
        for place in self._written:
            for written in tensors_of((values[place],)):
                others = (each for n, value in enumerate(values) if n != place for each in tensors_of((value,)))
                if any(_share_memory(written, other) for other in others):
                    return "an argument that is written shares memory with another"
        return ""


def tensors_of(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Every tensor among the values, also those in lists."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_of(value)


def _is_aligned(tensor: torch.Tensor) -> bool:
    return tensor.data_ptr() % ALIGNMENT_BYTES == 0


def _key(value: Any) -> Any:
    """Everything about a value that the answer depends on."""
    if isinstance(value, torch.Tensor):
        kind = type(value)
        if kind not in _PLAIN or value.layout is not torch.strided or value.is_quantized:
            return kind, value.layout
        bits = _is_aligned(value), value.is_conj(), value.is_neg()
        return value.dtype, value.shape, value.stride(), value.device, bits
    if isinstance(value, (list, tuple)):
        return tuple(map(_key, value))
    return type(value), value


def _fact(value: Any, kind: str) -> Any:
    """The value in the guard's form."""
    if isinstance(value, torch.Tensor):
        name = str(value.dtype).removeprefix("torch.")
        return Tensor(name, tuple(value.shape), value.stride(), _is_aligned(value), value.device.type != kind)
    if isinstance(value, (list, tuple)):
        return tuple(_fact(each, kind) for each in value)
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    return str(value.type if isinstance(value, torch.device) else value).removeprefix("torch.")


def _detached(value: Any) -> Any:
    """Kernels were judged with tensors that need no gradient. Autograd does its part above."""
    if isinstance(value, torch.Tensor):
        return value.detach() if value.requires_grad else value
    return [_detached(each) for each in value] if isinstance(value, list) else value


def _share_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    (begin, end), (other_begin, other_end) = _span(one), _span(other)
    return one.device == other.device and begin < other_end and other_begin < end


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """Addresses of the first byte and of the one after the last."""
    if tensor.numel() == 0:
        return 0, 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()


@functools.cache
def _other_gpu(device: torch.device, judged: str) -> str:
    here = torch.cuda.get_device_name(device)
    return "" if here == judged else f"judged on {judged}, called on {here}"


def _current(values: Sequence[Any]) -> contextlib.AbstractContextManager[Any]:
    """Triton launches on the current GPU, which need not be that of the tensors."""
    device = next((each.device for each in tensors_of(values) if each.device.type == "cuda"), None)
    if device is None or device.index == torch.cuda.current_device():
        return contextlib.nullcontext()
    return torch.cuda.device(device)
