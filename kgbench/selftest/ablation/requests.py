"""Requests for calls whose outputs are taken as tensors, whatever they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from kgbench.harness.wire.requests import CallOnce, Prepare


@dataclass(frozen=True)
class LenientCall(CallOnce):
    lenient: tuple[str, ...] = ()
    """Dtypes as which the outputs are taken; empty where only tensors are."""

    @classmethod
    def decode(cls, message: Mapping[str, Any]) -> Self:
        return super().decode({"lenient": (), **message})


@dataclass(frozen=True)
class LenientPrepare(Prepare):
    call: LenientCall

    @classmethod
    def decode(cls, message: Mapping[str, Any]) -> Self:
        return cls(LenientCall.decode(message["call"]), message["calls"], message["stride"])
