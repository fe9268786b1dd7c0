"""Expands templates to cases: every dtype, every size, and the fuzz cases of the secret seed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from kgbench.core.kinds import DeviceKind, Phase
from kgbench.problem.calls import Call
from kgbench.problem.cases.calls import call_variables, first_dtype, with_values
from kgbench.problem.cases.concrete import Case
from kgbench.problem.model import CALL_OPTIONS, CASE_OPTIONS, LARGE_OPTIONS, CaseTemplate, Fuzz, Overload

_PRESET_SHARE: Final = 0.95
"""Least share of a preset's memory that a device must have. A device sold with 24 GB reports a little less."""


def choose_preset(overload: Overload, device_kind: DeviceKind, memory_gb: float | None) -> str:
    """Name of the bench preset: ``cpu`` on a CPU, else the largest ``gpuN`` whose N GB the device has.

    memory_gb: the device's memory in 10^9 bytes. When it is None or no preset fits, the smallest ``gpuN`` is chosen.
    The name is empty when there is no preset for the kind of device.
    """
    if device_kind == DeviceKind.CPU:
        return "cpu" if "cpu" in overload.bench else ""
    sizes = sorted(int(preset.removeprefix("gpu")) for preset in overload.bench if preset != "cpu")
    fitting = [size for size in sizes if memory_gb is not None and size * _PRESET_SHARE <= memory_gb]
    return f"gpu{(fitting or sizes[:1])[-1]}" if sizes else ""


def expand_cases(
    overload: Overload, device_kind: DeviceKind, memory_gb: float | None, seed: str, optional_dtypes: bool = False
) -> list[Case]:
    """All cases of an overload, in this order: check, opinfo, large (CUDA only), fuzz, bench of the preset that fits.

    A template that names no dtype becomes one case per required dtype, and per optional one if ``optional_dtypes``.
    Fuzz cases are drawn from ``seed``; the same seed gives the same cases. Raises ExpressionError when a derived
    variable has no value.
    """
    preset = choose_preset(overload, device_kind, memory_gb)
    return _expanded(overload, [preset], seed, optional_dtypes, large=device_kind == DeviceKind.CUDA)


def expand_for_all_devices(overload: Overload, seed: str) -> list[Case]:
    """The cases of all devices in every dtype. A case that is the same on all devices comes once."""
    return _expanded(overload, list(overload.bench), seed, optional_dtypes=True, large=True)


def bench_cases(overload: Overload, preset: str) -> list[Case]:
    """The timed cases of a preset, which do not depend on the seed; empty when it has none."""
    return phase_cases(overload, Phase.BENCH, overload.bench.get(preset, ()), overload.dtypes, preset)


def judged_dtypes(overload: Overload) -> frozenset[str]:
    """Every dtype that any case of a run has."""
    templates = itertools.chain(overload.check, overload.opinfo, overload.large, *overload.bench.values())
    found = {dtype for each in templates for dtype in _template_dtypes(overload, each, overload.dtypes)}
    if overload.fuzz is not None:
        found.update(overload.fuzz.dtypes, overload.fuzz.draw.get("dtype", {}).get("choice", ()))
    return frozenset(found)


def _expanded(
    overload: Overload, presets: Iterable[str], seed: str, optional_dtypes: bool, *, large: bool
) -> list[Case]:
    dtypes = overload.dtypes + (overload.optional_dtypes if optional_dtypes else ())
    cases = phase_cases(overload, Phase.CHECK, overload.check, dtypes)
    cases += phase_cases(overload, Phase.OPINFO, overload.opinfo, dtypes)
    if large:
        cases += phase_cases(overload, Phase.LARGE, overload.large, dtypes)
    if overload.fuzz is not None:
        rng = random.Random(f"{seed}/{overload.name}")
        drawn = [_fuzz_template(overload, overload.fuzz, rng) for _ in range(overload.fuzz.count)]
        cases += phase_cases(overload, Phase.FUZZ, drawn, dtypes)
    for preset in presets:
        cases += phase_cases(overload, Phase.BENCH, overload.bench.get(preset, ()), dtypes, preset)
    return cases


def phase_cases(
    overload: Overload, phase: Phase, templates: Iterable[CaseTemplate], dtypes: tuple[str, ...], preset: str = ""
) -> list[Case]:
    cases = []
    for number, template in enumerate(templates, 1):
        for dtype in _template_dtypes(overload, template, dtypes):
            name = "-".join(part for part in (phase, preset, str(number), dtype) if part)
            cases.append(_case(overload, template, name, phase, dtype))
    return cases


def _template_dtypes(overload: Overload, template: CaseTemplate, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """The template's own dtype if it has one, else ``dtypes``."""
    own = template.variables.get("dtype", overload.defaults.get("dtype"))
    if template.call is not None and own is None and "dtype" not in template.call.names:
        anonymous = Case("", overload.name, Phase.CHECK, "float32", {})
        own = first_dtype(overload, _with_values(overload, template, anonymous))
    return dtypes if own is None else (own,)


def _case(overload: Overload, template: CaseTemplate, name: str, phase: Phase, dtype: str) -> Case:
    given = {**overload.defaults, **template.variables}
    known = CASE_OPTIONS + (CALL_OPTIONS if template.call is not None else ())
    known += LARGE_OPTIONS if phase is Phase.LARGE else ()
    sizes = {key: value for key, value in given.items() if key != "dtype" and key not in known}
    case = Case(name, overload.name, phase, dtype, sizes, **{key: given[key] for key in known if key in given})
    if template.call is not None:
        call = _with_values(overload, template, case)
        case = replace(case, call=call, sizes={**sizes, **call_variables(overload, call)})
    if not overload.variables:
        return case
    variables = dict(case.variables)
    derived = {}
    for key, expr in overload.variables.items():
        derived[key] = variables[key] = expr.evaluate(variables)
    return replace(case, sizes={**case.sizes, **derived})


def _with_values(overload: Overload, template: CaseTemplate, case: Case) -> Call:
    """The template's call, with each ``$name`` replaced by the case's value."""
    assert template.call is not None
    return with_values(overload, template.call, {**overload.defaults, **template.variables, **case.variables})


def _fuzz_template(overload: Overload, fuzz: Fuzz, rng: random.Random) -> CaseTemplate:
    variables = {name: _drawn(rule, rng) for name, rule in fuzz.draw.items()}
    if "dtype" not in variables and (fuzz.call is None or "dtype" in fuzz.call.names):
        variables["dtype"] = rng.choice(fuzz.dtypes or overload.dtypes)
    return CaseTemplate(variables, 0, fuzz.call)


def _drawn(rule: Any, rng: random.Random) -> Any:
    if not isinstance(rule, Mapping):
        return rule
    return rng.choice(rule["choice"]) if "choice" in rule else rng.randint(*rule["range"])
