"""What answers requests in a candidate's worker that is believed. It runs beside the candidate and knows no answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from kgbench.harness.candidate.calls import Call, as_tuple
from kgbench.harness.candidate.observer import watched
from kgbench.harness.candidate.worker import Stub
from kgbench.harness.wire.protocol import Message
from kgbench.selftest.ablation.own_clock import OwnClock


class WeakStub(Stub):
    """Says itself what a window took; where it is asked to, it makes tensors of whatever is returned."""

    lenient: Sequence[str] = ()
    """Dtypes as which the outputs are taken; empty where only tensors are."""
    elapsed_us = 0.0

    def call(self, message: Message, fds: list[int]) -> Message:
        self.lenient = message.get("lenient", ())
        return super().call(message, fds)

    def prepare(self, message: Message, fds: list[int]) -> Message:
        self.lenient = message["call"].get("lenient", ())
        return super().prepare(message, fds)

    def window(self, message: Message, fds: list[int]) -> Message:
        return {**super().window(message, fds), "elapsed_us": self.elapsed_us}

    def made(self, calls: list[Call]) -> list[Any]:
        own = OwnClock(self.device_kind)
        with watched(self.observer):
            outputs = [entry(*args, **kwargs) for entry, args, kwargs, _, _ in calls]
            self.elapsed_us = own.stop_us()
            self._synchronize()
        return outputs

    def returned(self, outputs: Any) -> Sequence[Any]:
        """What a judge sees who only compares values."""
        if not self.lenient:
            return super().returned(outputs)
        values = []
        for output, dtype in zip(as_tuple(outputs), self.lenient, strict=False):
            value = torch.as_tensor(output).detach().to(self.device_kind, getattr(torch, dtype or "float32"))
            values.append(value if type(value) is torch.Tensor else value.as_subclass(torch.Tensor))
        return values
