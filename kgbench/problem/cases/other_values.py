"""Other value sets in which a timed case is judged."""

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
"""Names of the arguments that choose the dimensions along which an ATen operator works."""


class OtherValues:
    """The value sets of an overload's check cases, by the dtypes and other arguments of those cases."""

    def __init__(self, overload: Overload) -> None:
        self.overload = overload

    def of(self, case: Case) -> list[Case]:
        """Copies of the case, one per other value set of a check case with the same dtypes and arguments.

        Shapes, ``dim`` and ``keepdim`` may differ, and outside ATen every integer. All other arguments must be equal,
        because an author may have chosen a value set for them. Empty when the kind is not compute.
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
    """The dtypes of a call's tensors and its other arguments, without values of tensors and sizes."""
    whole = int if not overload.baseline.get("cuda", "").startswith("aten:") else ()
    plain: list[Any] = []
    for argument in bind(overload, case).arguments:
        value = argument.value
        if argument.specs:
            plain += [spec.dtype for spec in argument.specs]
        elif argument.name not in _ALONG and (isinstance(value, bool) or not isinstance(value, whole)):
            plain.append((argument.name, repr(value)))
    return plain
