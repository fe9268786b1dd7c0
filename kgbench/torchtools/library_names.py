"""Whether the operators and functions that a problem file names exist, according to torch, vLLM and their modules.

This looks up what ``baselines/named.py`` cannot decide from text alone. No operator is called and no GPU is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from kgbench.baselines import vllm
from kgbench.baselines.named import Named
from kgbench.baselines.registry import Unavailable, load_function
from kgbench.baselines.vllm_operators import operator_of
from kgbench.core.names import did_you_mean
from kgbench.problem.model import Overload, Parameter, Problem


def looked_up_by_torch(named: Iterator[Named], overload: Overload, problem: Problem) -> Iterator[Named]:
    """The names whose look-up needs torch, with the result."""
    for each in named:
        if each.later:
            owner, _, name = each.target.partition(":")
            look = {"aten": _aten, "vllm": _vllm}.get(owner)
            yield look(each, name, overload, problem) if look else _function(each)


def _aten(named: Named, name: str, overload: Overload, problem: Problem) -> Named:
    operator, _, wanted = name.partition(".")
    schemas = {each.overload_name: each for each in torch._C._jit_get_schemas_for_operator(f"aten::{operator}")}
    version = f"PyTorch {torch.__version__}"
    if not schemas:
        return replace(named, wrong=f"{version} has no operator aten::{operator}")
    if wanted not in schemas:
        near = did_you_mean(wanted or "default", [each or "default" for each in schemas])
        return replace(named, wrong=f"{version} has no such overload of aten::{operator}; {near}")
    arguments = schemas[wanted].arguments
    is_own = problem.id == f"aten/{operator}"
    why = schema_difference(arguments, overload.signature.parameters, same_names=is_own)
    return replace(named, wrong=f"entry does not fit {version}'s {schemas[wanted]}: {why}") if why else named


def schema_difference(arguments: Sequence[Any], parameters: Sequence[Parameter], *, same_names: bool) -> str:
    """Why a call of the entry is not a call of the operator; empty if it is one. ``arguments``: of a torch schema.

    Positional parameters are matched by position, keyword-only ones by name. ``same_names``: the problem is the
    operator's own.
    """
    by_place = [each for each in arguments if not each.kwarg_only]
    by_name = {each.name: each for each in arguments if each.kwarg_only}
    given = [each for each in parameters if not each.keyword_only]
    if len(given) > len(by_place):
        return f"it takes {len(by_place)} arguments by position, and entry has {len(given)}"
    unknown = [each.name for each in parameters if each.keyword_only and each.name not in by_name]
    if unknown:
        return f"it has no keyword-only '{unknown[0]}'"
    keywords = {each.name for each in parameters if each.keyword_only}
    rest = [*by_place[len(given) :], *(each for name, each in by_name.items() if name not in keywords)]
    missing = [each.name for each in rest if not each.has_default_value()]
    if missing:
        return f"it also needs '{missing[0]}'"
    if same_names:
        for place, (have, want) in enumerate(zip(given, by_place, strict=False), 1):
            if have.name != want.name:
                return f"parameter {place} is '{want.name}', and entry names it '{have.name}'"
    return ""


def _vllm(named: Named, name: str, overload: Overload, problem: Problem) -> Named:
    try:
        operator = operator_of(name)
        schemas, version = vllm.registered_schemas(operator)
    except Unavailable as error:
        return replace(named, unseen=str(error))
    if not schemas:
        return replace(named, unseen=f"{version} registers no such operator here")
    found, reason = vllm.choose(name, operator, schemas, version)
    return named if found is not None else replace(named, unseen=f"it does not run: {reason}")


def _function(named: Named) -> Named:
    """Looked up by importing its module, whose text alone does not show its names."""
    try:
        load_function(named.target)
    except ValueError as error:
        return replace(named, wrong=str(error))
    except Exception as error:  # whatever importing a module raises on this machine
        return replace(named, unseen=f"importing its module raises {type(error).__name__}: {error}")
    return named
