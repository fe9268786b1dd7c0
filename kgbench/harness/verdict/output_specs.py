"""What a call has to return: dtype, shape, strides, and whose storage; by ATen's own rules where it is the library."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from kgbench.harness.machine.arguments import TORCH_NAMES
from kgbench.harness.verdict.inputs import CallInputs, itemsize
from kgbench.harness.wire.buffers import LAZY_BITS
from kgbench.problem.cases import BoundArgument, BoundCase, TensorSpec, may_overlap
from kgbench.problem.model import plain_type


@dataclass(frozen=True)
class OutputSpec:
    """Dtype, shape, strides and storage that one returned tensor must have."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    """None where any are correct. They are specified for views, for creation operators, and where the problem file says
    so.
    """
    offset: int | None = None
    """Storage offset of a view, in elements; None where any is correct."""
    base: str = ""
    """Name of the tensor whose storage it must share; empty where it must share none."""
    lazy: tuple[bool, bool] = (False, False)
    """Whether it has the lazy conjugate and negative bits."""

    @property
    def shares(self) -> bool:
        return bool(self.base)

    @property
    def overlaps(self) -> bool:
        """Whether elements may overlap in memory."""
        return self.strides is not None and may_overlap(self.shape, self.strides)

    @property
    def elements(self) -> int:
        return torch.Size(self.shape).numel()

    @property
    def nbytes(self) -> int:
        return self.elements * itemsize(self.dtype)

    def has_strides(self, claimed: Any) -> bool:
        """Whether claimed strides are correct; those of sizes up to 1 lead to no element, of views neither."""
        if self.strides is None or claimed == list(self.strides):
            return True
        if not isinstance(claimed, list) or len(claimed) != len(self.shape):
            return False
        steps = zip(self.shape, claimed, self.strides, strict=True)
        return 0 in self.shape or all(size == 1 or got == want for size, got, want in steps)


def aten_specs(overload: str, inputs: CallInputs, keep_strides: bool) -> tuple[OutputSpec, ...]:
    """ATen's operator run on tensors without data: its rules for dtype, shape, strides and aliases, not its values.

    Where an operator does not run without data (its shape depends on values), it runs on a copy of them.
    """
    function = aten_function(overload)
    if function is None:
        raise ValueError(f"PyTorch {torch.__version__} has no operator aten:{overload}")
    specs = specs_without_data(function, inputs.bound, keep_strides)
    if specs is not None:
        return specs

    def copied(spec: TensorSpec) -> torch.Tensor:
        return inputs.chunks[spec.name].alone()

    return _outputs(function, inputs.bound, copied, inputs.device_type, keep_strides)


def specs_without_data(
    function: Callable[..., Any], bound: BoundCase, keep_strides: bool
) -> tuple[OutputSpec, ...] | None:
    """What ATen's function returns, by its rules alone; None where it does not run without data."""
    with contextlib.suppress(NotImplementedError, RuntimeError, ZeroDivisionError):
        return _outputs(function, bound, _without_data, "meta", keep_strides)
    return None


def aten_function(overload: str) -> Callable[..., Any] | None:
    """The overload ``name`` or ``name.variant``; None where this torch has none."""
    name, _, variant = overload.partition(".")
    function: Callable[..., Any] | None = getattr(getattr(torch.ops.aten, name, None), variant or "default", None)
    return function


def _outputs(
    function: Callable[..., Any],
    bound: BoundCase,
    make: Callable[[TensorSpec], torch.Tensor],
    device: str,
    keep_strides: bool,
) -> tuple[OutputSpec, ...]:
    tensors = {spec.name: make(spec) for spec in bound.specs}
    positional, keyword = bound.passed(lambda each: _value(each, each.value, tensors, device))
    outputs = function(*positional, **keyword)
    listed = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    return tuple(_spec(output, tensors, keep_strides) for output in listed)


def _spec(output: torch.Tensor, tensors: dict[str, torch.Tensor], keep_strides: bool) -> OutputSpec:
    storage = output.untyped_storage()._cdata
    aliases = (name for name, tensor in tensors.items() if tensor.untyped_storage()._cdata == storage)
    base = next(aliases, "") if output.numel() else ""
    return OutputSpec(
        str(output.dtype).removeprefix("torch."),
        tuple(output.shape),
        tuple(output.stride()) if keep_strides or base else None,
        int(output.storage_offset()) if base else None,
        base,
        (output.is_conj(), output.is_neg()),
    )


def _without_data(spec: TensorSpec) -> torch.Tensor:
    storage = torch.empty(spec.extent, dtype=getattr(torch, spec.dtype), device="meta")
    return LAZY_BITS[spec.lazy](storage.as_strided(spec.shape, spec.strides, spec.offset))


def _value(argument: BoundArgument, value: Any, tensors: dict[str, torch.Tensor], device: str) -> Any:
    plain = plain_type(argument.type)
    if isinstance(value, TensorSpec):
        return tensors[value.name]
    if isinstance(value, tuple):
        return [_value(argument, each, tensors, device) for each in value]
    if plain == "device":
        # What creates a tensor would do so in memory; where a case names no device the CPU's rules are the same.
        return torch.device(device)
    if plain == "Generator" or value is None:
        return None
    return getattr(torch, value) if plain in TORCH_NAMES else value
