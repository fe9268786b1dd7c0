"""``python -m kgbench.torchtools.reference_check``: looks up operators and runs references on a small case, on the CPU.

Standard input is a JSON list of problem files; standard output gets a JSON line ``{"path", "done": false}`` when a file
is started and ``{"path", "done": true, "complaint", "unseen", "left_out"}`` when it is done. ``kgbench validate``
starts it as a process, so that a reference's crash ends only this process.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any, TextIO

import torch

from kgbench.baselines.expected import Answer
from kgbench.baselines.named import Named, looked_up, what_is_wrong
from kgbench.core.errors import KgbenchError, ProblemFileError
from kgbench.core.kinds import DeviceKind, Phase
from kgbench.harness.machine.processes import own_lines
from kgbench.harness.verdict.call_requests import written_names
from kgbench.harness.verdict.canonical import in_one_form
from kgbench.harness.verdict.inputs import CallInputs, make_inputs
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.verdict.reference import values_only
from kgbench.problem.cases import BoundCase, bind, case_bytes, expand_cases
from kgbench.problem.format.file import key_line
from kgbench.problem.model import Access, Overload, TensorArgument
from kgbench.problem.registry import load_problem
from kgbench.torchtools.left_out import chance_left_out
from kgbench.torchtools.library_names import looked_up_by_torch


def main() -> None:
    # A reference's output must not be mistaken for the answers.
    lines = own_lines()
    for path in json.loads(sys.stdin.read()):
        _say(lines, {"path": path, "done": False})
        complaint, unseen, left_out = _check(Path(path))
        _say(lines, {"path": path, "done": True, "complaint": complaint, "unseen": unseen, "left_out": left_out})


def _say(lines: TextIO, message: dict[str, Any]) -> None:
    print(json.dumps(message), file=lines, flush=True)


def _check(path: Path) -> tuple[str, list[tuple[str, str]], float | None]:
    """(complaint, names that could not be looked up, the probability of ``left_out``). The complaint is about names in
    the file first, then about the first reference that fails.
    """
    found: list[tuple[str, Named]] = []
    try:
        problem = load_problem(path)
        for overload in problem.overloads:
            named = looked_up(overload, (path.resolve().parents[1],))
            found += [(overload.name, each) for each in looked_up_by_torch(named, overload, problem)]
        if error := what_is_wrong(path, found):
            raise error
        for overload in problem.judged:
            _run(path, overload)
        left_out = chance_left_out(problem)
    except KgbenchError as error:
        return error.printed, [], None
    return "", list(dict.fromkeys((each.target, each.unseen) for _, each in found if each.unseen)), left_out


def _run(path: Path, overload: Overload) -> None:
    """Run the reference: its results must have the number and the shapes that the entry and its arguments give."""
    bound = smallest(overload)
    try:
        judge = OverloadJudge(overload, torch.device("cpu"))
        inputs = make_inputs(overload, bound, torch.Generator("cpu").manual_seed(0))
        if judge.contract.plain:
            judge.reference.value(inputs.arguments())
            return
        call = judge.place_inputs(inputs)
        answers = judge.expected(inputs)
        wanted = {name: tuple(inputs.chunks[name].spec.shape) for name in written_names(bound)}
        wanted |= {name: each.shape for name, each in zip(call.outputs, call.specs, strict=True)}
        missing = sorted(set(wanted) - set(answers))
        if missing:
            raise ValueError(f"it gives {', '.join(answers)} and not {missing[0]}")
    except Exception as error:  # whatever a reference raises is a complaint about its file
        what = f"fails in case {bound.case.id}: {type(error).__name__}: {error}"
        raise _wrong("KGB270", path, overload, what) from error
    _check_canonical(path, overload, judge, inputs, answers)
    _check_edges(path, overload, judge)
    for name, shape in wanted.items():
        got = tuple(answers[name].shape)
        if got != shape:
            raise _wrong("KGB271", path, overload, f"{name} has shape {got} in case {bound.case.id}, not {shape}")


def _check_canonical(
    path: Path, overload: Overload, judge: OverloadJudge, inputs: CallInputs, answers: dict[str, Answer]
) -> None:
    """Check that the correct answer has a canonical form."""
    if judge.canonical is None:
        return
    try:
        expected = values_only(answers)
        in_one_form(
            judge.canonical, {name: each.value for name, each in expected.items()}, expected, inputs.arguments()
        )
    except Exception as error:  # as above
        what = f"fails in case {inputs.bound.case.id}: {type(error).__name__}: {error}"
        raise ProblemFileError("KGB273", path, key_line(path, overload.name, "canonical"), "canonical", what) from error


def _check_edges(path: Path, overload: Overload, judge: OverloadJudge) -> None:
    """Check that the reference gives what the table of edges promises, and that no other value is accepted."""
    tensors = {each.name for each in overload.arguments if isinstance(each, TensorArgument)}
    written = tuple(each.name for each in overload.arguments if getattr(each, "access", Access.READ) != Access.READ)
    for edge in overload.edges:
        given = {each.name: each.default for each in overload.signature.parameters}
        given |= {name: torch.zeros(1, dtype=torch.float64) for name in written}
        given |= {
            name: torch.tensor([value], dtype=torch.float64) if name in tensors else value
            for name, value in edge.given.items()
        }
        answer = next(iter(values_only(judge.reference.answers(given, written)).values()))
        right = [answer.value.item()] + ([] if answer.also is None else [answer.also.value.item()])
        promised = all(any(_same(each, one) for one in right) for each in edge.gives)
        if not promised or not all(any(_same(each, one) for one in edge.gives) for each in right):
            what = f"the reference has {' or '.join(f'{one:.9g}' for one in right)} where {edge.words}"
            raise ProblemFileError("KGB274", path, edge.line, "edges", what)


def _same(one: float, other: float) -> bool:
    return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-6)


def _wrong(number: str, path: Path, overload: Overload, what: str) -> ProblemFileError:
    return ProblemFileError(number, path, key_line(path, overload.name, "reference"), "reference", what)


def smallest(overload: Overload) -> BoundCase:
    """The check case with the fewest bytes among those without an empty tensor, or of all."""
    cases = [case for case in expand_cases(overload, DeviceKind.CPU, None, "validate") if case.phase == Phase.CHECK]
    bound = [bind(overload, case) for case in cases]
    return min(bound, key=lambda each: (_has_empty(each), case_bytes(each)))


def _has_empty(bound: BoundCase) -> bool:
    return any(0 in spec.shape for spec in bound.specs)


if __name__ == "__main__":
    main()
