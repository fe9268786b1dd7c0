"""Judges calls of a module: inputs as the file draws them, the module in float64 as the reference."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import torch

from kgbench.baselines.expected import Answer
from kgbench.harness.verdict.inputs import CallInputs
from kgbench.harness.verdict.judge import STRICT_JUDGE, JudgeParts, OverloadJudge
from kgbench.harness.verdict.modules.reference import ModuleReference, Shape
from kgbench.harness.verdict.modules.trusted import ModuleError, TrustedModule, full_precision
from kgbench.harness.verdict.modules.weak import weaknesses, why_unjudgeable
from kgbench.harness.verdict.output_specs import OutputSpec
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.problem.calls import format_call
from kgbench.problem.cases import Case
from kgbench.problem.model import Overload
from kgbench.problem.modules import ModuleSource

SLOW_S: Final = 0.2
"""Seconds of a run from which on a module is not looked at for what passes; ``kgbench validate --suite`` does so."""
KNOWN_BYTES: Final = 64 << 20
"""Bytes of a call's correct outputs, in float64, up to which they are kept with the call."""


class ModuleJudge(OverloadJudge):
    """Judges calls of one module, whose parameters are drawn once for all candidates of a run."""

    def __init__(
        self, overload: Overload, device: torch.device, weights: str, parts: JudgeParts = STRICT_JUDGE
    ) -> None:
        """``weights``: the secret that parameters are drawn from. Raises ModuleError."""
        assert overload.module is not None
        self.module = trusted_module(overload.module, weights, device)
        self.weights = weights
        self._module_reference = ModuleReference(self.module)
        self._shapes: dict[str, Shape] = {}
        """What outputs look like, by the call."""
        self._sound: dict[tuple[str, str], bool] = {}
        """Calls and value sets: whether float32 is near enough to float64 there to say what is correct."""
        super().__init__(overload, device, parts)
        self.prepare = self._draw

    def reference_of(self, overload: Overload) -> ModuleReference:
        return self._module_reference

    @functools.cached_property
    def unjudgeable(self) -> str:
        return why_unjudgeable(self.module, self.overload.check[0].variables.get("batch"))

    @property
    def passes_wrong(self) -> str:
        """Which wrong answers kgbench's limits let pass, found once for a module; empty where that takes long."""
        return _weak(self.module, self.overload.check[0].variables.get("batch"), self.unjudgeable)

    def place(self, case: Case, generator: torch.Generator) -> PlacedCall:
        """As of any call; where the value set makes nothing that can be judged, in the file's own values."""
        key = (_key(case), case.values)
        if self._sound.get(key, True):
            call = super().place(case, generator)
            if self._sound.get(key, True):
                return call
        return super().place(replace(case, values="default"), generator)

    def output_specs(self, inputs: CallInputs, known: dict[str, Answer] | None = None) -> tuple[OutputSpec, ...]:
        """Outputs as the file's own module gives them, in any strides."""
        key, values = _key(inputs.bound.case), inputs.bound.case.values
        if (key, values) not in self._sound:
            answers = self.expected(inputs)
            self._shapes[key] = shape = self._module_reference.last
            self._sound[key, values] = values == "default" or shape.is_sound
            self.listed = len(shape.sizes) != 1
            if known is not None and 8 * sum(torch.Size(each).numel() for each in shape.sizes) <= KNOWN_BYTES:
                known.update(answers)
        shape = self._shapes[key]
        return tuple(OutputSpec(dtype, size) for dtype, size in zip(shape.dtypes, shape.sizes, strict=True))

    def _draw(self, arguments: Mapping[str, Any], variables: Mapping[str, Any], generator: torch.Generator) -> None:
        """Have the file draw its inputs, and put them into the arguments. Raises ModuleError."""
        drawn = self.module.inputs(generator, variables["values"], variables.get("batch"))
        for (name, argument), value in zip(arguments.items(), drawn, strict=True):
            if isinstance(argument, torch.Tensor):
                if not isinstance(value, torch.Tensor) or value.shape != argument.shape:
                    raise ModuleError(f"{self.module.source.file}: get_inputs gives another '{name}' from call to call")
                argument.copy_(value)


@functools.lru_cache(maxsize=1)
def trusted_module(source: ModuleSource, weights: str, device: torch.device) -> TrustedModule:
    """The module, kept for the next candidate of the same problem. Raises ModuleError."""
    full_precision()
    return TrustedModule(source, weights, device)


@functools.lru_cache(maxsize=1)
def _weak(module: TrustedModule, batch: int | None, unjudgeable: str) -> str:
    if unjudgeable or module.runs_s > SLOW_S:
        return ""
    return "; ".join(each.what for each in weaknesses(module, batch) if each.here)


def _key(case: Case) -> str:
    return "" if case.call is None else format_call(case.call)
