"""The calls that a stored verdict found right, made concrete again as a guard compares them. Torch-free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from kgbench.backend.runtime.guard import ALIGNMENT_BYTES, Tensor
from kgbench.core.kinds import Phase
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult
from kgbench.problem.cases import BoundArgument, BoundCase, Case, TensorSpec, bind, expand_for_all_devices
from kgbench.problem.cases.expand import phase_cases
from kgbench.problem.expressions import ITEMSIZE
from kgbench.problem.model import CaseTemplate, Overload, PassedAs, plain_type
from kgbench.store.encoding import json_text

Call = tuple[Any, ...]
"""One value per parameter of the entry, as ``runtime/guard.py`` has them."""
_NO_SEED: Final = ""
"""Cases that stand in the problem's file are the same with any seed."""


def judged_calls(overload: Overload, results: Iterable[CaseResult], device_kind: str) -> Iterator[Call]:
    """The calls of an overload that passed and of which values were judged. Raises ExpressionError."""
    right = [each for each in results if each.overload == overload.name and each.outcome is Outcome.PASSED]
    drawn = [each for each in right if each.phase == Phase.FUZZ]
    wanted = {each.id for each in right if each.phase != Phase.FUZZ}
    written = [case for case in expand_for_all_devices(overload, _NO_SEED) if case.id in wanted]
    for case in [*written, *(_drawn(overload, each) for each in drawn)]:
        bound = bind(overload, case)
        if not case.unjudged and not any(spec.lazy for spec in bound.specs):
            yield _call(bound, device_kind)


def _drawn(overload: Overload, stored: CaseResult) -> Case:
    """A case that was drawn from a secret seed, from what the verdict says about it."""
    fuzz = overload.fuzz
    assert fuzz is not None
    given = {name: _as_drawn(rule, stored.variables[name]) for name, rule in fuzz.draw.items()}
    template = CaseTemplate({**given, "dtype": stored.dtype}, 0, fuzz.call)
    (case,) = phase_cases(overload, Phase.FUZZ, [template], overload.dtypes)
    return replace(case, id=stored.id)


def _as_drawn(rule: Any, stored: Any) -> Any:
    """A value as the problem file has it, from its JSON form: a list, a number that is not finite."""
    choices = rule["choice"] if isinstance(rule, Mapping) and "choice" in rule else [rule]
    text = json_text(stored)
    return next((each for each in choices if not isinstance(each, Mapping) and json_text(each) == text), stored)


def _call(bound: BoundCase, device_kind: str) -> Call:
    return tuple(_value(argument, device_kind) for argument in bound.arguments)


def _value(argument: BoundArgument, device_kind: str) -> Any:
    value = argument.value
    if isinstance(value, TensorSpec):
        return _tensor(value, device_kind)
    if isinstance(value, tuple):
        return tuple(_tensor(each, device_kind) if isinstance(each, TensorSpec) else each for each in value)
    is_list = plain_type(argument.type).startswith("list[") and value is not None
    return (value,) if is_list else value


def _tensor(spec: TensorSpec, device_kind: str) -> Tensor:
    """What the candidate gets: a view, the storage it lies in, or addresses."""
    host = spec.host and device_kind != "cpu"
    aligned = spec.offset * ITEMSIZE[spec.dtype] % ALIGNMENT_BYTES == 0
    if spec.passed == PassedAs.POINTERS:
        return Tensor("int64", spec.shape[:1], (1,), True, host)
    if spec.passed == PassedAs.STORAGE:
        return Tensor(spec.dtype, (spec.extent - spec.offset,), (1,), aligned, host)
    return Tensor(spec.dtype, spec.shape, spec.strides, aligned or spec.elements == 0, host)
