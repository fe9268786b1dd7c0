"""Which kernels of runs go into a package, and why the others do not. Torch-free."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from kgbench.backend.judged import judged_calls
from kgbench.backend.runtime.guard import judged_table
from kgbench.baselines.vllm_operators import operator_of
from kgbench.core import user_modules
from kgbench.core.errors import ExpressionError, UsageError, shown_path
from kgbench.core.kinds import Kind
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.problem.entry_names import entry_names
from kgbench.problem.model import SOURCES, Access, Overload, Problem, TensorArgument
from kgbench.problem.registry import Registry, load_problem, problem_folders
from kgbench.problem.suites import aten_overload, read_suite, with_suite
from kgbench.scores.samples import is_fast, newest
from kgbench.scores.speedups import Estimate, speedup
from kgbench.store.encoding import sha256
from kgbench.store.reader import StoredRun
from kgbench.store.repeat import candidate_file

_PACKAGES: Final = frozenset({"torch", "triton", *sys.stdlib_module_names})
"""Packages that a kernel may import: the written package needs nothing else."""

_RETURN_ARGUMENTS: Final = frozenset({"contiguous", "to"})
"""Problems of kind compute whose result is their argument where there is nothing to do."""


@dataclass(frozen=True)
class Judgement:
    """A verdict, with the problem as it was judged by."""

    run: StoredRun
    result: Result
    problem: Problem
    text: str
    of_suite: bool = False
    """The calls were a suite's, such as those of a model, in place of the problem's own."""


@dataclass(frozen=True)
class Chosen:
    """One overload's kernel."""

    operator: str
    """``aten::add.Tensor``, ``_C::rms_norm``, ``cublasSgemm_v2``."""
    overload: Overload
    judgement: Judgement
    """The verdict that it was chosen for."""
    speed: Estimate | None
    """Speedup over this overload's own timed calls; None where nothing was timed meaningfully."""
    table: Mapping[str, Any]
    """The calls that it was judged in; ``runtime/guard.py``."""
    calls: int
    """Number of judged calls."""


@dataclass(frozen=True)
class LeftOut:
    what: str
    """A problem, or one of its overloads."""
    why: str


def choose(runs: Sequence[StoredRun], *, all_correct: bool) -> tuple[list[Chosen], list[LeftOut]]:
    """The fastest correct kernel of each overload. Raises UsageError where runs do not go together.

    Judged calls of all runs that judged the same text are added up.
    """
    _check_devices(runs)
    left: list[LeftOut] = []
    groups: dict[tuple[str, str], list[Judgement]] = {}
    for each in _judgements(runs, left):
        groups.setdefault((each.result.problem, each.result.candidate_sha256), []).append(each)
    best: dict[str, Chosen] = {}
    for group in groups.values():
        for chosen in _of_text(group, left, all_correct=all_correct):
            there = best.get(chosen.operator)
            if there is None or _order(chosen) > _order(there):
                best[chosen.operator] = chosen
    names = {f"{each.judgement.problem.id} {each.overload.name}".strip() for each in best.values()}
    return sorted(best.values(), key=lambda each: each.operator), [each for each in left if each.what not in names]


def _order(chosen: Chosen) -> tuple[float, int]:
    return (chosen.speed.low if chosen.speed else 0.0), chosen.calls


def _check_devices(runs: Sequence[StoredRun]) -> None:
    devices = {(facts.get("kind"), facts.get("name")) for run in runs if (facts := run.info.get("device") or {})}
    if len(devices) > 1:
        words = " and ".join(sorted(str(name) for _, name in devices))
        raise UsageError("KGB195", f"the runs were made on {words}; a package holds kernels of one device: name others")


def _judgements(runs: Sequence[StoredRun], left: list[LeftOut]) -> Iterator[Judgement]:
    """Verdicts on texts that are still there, by problems that are still the same."""
    for run in runs:
        folders = (run.info.get("asked") or {}).get("problem_dirs", ())
        user_modules.offer(folders)
        suite, registry = read_suite(run.path), Registry(problem_folders(map(Path, folders)))
        for result in newest(run.results):
            found = _problem_and_text(run, result, registry)
            if isinstance(found, str):
                left.append(LeftOut(result.problem, found))
                continue
            problem, text = found
            with_calls = suite is not None and result.problem in suite.judged()
            problem = with_suite(problem, suite) if suite and with_calls else problem
            yield Judgement(run, result, problem, text, with_calls)


def _problem_and_text(run: StoredRun, result: Result, registry: Registry) -> tuple[Problem, str] | str:
    path = candidate_file(run, result)
    if result.problem not in registry.paths:
        return "its problem is gone"
    problem = load_problem(registry.paths[result.problem])
    if result.problem_sha256 and problem.sha256 != result.problem_sha256:
        return "its problem's file has changed since the run"
    if path is None:
        return "the run has no text of it" if result.outcome.facts.has_code else f"{result.outcome}"
    text = path.read_text(encoding="utf-8")
    if sha256(text) != result.candidate_sha256:
        return f"{shown_path(path)} is not the text that was judged"
    return problem, text


