"""Does any case ask for more than float32 holds on the way? References are evaluated in float32 beside float64.

    python -m benchmarks.intermediates ['aten/*' ...] [--cases 40] [--json FILE]

On the CPU, in one process. Of each overload the cases of 16- and 32-bit numbers are drawn, and the problem's reference
is called twice: as it is, with numbers of 64 bits, and with numbers of 32. ``asks`` counts cases in which an element is
finite and within float32 the first time, and infinite or NaN the second: an intermediate result left float32. A kernel
that forms the same one fails there, so the problem's text has to say that it must not. ``wide`` counts cases whose
reference computes in 64 bits whatever it is given, which says nothing. ``sums`` counts cases of sums and products in
which the sum of the terms' sizes leaves float32 where the result does not: a kernel that adds in another order fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import click
import torch

from benchmarks.script import Script, globs_argument, json_option, shown, smoke_option
from kgbench.core.kinds import DeviceKind, Kind, Phase
from kgbench.harness.verdict import reference
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.verdict.reference import values_only
from kgbench.problem.cases import expand_cases
from kgbench.problem.model import Overload
from kgbench.problem.registry import Registry, load_problem

NARROW: Final = {torch.float64: torch.float32, torch.complex128: torch.complex64}
LARGEST: Final = torch.finfo(torch.float32).max


@dataclass
class Row:
    """One overload."""

    problem: str
    overload: str
    cases: int = 0
    wide: int = 0
    failed: int = 0
    """Cases whose reference takes no numbers of 32 bits."""
    asks: list[str] = field(default_factory=list)
    """Ids of the cases that ask for more than float32 holds on the way."""
    sums: list[str] = field(default_factory=list)
    """Ids of the cases that ask for more in a sum of the terms' sizes."""


@click.command(cls=Script)
@globs_argument("*")
@click.option("--cases", "most", default=40, show_default=True, help="Cases of each overload, evenly spread, at most.")
@json_option
@smoke_option(globs=("aten/cosh",), most=4)
def main(globs: tuple[str, ...], most: int, json_path: Path | None) -> None:
    """Find cases that ask for more than float32 holds on the way."""
    torch.set_num_threads(1)
    registry = Registry()
    paths = [registry.paths[name] for name in registry.select(globs=globs)]
    rows = [row for path in shown(paths, len(paths), "problems") for row in _rows(path, most)]
    for row in rows:
        if row.asks or row.sums or row.failed:
            name = f"{row.problem} {row.overload}".rstrip()
            counts = f"{len(row.asks)} of {row.cases} ask, {len(row.sums)} in a sum of sizes, {row.failed} failed"
            click.echo(f"{name}: {counts}: {', '.join((row.asks + row.sums)[:5])}")
    silent = sum(row.wide >= row.cases for row in rows)
    asking = sum(bool(row.asks or row.sums) for row in rows)
    cases = sum(row.cases for row in rows)
    click.echo(f"{len(rows)} overloads, {cases} cases: {asking} overloads ask, {silent} say nothing")
    if json_path is not None:
        json_path.write_text(json.dumps([asdict(row) for row in rows], indent=1))


def _rows(path: Path, most: int) -> Iterator[Row]:
    problem = load_problem(path)
    for overload in problem.judged if problem.kind is Kind.COMPUTE else ():
        row = Row(problem.id, overload.name)
        for call, judge in _calls(overload, most):
            _look_at(row, call, judge)
        yield row


def _calls(overload: Overload, most: int) -> Iterator[tuple[PlacedCall, OverloadJudge]]:
    judge = OverloadJudge(overload, torch.device("cpu"))
    cases = [
        case
        for case in expand_cases(overload, DeviceKind.CPU, None, "seed")
        if case.phase is not Phase.BENCH and case.dtype not in ("float64", "complex128")
    ]
    for case in cases[:: max(1, -(-len(cases) // most))]:
        yield judge.place(case, torch.Generator().manual_seed(1)), judge


def _look_at(row: Row, call: PlacedCall, judge: OverloadJudge) -> None:
    row.cases += 1
    real = {name: value for name, value in _values(call, judge).items() if value.dtype in NARROW}
    try:
        found = _values(call, judge, _narrow)
    except Exception:  # a reference may need what only 64 bits have, in any way of its own
        row.failed += 1
        return
    row.wide += any(found[name].dtype in NARROW for name in real)
    if _leaves(real, found):
        row.asks.append(call.case.id)
    elif judge.overload.tolerance.rule == "accumulate" and _leaves(real, _values(call, judge, _sizes)):
        row.sums.append(call.case.id)


def _leaves(real: Mapping[str, torch.Tensor], found: Mapping[str, torch.Tensor]) -> bool:
    """Whether an element of a result is finite and within float32, and not what was found in its place."""
    for name, value in real.items():
        fits = torch.isfinite(value) & (value.abs() <= LARGEST)
        other = found[name]
        if bool((fits & ~(torch.isfinite(other) & (other.abs() <= LARGEST))).any()):
            return True
    return False


def _values(
    call: PlacedCall, judge: OverloadJudge, change: Callable[[Any], Any] = lambda value: value
) -> dict[str, torch.Tensor]:
    """What is right, where references get what ``change`` makes of their numbers."""
    widened = reference.upcast
    reference.upcast = lambda value: change(widened(value))
    try:
        return {name: each.value for name, each in values_only(judge.expected(call.inputs)).items()}
    finally:
        reference.upcast = widened


def _narrow(value: Any) -> Any:
    if isinstance(value, list):
        return [_narrow(each) for each in value]
    return value.to(NARROW.get(value.dtype, value.dtype)) if isinstance(value, torch.Tensor) else value


def _sizes(value: Any) -> Any:
    """Numbers without their signs; of complex ones the sum of both parts, so that products are of all real ones."""
    if isinstance(value, list):
        return [_sizes(each) for each in value]
    if not isinstance(value, torch.Tensor) or value.dtype not in NARROW:
        return value
    return torch.view_as_real(value).abs().sum(-1).to(value.dtype) if value.is_complex() else value.abs()


if __name__ == "__main__":
    main()
