"""In which other values a timed case is judged."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from kgbench.core.kinds import Kind, Phase
from kgbench.problem.cases.bind import bind
from kgbench.problem.cases.concrete import Case
from kgbench.problem.cases.expand import phase_cases
from kgbench.problem.model import Overload

_ALONG: Final = ("dim", "keepdim")
"""Arguments that say along what an operator of ATen works."""


class OtherValues:
    """The value sets in which an overload's check cases are drawn, by all that they ask for but values and sizes."""

    def __init__(self, overload: Overload) -> None:
        self.overload = overload

    def of(self, case: Case) -> list[Case]:
        """The case in each of the value sets in which a check case is drawn that has its dtypes and its other
        arguments.

        Sizes may differ, along which dimension, and of sources other than ATen, where sizes are arguments, all whole
        numbers. Whoever was asked with another flag, scale or order may have been asked in those values for good
        reason.
        """
        if self.overload.kind != Kind.COMPUTE:
            return []
        wanted = _asked(self.overload, case)
        found = dict.fromkeys(values for values, asked in self._checked if asked == wanted and values != case.values)
        return [replace(case, values=values) for values in found]

    @cached_property
    def _checked(self) -> list[tuple[str, list[Any]]]:
        overload = self.overload
        cases = phase_cases(overload, Phase.CHECK, overload.check, overload.dtypes)
        return [(each.values, _asked(overload, each)) for each in cases if not (each.exact or each.unjudged)]


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
