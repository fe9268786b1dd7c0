"""A judge that checks as little as other benchmarks: parts of ``JudgeParts``, and fewer cases."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from kgbench.core.kinds import DeviceKind, Phase
from kgbench.core.verdicts import PASSED, Verdict
from kgbench.harness.verdict.call_requests import CallRequests
from kgbench.harness.verdict.case_source import CaseSource
from kgbench.harness.verdict.collecting import Collector
from kgbench.harness.verdict.contract import OutputContract
from kgbench.harness.verdict.inputs import Chunk
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.wire.requests import CallOnce
from kgbench.problem.cases import Case, OtherValues
from kgbench.problem.model import Overload
from kgbench.selftest.ablation.requests import LenientCall


class NoContract(OutputContract):
    """No contract: accepts whatever is returned."""

    def check(self, call: PlacedCall, reply: dict[str, Any]) -> Verdict:
        return PASSED


def nothing_is_forbidden(name: str, chunk: Chunk, after: torch.Tensor, variables: dict[str, Any]) -> None:
    """Accepts every change of memory."""


class WeakRequests(CallRequests):
    """Calls in memory that still holds what it held, or whose outputs are taken as tensors whatever they are."""

    def __init__(self, overload: Overload, contract: OutputContract, *, poisoned: bool, lenient: bool) -> None:
        super().__init__(overload, contract)
        self.poisoned = poisoned
        self.lenient = lenient

    def call(self, call: PlacedCall, trusted_reference: bool = False) -> CallOnce:
        request = super().call(call, trusted_reference)
        if not self.poisoned:
            request = replace(request, poison=[])
        if not self.lenient or trusted_reference:
            return request
        dtypes = tuple(spec.dtype for spec in call.specs) or ("",)
        return LenientCall(**vars(request), lenient=dtypes)


class BelievingCollector(Collector):
    """Trusts the worker's copies: inputs stay in place meanwhile, and the worker itself shows views."""

    def claims(self, reply: dict[str, Any]) -> list[Any]:
        return []

    def taken(self, call: PlacedCall) -> list[Chunk]:
        return []


class WeakCases(CaseSource):
    """Timed cases alone, or each case once."""

    def __init__(self, *, timed_only: bool, once: bool) -> None:
        self.timed_only = timed_only
        self.once = once

    def all_of(self, overload: Overload, device_kind: DeviceKind, memory_gb: float, secret: str) -> list[Case]:
        cases = super().all_of(overload, device_kind, memory_gb, secret)
        return [case for case in cases if case.phase == Phase.BENCH or not self.timed_only]

    def rechecks(
        self, cases: list[Case], other_values: OtherValues, choose: random.Random, is_costly: Callable[[Case], bool]
    ) -> list[Case]:
        return [] if self.once else super().rechecks(cases, other_values, choose, is_costly)


class NoOtherValues(OtherValues):
    """A timed case has its own values and no others."""

    def of(self, case: Case) -> list[Case]:
        return []
