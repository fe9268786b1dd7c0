"""ATen's overloads: kernels registered below autograd, so that ATen's formulas of gradients still apply.

An operator with a kernel per device gets one more at the key CPU or CUDA. An operator that ATen composes of others
(CompositeImplicitAutograd) takes its gradient from its parts: with a kernel at CPU alone it would lose it. So it gets a
second one at AutogradCPU or AutogradCUDA, which runs the parts wherever a gradient, a transform or a mode may need
them.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .caller import Answer, Caller, inside, is_inside, tensors_of
from .table import Device, Operator

_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_NUMBERS = (bool, int, float, complex)


class AtenOperator:
    """One overload while it has a kernel of ours."""

    def __init__(self, operator: Operator, device: Device) -> None:
        self.caller = Caller(operator, device, self._as_library)
        namespace, _, self._name = operator.name.partition("::")
        name, _, overload = self._name.partition(".")
        self._op = getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")
        self._key = device.kind.upper()
        self._original: Any = None
        # A schema makes new objects each time it is asked.
        arguments = self._op._schema.arguments
        self._names = [each.name for each in arguments]
        self._defaults = [each.default_value for each in arguments]
        self._for_tensors = {each.name for each in arguments if str(each.type) == "Tensor"}
        self._places = [place for place, name in enumerate(self._names) if name in self._for_tensors]
        names = [each.name for each in operator.parameters]
        self._returned = names.index(operator.returned) if operator.returned else None

    @property
    def is_composite(self) -> bool:
        return torch._C._dispatch_has_kernel_for_dispatch_key(self._op.name(), "CompositeImplicitAutograd")

    def register(self, library: torch.library.Library) -> str:
        """Puts the kernel in place until the library is destroyed; why it cannot, where the result may be a view."""
        if any(each.alias_info is not None and not each.alias_info.is_write for each in self._op._schema.returns):
            return f"{self._op.name()}: it may return a view of its argument, which autograd must know of"
        self.caller.kernel  # noqa: B018 - imported now, since an import error inside a call names nobody
        self._original = torch.library.get_kernel(self._op, self._key)
        with warnings.catch_warnings():
            # That kernels are overridden is what is asked for here.
            warnings.filterwarnings("ignore", message=r"[\s\S]*[Oo]verrid")
            library.impl(self._name, self._below_autograd, self._key, with_keyset=True)  # type: ignore[no-untyped-call]
            if self.is_composite:
                key = f"Autograd{self._key}"
                library.impl(self._name, self._at_autograd, key, with_keyset=True)  # type: ignore[no-untyped-call]
        return ""

    # --- calls ---

    def _below_autograd(self, keys: Any, *args: Any, **kwargs: Any) -> Any:
        if is_inside():
            return self._library(keys, args, kwargs)
        values = self._values(args, kwargs)
        answer = self.caller.answer(values)
        if answer.why:
            self.caller.left(values, answer)
            return self._library(keys, args, kwargs, answer)
        return self._run(values, answer)

    def _library(self, keys: Any, args: Sequence[Any], kwargs: Mapping[str, Any], answer: Answer | None = None) -> Any:
        """Call ATen's own kernel. A number that came as a tensor, as the 2 of ``x + 2``, becomes a number again.

        ``answer`` remembers the tensors that were made for equal calls.
        """
        if not self._has_number(args, kwargs):
            return self._original.call_boxed(keys, *args, **kwargs)
        made = (answer and answer.made) or self._made_of(args, kwargs, answer)
        given = [made.get(name, value) for name, value in zip(self._names, args, strict=False)]
        named = {name: made.get(name, value) for name, value in kwargs.items()}
        return self._original.call_boxed(keys, *given, **named)

    def _has_number(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether a tensor's place holds a number."""
        count = len(args)
        if any(place < count and type(args[place]) in _NUMBERS for place in self._places):
            return True
        return any(name in self._for_tensors and type(value) in _NUMBERS for name, value in kwargs.items())

    def _made_of(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], answer: Answer | None
    ) -> dict[str, torch.Tensor]:
        tensors = list(tensors_of((*args, *kwargs.values())))
        pairs = [*zip(self._names, args, strict=False), *kwargs.items()]
        numbers = {name: value for name, value in pairs if name in self._for_tensors and type(value) in _NUMBERS}
        made = {name: as_tensor(value, tensors) for name, value in numbers.items()}
        # Calls with zeros of different signs have one answer.
        if answer is not None and all(numbers.values()):
            answer.made.update(made)
        return made

    def _at_autograd(self, keys: Any, *args: Any, **kwargs: Any) -> Any:
        if is_inside():
            return self._op._op_dk(_COMPOSITE, *args, **kwargs)
        values = self._values(args, kwargs)
        parts = _must_see_parts(values)
        answer = Answer(parts) if parts else self.caller.answer(values)
        if answer.why:
            self.caller.left(values, answer)
            return self._op._op_dk(_COMPOSITE, *args, **kwargs)
        with torch._C._AutoDispatchBelowAutograd():
            result = self._run(values, answer)
        for each, value in zip(self.caller.operator.parameters, values, strict=True):
            if each.written:
                torch.autograd.graph.increment_version(value)
        return result

    def _run(self, values: Sequence[Any], answer: Answer) -> Any:
        result = self.caller.run(values)
        if self._returned is not None:
            return values[self._returned]
        return self._as_aten(values, result, answer.expected)

    def _values(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """One per parameter: the dispatcher leaves out what equals its default."""
        values = [*args, *self._defaults[len(args) :]]
        for name, value in kwargs.items():
            values[self._names.index(name)] = value
        return values

    # --- what ATen would give ---

    def _as_library(self, values: Sequence[Any]) -> Answer:
        """The results that ATen would give for these shapes, without memory, or why it refuses the call."""
        stand_ins = [_stand_in(value) for value in values]
        schema = self._op._schema.arguments
        positional = [value for each, value in zip(schema, stand_ins, strict=True) if not each.kwarg_only]
        named = {each.name: value for each, value in zip(schema, stand_ins, strict=True) if each.kwarg_only}
        try:
            with inside(), torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # ATen itself says it again
                result = self._op(*positional, **named)
        except (RuntimeError, NotImplementedError, IndexError, TypeError, ValueError):
            return Answer("ATen refuses these shapes, or knows its result only from values")
        before, after = tensors_of(values), tensors_of(stand_ins)
        if any(one.shape != other.shape for one, other in zip(before, after, strict=True)):
            return Answer("ATen would change the size of an argument")
        return Answer("", tuple(tensors_of((result,))))

    def _as_aten(self, values: Sequence[Any], result: Any, expected: Sequence[torch.Tensor]) -> Any:
        """Results in ATen's strides, on which views in compiled graphs rely. RuntimeError on other shapes or dtypes."""
        if isinstance(result, torch.Tensor) and len(expected) == 1 and _is_like(result, expected[0]):
            return result
        found = list(tensors_of((result,)))
        wrong = [have.shape != want.shape or have.dtype != want.dtype
                 for have, want in zip(found, expected, strict=False)]  # fmt: skip
        if any(wrong) or len(found) != len(expected):
            raise RuntimeError(
                f"{self._op.name()}: the kernel returned {_words(found)} where ATen returns {_words(expected)}"
            )
        laid = [_relaid(have, want) for have, want in zip(found, expected, strict=True)]
        if any(have is not new for have, new in zip(found, laid, strict=True)):
            self.caller.refuse(values, "the kernel's result has another memory layout than ATen's")
        return laid[0] if isinstance(result, torch.Tensor) else laid


def _must_see_parts(values: Sequence[Any]) -> str:
    """Why a composed operator has to run as its parts; empty where it need not."""
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return "a transform of torch.func is active"
    if torch.autograd.forward_ad._current_level >= 0:
        return "forward-mode differentiation is active"
    if torch._C._len_torch_dispatch_stack() > 0:
        return "a dispatch mode is active"
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors_of(values)):
        return "a gradient is needed, which ATen takes from the operator's parts"
    return ""


