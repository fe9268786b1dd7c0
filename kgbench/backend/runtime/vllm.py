"""vLLM's operators: an entry of its table `torch.ops.NAMESPACE` is another function while the package is enabled."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from .caller import Caller, is_inside
from .table import Device, Operator


class VllmOperator:
    """One compiled operator of vLLM while it has a kernel of ours."""

    def __init__(self, operator: Operator, device: Device) -> None:
        self.caller = Caller(operator, device)
        namespace, _, self._name = operator.name.partition("::")
        self._table = getattr(torch.ops, namespace)
        self._original: Any = None

    def register(self) -> str:
        """Puts the kernel in place; why it cannot, where vLLM is not loaded or declares the operator otherwise."""
        found = getattr(self._table, self._name, None)
        if found is None:
            return f"{self.caller.operator.name}: vLLM is not loaded; import it before enabled()"
        expected = [each.name for each in self.caller.operator.parameters]
        declared = [each.name for each in found.default._schema.arguments]
        if len(declared) != len(expected):
            return (
                f"{self.caller.operator.name}: vLLM declares {', '.join(declared)}, judged were {', '.join(expected)}"
            )
        self.caller.kernel  # noqa: B018 - imported now, since an import error inside a call names nobody
        self._original = found
        setattr(self._table, self._name, _Entry(self.caller, found))
        return ""

    def unregister(self) -> None:
        if self._original is not None:
            setattr(self._table, self._name, self._original)
            self._original = None


class _Entry:
    """What stands in the table. Attributes such as `default` are vLLM's."""

    def __init__(self, caller: Caller, original: Any) -> None:
        self._caller, self._original = caller, original
        schema = original.default._schema.arguments
        self._signature = inspect.Signature([
            inspect.Parameter(
                each.name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=each.default_value if each.has_default_value() else inspect.Parameter.empty,
            )
            for each in schema
        ])  # fmt: skip

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_inside() or torch.compiler.is_compiling():
            return self._original(*args, **kwargs)
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = list(bound.arguments.values())
        answer = self._caller.answer(values)
        if answer.why:
            self._caller.left(values, answer)
            return self._original(*args, **kwargs)
        return self._caller.run(values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)
