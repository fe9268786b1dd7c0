"""Templates to cases: every dtype, every size, and what the secret seed draws."""

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
"""A device sold with 24 GB reports a little less; it still takes the preset for 24 GB."""


def choose_preset(overload: Overload, device_kind: DeviceKind, memory_gb: float | None) -> str:
    """Name of the bench preset: ``cpu`` there, else the largest ``gpuN`` whose N GB the device has.

    ``memory_gb`` is in 10^9 bytes; without it, or when nothing fits, the smallest. Empty when the kind has no preset.
    """
    if device_kind == DeviceKind.CPU:
        return "cpu" if "cpu" in overload.bench else ""
    sizes = sorted(int(preset.removeprefix("gpu")) for preset in overload.bench if preset != "cpu")
    fitting = [size for size in sizes if memory_gb is not None and size * _PRESET_SHARE <= memory_gb]
    return f"gpu{(fitting or sizes[:1])[-1]}" if sizes else ""


def expand_cases(
    overload: Overload, device_kind: DeviceKind, memory_gb: float | None, seed: str, optional_dtypes: bool = False
) -> list[Case]:
    """All cases of an overload: check, those for a GPU alone, fuzz drawn from the secret ``seed``, then bench of the
    preset that fits.

    A template that names no dtype becomes one case per required dtype, and per optional one if ``optional_dtypes``.
    The same seed gives the same cases. Raises ExpressionError where a derived variable has no value.
    """
    preset = choose_preset(overload, device_kind, memory_gb)
    return _expanded(overload, [preset], seed, optional_dtypes, large=device_kind == DeviceKind.CUDA)


def expand_for_all_devices(overload: Overload, seed: str) -> list[Case]:
    """The cases of all devices together, in every dtype; those that no device changes come once."""
    return _expanded(overload, list(overload.bench), seed, optional_dtypes=True, large=True)


def bench_cases(overload: Overload, preset: str) -> list[Case]:
    """The timed cases of a preset, which are no secret; empty where it has none."""
    return phase_cases(overload, Phase.BENCH, overload.bench.get(preset, ()), overload.dtypes, preset)


def judged_dtypes(overload: Overload) -> frozenset[str]:
    """Every dtype that a call of a run comes in, also those that only some calls have."""
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
    """Its own where it has one, else all of the overload's."""
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
    """The template's call, with the values that the case has for its ``$name``."""
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