def as_tensor(value: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """A number as a tensor without dimensions that promotes beside ``tensors`` as the number does; others unchanged.

    PyTorch marks tensors that it makes of Python's numbers, and Python cannot. Beside tensors with dimensions the mark
    only means that a real or complex number has the default dtype where nothing else is floating; its value is
    otherwise read in full. Beside tensors without dimensions the dtype is what both have in common.
    """
    if not isinstance(value, _NUMBERS):
        return value
    with_dims = [each.dtype for each in tensors if each.dim()]
    widest = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}[type(value)]
    if not with_dims:
        dtype = functools.reduce(torch.promote_types, (torch.result_type(each, value) for each in tensors))
    elif isinstance(value, (bool, int)) or any(each.is_floating_point or each.is_complex for each in with_dims):
        dtype = widest
    else:
        dtype = torch.result_type(torch.empty(1, dtype=torch.int64), value)
    # Zeros of both signs are equal, so they are made again.
    return _made(value, widest, dtype) if value else _made.__wrapped__(value, widest, dtype)


@functools.lru_cache(maxsize=256, typed=True)
def _made(value: Any, widest: torch.dtype, dtype: torch.dtype) -> torch.Tensor:
    """Models have few numbers; making a tensor of one takes longer than the rest of a call."""
    with inside(), torch.inference_mode(False):
        return torch.tensor(value, dtype=widest, device="cpu").to(dtype)


def _stand_in(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    return [_stand_in(each) for each in value] if isinstance(value, (list, tuple)) else value


def _is_like(have: torch.Tensor, want: torch.Tensor) -> bool:
    return have.shape == want.shape and have.dtype == want.dtype and have.stride() == want.stride()


def _relaid(have: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    """The same values in the wanted strides; itself where it has them, but for dimensions of one element."""
    strides = zip(have.shape, have.stride(), want.stride(), strict=True)
    if have.numel() == 0 or all(size == 1 or one == other for size, one, other in strides):
        return have
    with inside():
        return torch.empty_strided(want.shape, want.stride(), dtype=want.dtype, device=have.device).copy_(have)


def _words(tensors: Sequence[torch.Tensor]) -> str:
    return ", ".join(f"{str(each.dtype).removeprefix('torch.')}{list(each.shape)}" for each in tensors) or "nothing"
