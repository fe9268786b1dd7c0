"""Calls a problem's reference: upcasts arguments, normalises what comes back. Referee side only."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from kgbench import owncode
from kgbench.baselines.expected import Expected
from kgbench.expr import Expr, evaluate_reference
from kgbench.harness.codes import stored_as

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

    def view(self, arguments: Mapping[str, Any]) -> torch.Tensor:
        """The right view, of the arguments themselves: a view of an upcast copy would be none of theirs."""
        value: torch.Tensor = self._function(dict(arguments))
        return value

    def as_entry(self, arguments: dict[str, Any]) -> Any:
        """Run as a candidate would: write the written arguments or return tensors in the problem's dtypes.

        Beside its own arguments an entry run so gets what ``Hints`` takes out.
        """
        hints = Hints.taken(arguments)
        outputs = typed_outputs(self, arguments, arguments, hints)
        if hints.written:
            hints.write(outputs, arguments)
            return None
        return outputs["return"] if "return" in outputs else tuple(outputs.values())


@dataclass(frozen=True)
class Hints:
    """What a reference in a candidate's place has to be told, since it knows no problem file."""

    views: Views
    stored: dict[str, torch.Tensor]
    """By name the strided view of a storage in which the argument's slots lie; without slots the argument itself."""
    written: tuple[str, ...]
    returns: tuple[str, ...]
    """Names of the dtypes that are returned."""
    alias: bool
    """The result must be a view."""

    @classmethod
    def taken(cls, arguments: dict[str, Any]) -> Hints:
        """Take ``_views``, ``_written``, ``_returns`` and ``_alias`` out, and turn storages into logical views."""
        views: Views = arguments.pop("_views")
        stored = {}
        for name, (shape, strides, offset, _, _, slots) in views.items():
            if arguments[name] is not None:
                view = arguments[name].as_strided(shape, strides, arguments[name].storage_offset() + offset)
                stored[name], arguments[name] = view, view[slots] if slots else view
        written, returns = tuple(arguments.pop("_written")), tuple(arguments.pop("_returns"))
        return cls(views, stored, written, returns, arguments.pop("_alias"))

    def write(self, outputs: Mapping[str, torch.Tensor], arguments: Mapping[str, Any]) -> None:
        """Put outputs into the written arguments, where these are live."""
        for name in self.written:
            value = torch.where(self.live(name, arguments[name]), outputs[name], arguments[name])
            self.stored[name][self.slots(name)] = value

    def live(self, name: str, view: torch.Tensor) -> torch.Tensor:
        """bool tensor, shape of the logical view: the elements that are the argument's."""
        _, _, _, live, variables, _ = self.views[name]
        if live is None:
            return torch.ones(view.shape, dtype=torch.bool, device=view.device)
        return live_mask(Expr.parse(live), view, variables)

    def slots(self, name: str) -> Any:
        """Where in the stored view the argument lies."""
        return self.views[name][5] or ...


def typed_outputs(
    function: ReferenceFunction, given: Mapping[str, Any], arguments: Mapping[str, Any], hints: Hints
) -> dict[str, torch.Tensor]:
    """Outputs by name in the problem's dtypes, computed from ``given``; ``arguments`` are what is written to."""
    if hints.alias:
        return {"return": function.view(given)}
    outputs = function.expected(given, hints.written)
    if hints.written:
        # Copies: a reference may answer with an argument itself, which another output overwrites.
        return {name: stored_as(outputs[name].value, arguments[name].dtype) for name in hints.written}
    dtypes = zip(outputs.items(), hints.returns, strict=True)
    return {name: stored_as(item.value, getattr(torch, dtype)) for (name, item), dtype in dtypes}


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
