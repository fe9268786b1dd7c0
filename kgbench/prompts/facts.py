"""Facts about ATen operators that only torch has: schema and documentation, asked in another process.

Code that makes prompts does not import torch; where it is not installed, prompts go without these facts.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kgbench.core.paths import problems_dir
from kgbench.core.torch_process import NoAnswer, ask
from kgbench.problem.model import Problem

_MODULE: Final = "kgbench.torchtools.operator_facts"
_TIMEOUT_S: Final = 120.0
"""Seconds in which torch must answer."""


@dataclass(frozen=True)
class OperatorFacts:
    schemas: tuple[str, ...]
    """``aten::softmax.int(Tensor self, int dim, …) -> Tensor`` of each overload asked for."""
    documented_as: str
    """``torch.softmax``; empty where torch documents it nowhere."""
    documentation: str


@dataclass(frozen=True)
class TorchFacts:
    """Facts about the requested ATen operators, by problem id; and why there are none."""

    operators: Mapping[str, OperatorFacts]
    version: str = ""
    """Version of torch."""
    missing: str = ""
    """Why nothing is known, in words for whoever asked; empty where all is."""


def torch_facts(problems: Iterable[Problem]) -> TorchFacts:
    """The facts of these problems and of those whose kernels may stand in a prompt as examples.

    One process answers for all of them, once. Never raises: a missing torch is told in ``missing``.
    """
    asked = {problem.id: _overloads(problem) for problem in problems if problem.source == "aten"}
    if not asked:
        return TorchFacts({})
    from kgbench.problem.registry import load_problem
    from kgbench.prompts.shots import SHOWN

    for name in SHOWN:
        if name.startswith("aten/") and name not in asked:
            asked[name] = _overloads(load_problem(problems_dir() / f"{name}.yaml"))
    return _asked(tuple(sorted(asked.items())))


def _overloads(problem: Problem) -> tuple[str, ...]:
    """As ATen names them, which a problem of a single overload says in its baseline alone."""
    named = []
    for overload in problem.overloads:
        targets = [each for each in overload.baseline.values() if each.startswith("aten:")]
        named += [targets[0].partition(".")[2] if targets else overload.name] if overload.required else []
    return tuple(name or "default" for name in named)


@functools.lru_cache(maxsize=4)
def _asked(operators: tuple[tuple[str, tuple[str, ...]], ...]) -> TorchFacts:
    if importlib.util.find_spec("torch") is None:
        return TorchFacts({}, missing="torch is not installed: no schemas and documentation of ATen in the prompts")
    request = {problem: list(overloads) for problem, overloads in operators}
    try:
        answers = ask(_MODULE, request, _TIMEOUT_S)
    except NoAnswer as error:
        return TorchFacts({}, missing=f"torch says nothing about ATen, so the prompts go without: {error}")
    found = {
        answer["problem"]: OperatorFacts(tuple(answer["schemas"]), answer["documented_as"], answer["documentation"])
        for answer in answers
        if "problem" in answer
    }
    version = next((answer["torch"] for answer in answers if "torch" in answer), "")
    return TorchFacts(found, version)
