"""The policy's rules: what a candidate may call of PyTorch and other libraries, by its problem's kind.

A candidate must do the problem's work itself. ``allowed`` judges one operator by its name. ``tables.py`` has the data.
``hints.py`` reads a candidate's source. docs/policy.md has the rules as prose. This module imports no torch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from kgbench.core.kinds import Kind
from kgbench.policy.tables import ALIASES, GROUPS, KERNELS, KIND_GROUPS, KIND_WORDS, MODULES, NAMESPACES, WORK
from kgbench.problem.model import Problem

_OPERATOR: Final = re.compile(r"^(?:torch\.ops\.)?(\w+)(?:::|\.)(\w+)(?:\.(\w+))?$")


@dataclass(frozen=True)
class Verdict:
    """Whether an operator may be called, and the reason."""

    allowed: bool
    why: str


def allowed(problem: Problem, operator: str) -> Verdict:
    """Whether a candidate of this problem may call an operator.

    operator: its name, as ``aten::add.Tensor`` or ``aten.add.Tensor``. Raises ValueError when it has another form.
    """
    match = _OPERATOR.match(operator)
    if match is None:
        raise ValueError(f"'{operator}' is no operator's name; write aten::add.Tensor")
    namespace, name = match[1], match[2]
    if namespace in NAMESPACES:
        return Verdict(False, f"it is one of {NAMESPACES[namespace]} operators")
    if namespace != "aten":
        return Verdict(True, "it is no library's")
    return _aten(problem, name)


def whose_kernel(name: str) -> str:
    """The library that a device kernel belongs to, by the kernel's name; empty when no pattern matches."""
    return next((whose for pattern, whose in KERNELS if re.search(pattern, name)), "")


def _aten(problem: Problem, name: str) -> Verdict:
    own = {family(each) for each in own_operators(problem)}
    if family(name) in own:
        return Verdict(False, f"it is the operator of {problem.id} itself")
    group = group_of(name)
    if group is None:
        return Verdict(False, "it computes, which the kernel has to do itself")
    if group not in KIND_GROUPS[problem.kind]:
        return Verdict(False, f"it belongs to {group}, and allowed are {KIND_WORDS[problem.kind]}")
    if group in WORK and problem.kind in (Kind.COMPUTE, Kind.RANDOM) and any(_does(group, each) for each in own):
        return Verdict(False, f"it belongs to {group}, and so does {problem.id} itself")
    return Verdict(True, f"it belongs to {group}")


def own_operators(problem: Problem) -> set[str]:
    """ATen's names for the problem's operator."""
    targets = [target for overload in problem.overloads for target in overload.baseline.values()]
    named = [target.partition(":")[2].partition(".")[0] for target in targets if target.startswith("aten:")]
    return {*named, *([problem.name] if problem.source == "aten" else [])}


def family(name: str) -> str:
    """One name for an operator, its in-place form, its copying form and its aliases."""
    name = ALIASES.get(name, name)
    bare = name.strip("_").removesuffix("_copy") or name
    return ALIASES.get(bare, bare)


def group_of(name: str) -> str | None:
    """The group of an ATen operator in ``GROUPS``; None when it is in none and so computes."""
    return next((group for group, names in GROUPS.items() if name in names), None)


def _does(group: str, own: str) -> bool:
    return any(family(each) == own for each in GROUPS[group])


def module_rule(dotted: str) -> str:
    """Why a Python function or module may not be called; empty when it may. ``dotted``: its full name."""
    matching = [each for each in MODULES if below(dotted, each)]
    return MODULES[max(matching, key=len)] if matching else ""


def below(dotted: str, module: str) -> bool:
    """Whether a full name is that of the module or of something in it."""
    return dotted == module or dotted.startswith(f"{module}.")
