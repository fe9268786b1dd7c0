"""The rules: what a candidate may call of PyTorch and other libraries, by the kind of its problem. No torch.

A kernel for a problem must do the problem's work itself. ``allowed`` judges one operator by name, when it is seen at
run time. ``tables.py`` has the data; ``hints.py`` reads a candidate's text. docs/policy.md says the same in words.
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
    allowed: bool
    why: str


def allowed(problem: Problem, operator: str) -> Verdict:
    """Whether a candidate of this problem may call an operator: ``aten::add.Tensor``, also as ``aten.add.Tensor``.

    Raises ValueError for what is no operator's name.
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
    """The owner of a device kernel, by its name; empty for a name that no library has."""
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
    """Names under which ATen has the problem's operator."""
    targets = [target for overload in problem.overloads for target in overload.baseline.values()]
    named = [target.partition(":")[2].partition(".")[0] for target in targets if target.startswith("aten:")]
    return {*named, *([problem.name] if problem.source == "aten" else [])}


def family(name: str) -> str:
    """One name for an operator, its in-place form, its copying form and its aliases."""
    name = ALIASES.get(name, name)
    bare = name.strip("_").removesuffix("_copy") or name
    return ALIASES.get(bare, bare)


def group_of(name: str) -> str | None:
    """The group in which an operator of ATen stands; None where it computes."""
    return next((group for group, names in GROUPS.items() if name in names), None)


def _does(group: str, own: str) -> bool:
    return any(family(each) == own for each in GROUPS[group])


def module_rule(dotted: str) -> str:
    """Why nothing of a Python module may be called; empty where no rule names it."""
    matching = [each for each in MODULES if below(dotted, each)]
    return MODULES[max(matching, key=len)] if matching else ""


def below(dotted: str, module: str) -> bool:
    return dotted == module or dotted.startswith(f"{module}.")
