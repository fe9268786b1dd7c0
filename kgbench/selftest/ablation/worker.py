"""The stub of a candidate's worker that is trusted. It runs beside the candidate and knows no answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from kgbench.harness.candidate.calls import Call, as_tuple
from kgbench.harness.candidate.observer import watched
from kgbench.harness.candidate.worker import Handlers, Stub
from kgbench.harness.wire.protocol import Message
from kgbench.harness.wire.requests import CallOnce, OpenWindow, Prepare
from kgbench.selftest.ablation.own_clock import OwnClock
from kgbench.selftest.ablation.requests import LenientCall, LenientPrepare


class WeakStub(Stub):
    """Times windows itself; where asked to, it makes tensors of whatever is returned."""

    lenient: Sequence[str] = ()
    """Dtypes as which the outputs are taken; empty where only tensors are."""
    elapsed_us = 0.0

    def handlers(self) -> Handlers:
        return {**super().handlers(), LenientCall: self.call, LenientPrepare: self.prepare}

    def call(self, request: CallOnce, fds: list[int]) -> Message:
        self.lenient = request.lenient if isinstance(request, LenientCall) else ()
        return super().call(request, fds)

    def prepare(self, request: Prepare, fds: list[int]) -> Message:
        self.lenient = request.call.lenient if isinstance(request, LenientPrepare) else ()
        return super().prepare(request, fds)

    def window(self, request: OpenWindow, fds: list[int]) -> Message:
        return {**super().window(request, fds), "elapsed_us": self.elapsed_us}

    def made(self, calls: list[Call]) -> list[Any]:
        own = OwnClock(self.device_kind)
        with watched(self.observer):
            outputs = [entry(*args, **kwargs) for entry, args, kwargs, _, _ in calls]
            self.elapsed_us = own.stop_us()
            self._synchronize()
        return outputs

    def returned(self, outputs: Any) -> Sequence[Any]:
        """The outputs as a judge sees them that only compares values."""
        if not self.lenient:
            return super().returned(outputs)
        values = []
        for output, dtype in zip(as_tuple(outputs), self.lenient, strict=False):
            value = torch.as_tensor(output).detach().to(self.device_kind, getattr(torch, dtype or "float32"))
            values.append(value if type(value) is torch.Tensor else value.as_subclass(torch.Tensor))
        return values
