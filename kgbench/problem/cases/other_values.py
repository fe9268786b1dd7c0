"""In which other values a timed case is judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from kgbench.problem.cases.bind import bind
from kgbench.problem.cases.concrete import Case
from kgbench.problem.cases.expand import phase_cases
from kgbench.problem.model import Overload

_ALONG: Final = ("dim", "keepdim")
"""Arguments that say along what an operator of ATen works."""


def in_other_values(overload: Overload, case: Case) -> list[Case]:
    """The case in each of the value sets in which a check case is drawn that has its dtypes and its other arguments.

    Sizes may differ, along which dimension, and of sources other than ATen, where sizes are arguments, all whole
    numbers. Whoever was asked with another flag, scale or order may have been asked in those values for good reason.
    """
    if overload.kind != "compute":
        return []
    found: dict[str, Case] = {}
    wanted = _asked(overload, case)
    for other in phase_cases(overload, "check", overload.check, overload.dtypes):
        values, variables = other.variables["values"], other.variables
        known = values in (case.variables["values"], *found) or variables.get("exact") or variables.get("unjudged")
        if not known and _asked(overload, other) == wanted:
            found[values] = replace(case, variables={**case.variables, "values": values})
    return list(found.values())


def _asked(overload: Overload, case: Case) -> list[Any]:
    """All about a call but its values and sizes."""
    whole = int if not overload.baseline.get("cuda", "").startswith("aten:") else ()
    plain: list[Any] = []
    for argument in bind(overload, case).arguments:
        value = argument.value
        if argument.specs:
            plain += [spec.dtype for spec in argument.specs]
        elif argument.name not in _ALONG and (isinstance(value, bool) or not isinstance(value, whole)):
            plain.append((argument.name, repr(value)))
    return plain
