"""Calls a problem's reference: upcasts arguments, normalises what comes back. Referee side only."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import torch

from kgbench import owncode
from kgbench.baselines.expected import Expected
from kgbench.expr import Expr, evaluate_reference

Views = Mapping[str, Any]
"""Per tensor argument ``[shape, strides, offset, live, variables, slots]``: its logical view of a passed storage."""


class ReferenceFunction:
    """A reference from its text in the problem file: a dotted path, a ``def reference`` or an expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._function = _resolve(text)

    def expected(self, arguments: Mapping[str, Any], written: tuple[str, ...]) -> dict[str, Expected]:
        """Right outputs by name: the written arguments, or ``return`` / ``return[i]``.

        ``arguments``: by parameter name; tensors are logical views in the problem's own dtypes, on any device.
        Raises ValueError where the reference does not return what the entry promises.
        """
        value = self._function({name: upcast(argument) for name, argument in arguments.items()})
        if written:
            if not isinstance(value, dict) or set(value) != set(written):
                raise ValueError(f"reference must return a dict with {list(written)}, not {_kind(value)}")
            return {name: _expected(value[name]) for name in written}
        if isinstance(value, tuple):
            return {f"return[{index}]": _expected(item) for index, item in enumerate(value)}
        return {"return": _expected(value)}

    def as_entry(self, arguments: dict[str, Any]) -> Any:
        """Run as a candidate would: write the written arguments or return tensors in the problem's dtypes.

        Beside its own arguments an entry run so gets ``_views``, ``_written``, ``_returns``
        (dtype names) and ``_alias`` (whether the result must be a view).
        """
        views: Views = arguments.pop("_views")
        written, returns, alias = tuple(arguments.pop("_written")), arguments.pop("_returns"), arguments.pop("_alias")
        stored = {}
        for name, (shape, strides, offset, _, _, slots) in views.items():
            if arguments[name] is not None:
                view = arguments[name].as_strided(shape, strides, arguments[name].storage_offset() + offset)
                stored[name], arguments[name] = view, view[slots] if slots else view
        if alias:
            # A view of an upcast copy would be none of the argument.
            return self._function(arguments)
        outputs = self.expected(arguments, written)
        for name in written:
            view, (_, _, _, live, variables, slots) = arguments[name], views[name]
            value = outputs[name].value.to(view.dtype)
            if live is not None:
                value = torch.where(live_mask(Expr.parse(live), view, variables), value, view)
            stored[name][slots or ...] = value
        if written:
            return None
        values = [item.value.to(getattr(torch, dtype)) for item, dtype in zip(outputs.values(), returns, strict=True)]
        return values[0] if "return" in outputs else tuple(values)


def upcast(value: Any) -> Any:
    """Floating tensors as float64, complex as complex128, everything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.is_complex():
        return value.to(torch.complex128)
    return value.to(torch.float64) if value.is_floating_point() else value


def live_mask(live: Expr, view: torch.Tensor, variables: Mapping[str, Any]) -> torch.Tensor:
    """bool tensor, shape of the view: which elements are the argument's; from an expression over ``i, j, k, l``."""
    indices = torch.meshgrid(*(torch.arange(size, device=view.device) for size in view.shape), indexing="ij")
    named = dict(zip("ijkl", indices, strict=False))
    mask = live.evaluate({**variables, **named})
    if not isinstance(mask, torch.Tensor):
        return torch.full(view.shape, bool(mask), device=view.device)
    return mask.to(torch.bool).expand(view.shape)


def _resolve(text: str) -> Callable[[dict[str, Any]], Any]:
    if text.lstrip().startswith("def "):
        namespace: dict[str, Any] = {"torch": torch, "Expected": Expected}
        exec(compile(text, "<reference>", "exec"), namespace)
        function = namespace["reference"]
        return lambda arguments: function(**arguments)
    if ":" in text and "(" not in text:
        module, _, name = text.partition(":")
        owncode.make_importable()
        function = getattr(importlib.import_module(module), name)
        return lambda arguments: function(**arguments)
    return lambda arguments: evaluate_reference(text, arguments, torch)


def _expected(value: Any) -> Expected:
    if isinstance(value, Expected):
        return value
    if isinstance(value, torch.Tensor):
        return Expected(value)
    raise ValueError(f"reference returned {_kind(value)} where a Tensor or Expected is needed")


def _kind(value: Any) -> str:
    return f"a dict with {sorted(value)}" if isinstance(value, dict) else type(value).__name__
