"""The stub of a worker that runs trusted code: the library, its fallback, or the reference, mutated or not.

Same transport and same sandbox as a candidate's; only how the entries are found differs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from kgbench.baselines.registry import Unavailable, load_baseline
from kgbench.core.kinds import DeviceKind
from kgbench.harness.candidate.worker import Handlers, Stub
from kgbench.harness.mutants.standard import mutant_entry
from kgbench.harness.verdict.modules.trusted import full_precision
from kgbench.harness.verdict.reference import ReferenceFunction
from kgbench.harness.wire.protocol import Message
from kgbench.harness.wire.requests import FullPrecision, LoadLibrary, LoadReference, Probe


class TrustedStub(Stub):
    """Loads entries by target instead of by source."""

    def handlers(self) -> Handlers:
        more: Handlers = {
            LoadLibrary: self.load_library,
            LoadReference: self.load_reference,
            FullPrecision: self.full_precision,
            Probe: self.probe,
        }
        return {**super().handlers(), **more}

    def probe(self, request: Probe, fds: list[int]) -> Message:
        return {"sum": int(torch.arange(1024, device=self.device_kind).sum().item())}

    def full_precision(self, request: FullPrecision, fds: list[int]) -> Message:
        full_precision()
        return {}

    def load_reference(self, request: LoadReference, fds: list[int]) -> Message:
        # What a reference creates, it creates where the outputs are.
        torch.set_default_device(self.device_kind)
        named = partial(mutant_entry, request.mutant) if request.mutant else reference_entry
        self.entries = {
            key: named(ReferenceFunction(**spec["reference"]), spec["parameters"])
            for key, spec in request.references.items()
        }
        return {"missing": [], "library": "the problem's own reference", "notes": {}}

    def load_library(self, request: LoadLibrary, fds: list[int]) -> Message:
        self.entries = {}
        library, notes = "", {}
        try:
            for key, target in request.targets.items():
                baseline = load_baseline(target, DeviceKind(self.device_kind))
                self.entries[key] = baseline.call
                library, notes = baseline.library, dict(baseline.notes)
        except Unavailable as error:
            return {"unavailable": str(error)}
        return {"missing": [], "library": library, "notes": notes}


def reference_entry(function: ReferenceFunction, parameters: list[str]) -> Callable[..., Any]:
    """The reference behind the entry's own signature; ``ReferenceContext`` says what it is called with beside."""

    def entry(*args: Any, **kwargs: Any) -> Any:
        return function.as_entry({**dict(zip(parameters, args, strict=False)), **kwargs})

    return entry
