"""Calls a problem's reference: upcasts arguments, normalises what comes back. Referee side only."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from kgbench.baselines.expected import Answer, Expected, Follows, Sampled
from kgbench.core import user_modules
from kgbench.harness.verdict.narrow_dtypes import either, stored_as
from kgbench.problem.cases import may_overlap
from kgbench.problem.expressions import Expr, evaluate_reference
from kgbench.problem.model import Access, Overload

Draw = Callable[[Sampled, torch.dtype, torch.Generator | None], torch.Tensor]
"""How a random output comes about in a reference that runs as an entry."""
WIDE_REACH: Final = 1 << 30
"""Distance of a tensor's last element from its first, in elements, from which on a reference gets a dense copy:
libraries that it calls may compute such places in 32 bits.
"""
Views = Mapping[str, Any]
"""``[shape, strides, offset, live, variables, slots]`` by tensor argument: its logical view of a passed storage."""


class ReferenceFunction:
    """A reference from its text in the problem file: a dotted path, a ``def reference`` or an expression."""

    def __init__(self, text: str, returned_argument: str = "", write_only: Sequence[str] = ()) -> None:
        """``returned_argument``: the written argument that the entry returns, for which a reference may answer with the
        value alone; ``write_only``: arguments without values, which it is then not given.
        """
        self.text = text
        self.returned_argument = returned_argument
        self._unseen = frozenset(write_only if returned_argument else ())
        self._function = _resolve(text)

    @classmethod
    def of(cls, overload: Overload) -> ReferenceFunction:
        """An overload's."""
        return cls(**reference_spec(overload))

    def expected(self, arguments: Mapping[str, Any], written: tuple[str, ...]) -> dict[str, Expected]:
        """``answers`` of an operator without chance."""
        return values_only(self.answers(arguments, written))

    def answers(self, arguments: Mapping[str, Any], written: tuple[str, ...]) -> dict[str, Answer]:
        """Right outputs by name: the written arguments, or ``return`` / ``return[i]``.

        ``arguments``: by parameter name; tensors are logical views in the problem's own dtypes, on any device.
        Raises ValueError where the reference does not return what the entry promises.
        """
        seen = {name: upcast(argument) for name, argument in arguments.items() if name not in self._unseen}
        value = self._function(seen)
        if self.returned_argument and not isinstance(value, dict):
            value = {self.returned_argument: value}
        if written:
            returned = {name for name in value if name.startswith("return")} if isinstance(value, dict) else set()
            if not isinstance(value, dict) or set(value) - returned != set(written):
                raise ValueError(f"reference must return a dict with {list(written)}, not {_kind(value)}")
            return {name: _answer(value[name]) for name in (*written, *sorted(returned, key=_number))}
        if isinstance(value, (tuple, list)):
            return {f"return[{index}]": _answer(item) for index, item in enumerate(value)}
        return {"return": _answer(value)}

    def views(self, arguments: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """The correct views of the arguments themselves, since a view of an upcast copy would be none of theirs."""
        value = self._function(dict(arguments))
        if isinstance(value, (tuple, list)):
            return {f"return[{index}]": item for index, item in enumerate(value)}
        return {"return": value}

    def value(self, arguments: Mapping[str, Any]) -> Any:
        """The correct Python value, from the arguments in their own dtypes."""
        return self._function(dict(arguments))

    def as_entry(self, arguments: dict[str, Any]) -> Any:
        """Run as a candidate would: write the written arguments or return tensors in the problem's dtypes.

        Beside its own arguments an entry run so gets what ``ReferenceContext`` takes out.
        """
        context = ReferenceContext.taken(arguments)
        if context.plain:
            return self.value(arguments)
        return context.hand_out(typed_outputs(self, arguments, arguments, context), arguments)


@dataclass(frozen=True)
class ReferenceContext:
    """What a reference that runs in a candidate's place needs beside its arguments, since it knows no problem file."""

    views: Views
    stored: dict[str, torch.Tensor]
    """Tensor arguments by name: the view of a storage in which the argument's slots lie, else the argument itself."""
    written: tuple[str, ...]
    returns: tuple[str, ...]
    """Names of the dtypes that are returned."""
    strides: tuple[Any, ...]
    """Strides of each tensor that is returned; None where any are correct."""
    alias: bool
    """The result must be a view."""
    plain: bool
    """The result is a Python value."""
    returned_argument: str
    """The written argument that is returned; empty where there is none."""

    @classmethod
    def taken(cls, arguments: dict[str, Any]) -> ReferenceContext:
        """Take ``_views``, ``_written`` … out, and turn storages into logical views."""
        views: Views = arguments.pop("_views")
        stored = {}
        for name, (shape, strides, offset, _, _, slots) in views.items():
            given = element(arguments, name)
            if given is not None:
                view = given.as_strided(shape, strides, given.storage_offset() + offset)
                stored[name] = view
                _replace(arguments, name, view[slots] if slots else view)
        written, returns = tuple(arguments.pop("_written")), tuple(arguments.pop("_returns"))
        strides = tuple(arguments.pop("_strides", ()))
        alias, plain = arguments.pop("_alias"), arguments.pop("_plain", False)
        return cls(views, stored, written, returns, strides, alias, plain, arguments.pop("_returned_argument", ""))

    def hand_out(self, outputs: Mapping[str, torch.Tensor], arguments: Mapping[str, Any]) -> Any:
        """Treat outputs as an entry does: write the written ones, return the others."""
        if self.written:
            self.write(outputs, arguments)
        if self.returned_argument:
            return arguments[self.returned_argument]
        returned = [value for name, value in outputs.items() if name not in self.written]
        if not self.alias:
            steps = itertools.chain(self.strides, itertools.repeat(None))
            returned = [laid_out(each, at) for each, at in zip(returned, steps, strict=False)]
        if not returned:
            return None
        return returned[0] if "return" in outputs else tuple(returned)

    def write(self, outputs: Mapping[str, torch.Tensor], arguments: Mapping[str, Any]) -> None:
        """Put outputs into the written arguments, where these are live."""
        for name in self.written:
            held = element(arguments, name)
            value = either(self.live(name, held), outputs[name], held)
            self.stored[name][self.slots(name)] = value

    def live(self, name: str, view: torch.Tensor) -> torch.Tensor:
        """bool tensor, shape of the logical view: the elements that are the argument's."""
        _, _, _, live, variables, _ = self.views[name]
        if live is None:
            return torch.ones(view.shape, dtype=torch.bool, device=view.device)
        return live_mask(Expr.parse(live), view, variables)

    def slots(self, name: str) -> Any:
        """The argument's place in the stored view."""
        return self.views[name][5] or ...


def values_only(answers: Mapping[str, Answer]) -> dict[str, Expected]:
    """The answers of an operator that is not random. Raises ValueError where one is."""
    values = {name: answer for name, answer in answers.items() if isinstance(answer, Expected)}
    if len(values) < len(answers):
        raise ValueError("reference returned a distribution, which only problems of kind random may")
    return values


def honest(sampled: Sampled, dtype: torch.dtype, generator: torch.Generator | None) -> torch.Tensor:
    """Draw a random output from its true distribution."""
    return sampled.draw(dtype, generator)


def typed_outputs(
    function: ReferenceFunction,
    given: Mapping[str, Any],
    arguments: Mapping[str, Any],
    context: ReferenceContext,
    draw: Draw = honest,
) -> dict[str, torch.Tensor]:
    """Outputs by name in the problem's dtypes, computed from ``given``; ``arguments`` are what is written to."""
    if context.alias:
        return function.views(given)
    answers = function.answers(given, context.written)
    dtypes = {name: element(arguments, name).dtype for name in context.written}
    names = [name for name in answers if name not in context.written]
    dtypes |= {name: getattr(torch, dtype) for name, dtype in zip(names, context.returns, strict=True)}
    outputs: dict[str, torch.Tensor] = {}
    for name in sorted(answers, key=lambda name: isinstance(answers[name], Follows)):
        answer = answers[name]
        if isinstance(answer, Sampled):
            outputs[name] = draw(answer, dtypes[name], arguments.get("generator"))
        else:
            # A copy: a reference may answer with an argument itself, which another output overwrites.
            value = answer.value if isinstance(answer, Expected) else answer.value(outputs)
            outputs[name] = stored_as(value, dtypes[name])
    return {name: outputs[name] for name in answers}


def laid_out(value: torch.Tensor, strides: Any) -> torch.Tensor:
    """The same with these strides, where it has as many dimensions."""
    if strides is None or len(strides) != value.dim() or list(value.stride()) == list(strides):
        return value
    made = torch.empty_strided(value.shape, strides, dtype=value.dtype, device=value.device)
    # Elements that lie on one another are not defined: no problem judges them.
    return made if may_overlap(tuple(made.shape), strides) else made.copy_(value)


def element(arguments: Mapping[str, Any], name: str) -> Any:
    """The argument of a tensor's name: ``x``, or ``xs[2]`` of a list."""
    listed, _, number = name.partition("[")
    return arguments[listed][int(number.rstrip("]"))] if number else arguments[listed]


def _replace(arguments: dict[str, Any], name: str, value: torch.Tensor) -> None:
    listed, _, number = name.partition("[")
    if number:
        arguments[listed] = [
            value if at == int(number.rstrip("]")) else each for at, each in enumerate(arguments[listed])
        ]
    else:
        arguments[listed] = value


def reference_spec(overload: Overload) -> dict[str, Any]:
    """What ``ReferenceFunction`` takes, JSON-ready."""
    write_only = [each.name for each in overload.arguments if getattr(each, "access", "") == Access.WRITE]
    return {
        "text": overload.reference, "returned_argument": overload.returned_argument, "write_only": write_only
    }  # fmt: skip


def upcast(value: Any) -> Any:
    """Floating tensors as float64, complex as complex128, everything else as it is; lists element by element."""
    if isinstance(value, list):
        return [upcast(each) for each in value]
    if not isinstance(value, torch.Tensor):
        return value
    if sum(step * (size - 1) for step, size in zip(value.stride(), value.shape, strict=True)) >= WIDE_REACH:
        value = value.contiguous()
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
        user_modules.make_importable()
        function = getattr(importlib.import_module(module), name)
        return lambda arguments: function(**arguments)
    return lambda arguments: evaluate_reference(text, arguments, torch)


def _answer(value: Any) -> Answer:
    if isinstance(value, Answer):
        return value
    if isinstance(value, torch.Tensor):
        return Expected(value)
    raise ValueError(f"reference returned {_kind(value)} where a Tensor or Expected is needed")


def _number(name: str) -> int:
    return int(name.removeprefix("return").strip("[]") or 0)


def _kind(value: Any) -> str:
    return f"a dict with {sorted(value)}" if isinstance(value, dict) else type(value).__name__