def _of_text(group: Sequence[Judgement], left: list[LeftOut], *, all_correct: bool) -> Iterator[Chosen]:
    """The overloads of one text that may be used."""
    first = group[0]
    if why := next((why for each in group if (why := _unfit(each))), ""):
        left.append(LeftOut(first.problem.id, why))
        return
    # A suite may have calls of some overloads alone.
    overloads = {each.name: each for one in reversed(group) for each in one.problem.judged}
    for overload in overloads.values():
        what = f"{first.problem.id} {overload.name}".strip()
        operator, why = _operator(first.problem, overload)
        of_overload = [_narrowed(each, overload.name) for each in group if overload.name in each.result.overloads]
        timed = [each for each in of_overload if speedup(each.result) and not each.result.interpreted]
        # Whose calls are known is told by these whether a kernel is faster.
        fast = [each for each in [one for one in timed if one.of_suite] or timed if is_fast(each.result, 1.0)]
        outcomes = {each.result.overloads[overload.name] for each in of_overload}
        if not why and outcomes != {str(Outcome.PASSED)}:
            why = "not correct" if outcomes else "not judged"
        if not why and not fast and not all_correct:
            why = "not faster for certain" if timed else "not timed beside its library"
        if not why:
            chosen = _chosen(operator, overload, (fast or of_overload)[0], of_overload)
            why = chosen if isinstance(chosen, str) else ""
            if isinstance(chosen, Chosen):
                yield chosen
        if why:
            left.append(LeftOut(what, why))


def _narrowed(judgement: Judgement, overload: str) -> Judgement:
    cases = tuple(case for case in judgement.result.cases if case.overload == overload)
    return replace(judgement, result=replace(judgement.result, cases=cases))


def _chosen(operator: str, overload: Overload, judgement: Judgement, group: Sequence[Judgement]) -> Chosen | str:
    kind = str((judgement.run.info.get("device") or {}).get("kind", judgement.result.device))
    calls = []
    for each in group:
        own = next(one for one in each.problem.overloads if one.name == overload.name)
        try:
            calls += list(judged_calls(own, each.result.cases, kind))
        except ExpressionError as error:
            return f"its calls cannot be made concrete again: {error}"
    if not calls:
        return "none of its calls was judged by values"
    estimate = None if judgement.result.interpreted else speedup(judgement.result)
    table = judged_table(calls, alike=judgement.problem.source != "aten")
    return Chosen(operator, overload, judgement, estimate, table, len(calls))


def _unfit(judgement: Judgement) -> str:
    """Why nothing of this text goes into a package; empty where something may."""
    result, problem = judgement.result, judgement.problem
    if result.outcome is not Outcome.PASSED:
        return f"not correct: {result.outcome}"
    if problem.kind == Kind.RANDOM:
        return "it draws other numbers from a seed than PyTorch does"
    if problem.kind != Kind.COMPUTE:
        return f"kind {problem.kind}: nothing to gain"
    if problem.source not in SOURCES:
        return f"source {problem.source}: no library's call to stand in for"
    others = sorted(_imported(judgement.text) - _PACKAGES)
    return f"it imports {', '.join(others)}; a package needs torch and triton alone" if others else ""


def _imported(text: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(text.removeprefix("\ufeff"))):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def _operator(problem: Problem, overload: Overload) -> tuple[str, str]:
    """The library's name of an overload, or why nothing can stand in for it."""
    if problem.source == "aten":
        name = aten_overload(problem, overload)
        operator = f"aten::{problem.name}" + ("" if name == "default" else f".{name}")
        if problem.name in _RETURN_ARGUMENTS:
            return "", "it may return its argument; only PyTorch's own function tells autograd so"
        return operator, ""
    if problem.source == "cublas":
        return problem.name, ""
    _, _, target = overload.baseline.get("cuda", "").partition(":")
    try:
        found = operator_of(target).registrations[0]
    except ValueError as error:
        return "", str(error)
    if found.adapter is not None:
        return "", "vLLM's operator takes other arguments than the entry"
    return found.name, ""


def entries_of(chosen: Chosen) -> list[str]:
    """Names under which the text may define the entry."""
    return entry_names(chosen.judgement.problem, chosen.judgement.text)[chosen.overload.name]


def parameters_of(overload: Overload) -> list[dict[str, Any]]:
    """Parameters in the form that ``runtime/table.py`` reads."""
    pairs = zip(overload.signature.parameters, overload.arguments, strict=True)
    return [
        {
            "name": parameter.name, "type": parameter.type, "keyword_only": parameter.keyword_only,
            "written": isinstance(argument, TensorArgument) and argument.access != Access.READ,
        }
        for parameter, argument in pairs
    ]  # fmt: skip


def left_out_lines(left: Iterable[LeftOut]) -> Iterator[str]:
    """Lines about what was left out, by reason, with the names."""
    by_reason: dict[str, list[str]] = {}
    for each in left:
        by_reason.setdefault(each.why, []).append(each.what)
    for why, names in by_reason.items():
        yield f"{', '.join(dict.fromkeys(names))}: {why}"
