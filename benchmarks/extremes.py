"""What kernels make of calls whose numbers are scaled towards the ends of their dtype, beside the library and the
reference.

    python -m benchmarks.extremes ['aten/*' ...] [--kernels DIR] [--cases 3] [--json FILE]

On the CPU, in one process. Of each overload a few check cases of each dtype are made again, with each of their
floating arguments, and with all of them together, times each factor, and with each two of them times factors of which
one is the other's inverse, so that a product of both stays as it was. Python numbers among the arguments become those
of ``NUMBERS``, one at a time; what the library refuses is left out. ``library`` is the problem's baseline, ``plain``
the reference in the arithmetic of the problem (``benchmarks.limit_shares``), ``kernel`` the file of ``--kernels``, as
``kgbench run --model dir:DIR`` takes them; without it the kernels that ship. A row that says ``kernel`` counts calls
where the kernel alone is wrong: the text forbids them, or a case is missing. Where the ``library`` alone is wrong, it
is the library's fault or the limit's. Where ``plain`` is wrong too, numbers left their dtype on the way.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import json
import math
import os
import random
import signal
import types
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

# Triton reads it when it is imported, which a kernel's file does.
os.environ["TRITON_INTERPRET"] = "1"

import torch

from benchmarks.limit_shares import Outputs, called, computed, library_of
from benchmarks.script import Script, globs_argument, json_option, shown, smoke_option
from kgbench.baselines.registry import load_function
from kgbench.core.kinds import DeviceKind, Kind, Phase
from kgbench.core.paths import examples_dir
from kgbench.core.verdicts import PASSED
from kgbench.harness.candidate.interpreter.patch import patch
from kgbench.harness.process.trusted_worker import TrustedStub
from kgbench.harness.verdict.compare import share_used
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.problem.calls import Call
from kgbench.problem.cases import Case, expand_cases
from kgbench.problem.cases.calls import given_arguments
from kgbench.problem.model import Access, Overload, plain_type
from kgbench.problem.registry import Registry, load_problem

FACTORS: Final = {
    torch.float16: (1e-3, 1e3),
    torch.bfloat16: (1e-30, 1e30),
    torch.float32: (1e-30, 1e-15, 1e15, 1e30),
    torch.float64: (1e-100, 1e100),
    torch.complex64: (1e-25, 1e25),
    torch.complex128: (1e-170, 1e170),
}
NUMBERS: Final = {
    int: (300, -300, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63)),
    float: (7e4, -1e5, 1e39, -1e39, 1e300, -1e300, 1e-46, 1e-310),
    complex: (1e39 + 1j, 1 - 1e39j, 1e300 + 1e300j),
}
"""What a number of each type becomes; beside complex tensors a real one, too."""
NEAR_THE_END: Final = 0.1
"""Share of its dtype's largest number that an argument's largest becomes, while another is divided by as much."""
MOST_ELEMENTS: Final = 30_000
"""Elements of a call's floating arguments above which it is left out."""
MOST_S: Final = 8
"""Seconds after which a call counts as failed."""
LIBRARY: Final = "library"
PLAIN: Final = "plain"
KERNEL: Final = "kernel"
Stubs = Mapping[str, TrustedStub | None]
"""Who answers calls, by LIBRARY and KERNEL; None where there is none."""


@dataclass
class Row:
    """One overload."""

    problem: str
    overload: str
    calls: int = 0
    wrong: tuple[str, ...] = ()
    """Which of library, plain and kernel are wrong together, in the calls that ``count`` counts."""
    count: int = 0
    first: str = ""
    """The first of those calls: case, arguments and factor."""


@click.command(cls=Script)
@globs_argument("aten/*", "cublas/*", "vllm/*")
@click.option(
    "--kernels",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="A folder with SOURCE/PROBLEM.py.  [default: the kernels that ship]",
)
@click.option("--cases", default=3, show_default=True, help="Most check cases of float32 and complex64; of others one.")
@json_option
@smoke_option(globs=("aten/neg",), cases=1)
def main(globs: tuple[str, ...], kernels: Path | None, cases: int, json_path: Path | None) -> None:
    """Calls with arguments near the ends of their dtype: who is wrong, in a row per overload and set of who is."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    registry = Registry()
    chosen, rows, calls = registry.select(globs=globs), list[Row](), 0
    for problem in shown(chosen, len(chosen), "problems"):
        file = (kernels or examples_dir()) / f"{problem}.py"
        entries = _kernel(file) if file.is_file() else None
        for overload in load_problem(registry.paths[problem]).overloads:
            if overload.kind == Kind.COMPUTE and overload.values_defined:
                made, found = _measured(problem, overload, entries, cases)
                calls += made
                rows += found
                for row in found:
                    name = f"{row.problem} {row.overload}".strip()
                    click.echo(f"{name:<44}{row.count:>5} of {row.calls:<6}{' and '.join(row.wrong):<28} {row.first}")
    if json_path is not None:
        json_path.write_text(json.dumps({"calls": calls, "rows": [asdict(row) for row in rows]}))
    alone = [row for row in rows if row.wrong == (KERNEL,)]
    click.echo(
        f"{calls} calls of {len(chosen)} problems; in {sum(row.count for row in alone)} the kernel alone is wrong"
    )


def _kernel(file: Path) -> types.ModuleType:
    """A kernel's file, loaded as in a worker."""
    spec = importlib.util.spec_from_file_location(f"kernel_{zlib.crc32(str(file).encode())}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    patch()
    return module


def _measured(problem: str, overload: Overload, kernel: Any, most: int) -> tuple[int, list[Row]]:
    """Calls made, and a row for each set of who is wrong in some."""
    judge = OverloadJudge(overload, torch.device("cpu"))
    library, _ = library_of(overload)
    entry = getattr(kernel, overload.signature.name, None)
    stubs = {LIBRARY: library, KERNEL: None if entry is None else _stub(overload, entry)}
    rows: dict[tuple[str, ...], Row] = {}
    calls = 0
    scaled = _scaled_calls(judge, _cases(problem, overload, judge, most), stubs)
    for wrong, words in itertools.chain(scaled, _calls_with_numbers(judge, stubs)):
        calls += 1
        if wrong:
            row = rows.setdefault(wrong, Row(problem, overload.name, wrong=wrong))
            row.count += 1
            row.first = row.first or words
    for stub in stubs.values():
        if stub is not None and stub.buffer is not None:
            stub.kept = None
            stub.buffer.release()
    return calls, [replace(row, calls=calls) for row in rows.values()]


def _stub(overload: Overload, entry: Callable[..., Any]) -> TrustedStub:
    stub = TrustedStub(None, "cpu", Path())  # type: ignore[arg-type]
    stub.entries = {overload.name: entry}
    return stub


def _check_cases(overload: Overload, order: random.Random | None = None) -> list[Case]:
    """Those whose values are judged, on a CPU, as they come or in another order."""
    found = list(expand_cases(replace(overload, opinfo=(), bench={}), DeviceKind.CPU, None, "extremes"))
    if order is not None:
        order.shuffle(found)
    return [case for case in found if case.phase is Phase.CHECK and not case.unjudged]


def _cases(problem: str, overload: Overload, judge: OverloadJudge, most: int) -> Iterator[Case]:
    """A few small check cases of each dtype that have floating arguments; the same ones in each run."""
    left: dict[str | None, int] = {"float32": most, "complex64": most}
    for case in _check_cases(overload, random.Random(zlib.crc32(problem.encode()))):
        if case.exact or not left.setdefault(case.dtype, 1):
            continue
        with contextlib.suppress(ValueError):
            sizes = [view.numel() for _, view in _floating(_placed(judge, case))]
            if 0 < sum(sizes) <= MOST_ELEMENTS:
                left[case.dtype] -= 1
                yield case


def _scaled_calls(judge: OverloadJudge, cases: Iterable[Case], stubs: Stubs) -> Iterator[tuple[tuple[str, ...], str]]:
    """Who is wrong in each call with scaled arguments, and words for the call."""
    for case in cases:
        for factors in _scalings(judge, case):
            call = _scaled(judge, case, factors, judge.overload.prepare)
            if call is not None:
                words = f"{case.id} {', '.join(f'{name} x {by:g}' for name, by in factors.items())}"
                yield tuple(_wrong(judge, call, stubs)), words


def _calls_with_numbers(judge: OverloadJudge, stubs: Stubs) -> Iterator[tuple[tuple[str, ...], str]]:
    """Who is wrong in each call with a number far from usual that the library answers rightly, and words for it."""
    library, kernel = stubs[LIBRARY], stubs[KERNEL]
    if library is None or kernel is None:
        return
    for case, change in _with_numbers(judge.overload):
        with contextlib.suppress(OverflowError, RuntimeError, ValueError):
            call = _placed(judge, case)
            if _is_right(judge, call, library):
                yield () if _is_right(judge, call, kernel) else (KERNEL,), f"{case.id} with {change}"


def _with_numbers(overload: Overload) -> Iterator[tuple[Case, str]]:
    """Check cases with a number that is far from usual, and which: of each dtype, parameter and type of number one."""
    parameters = {each.name for each in overload.signature.parameters if plain_type(each.type) in ("Scalar", "float")}
    seen = set()
    for case in _check_cases(overload):
        given = {} if case.call is None else given_arguments(overload, case.call)
        for name, value in given.items():
            key = case.dtype, name, type(value)
            if name in parameters and type(value) in NUMBERS and key not in seen:
                seen.add(key)
                more = NUMBERS[float] if case.dtype.startswith("complex") else ()
                for number in dict.fromkeys((*NUMBERS[type(value)], *more)):
                    call, sizes = Call((), {**given, name: number}), {**case.sizes, name: number}
                    yield replace(case, call=call, sizes=sizes), f"{name} = {number}"


def _placed(judge: OverloadJudge, case: Case) -> PlacedCall:
    return judge.place(case, torch.Generator().manual_seed(1))


def _floating(call: PlacedCall) -> Iterator[tuple[str, torch.Tensor]]:
    """Arguments with drawn numbers of a floating or complex dtype, by name."""
    for name, chunk in call.inputs.chunks.items():
        view = chunk.view(chunk.image)
        if chunk.spec.access != Access.WRITE and not chunk.spec.slots and view.dtype in FACTORS and view.numel():
            yield name, view


def _scalings(judge: OverloadJudge, case: Case) -> Iterator[dict[str, float]]:
    """Factors by argument: each alone, all together, each two against each other."""
    views = dict(_floating(_placed(judge, case)))
    sets = [*((name,) for name in views), *([tuple(views)] if len(views) > 1 else [])]
    for which in sets:
        for factor in FACTORS[views[which[0]].dtype]:
            yield dict.fromkeys(which, factor)
    for one, other in itertools.permutations(views, 2):
        largest = _largest(views[one])
        factor = NEAR_THE_END * torch.finfo(views[one].dtype).max / largest if largest else math.inf
        if factor < math.inf and _largest(views[other]) / factor > torch.finfo(views[other].dtype).smallest_normal:
            yield {one: factor, other: 1 / factor}


def _largest(view: torch.Tensor) -> float:
    """The largest finite size of a number; 0 where there is none but 0."""
    sizes = view.to(torch.complex128 if view.is_complex() else torch.float64).abs()
    return float(torch.where(sizes.isfinite(), sizes, 0.0).max())


def _scaled(judge: OverloadJudge, case: Case, factors: Mapping[str, float], prepare: str | None) -> PlacedCall | None:
    """The call with these arguments times their factors; None where the problem cannot prepare it so."""
    call = replace(_placed(judge, case), remembers=True)
    for name, view in _floating(call):
        if name in factors and 0 not in view.stride():
            view.mul_(factors[name])
    call.known.clear()
    if prepare is not None:
        try:
            generator = torch.Generator().manual_seed(0)
            load_function(prepare)(call.inputs.arguments(), call.inputs.bound.case.variables, generator)
        except (RuntimeError, ValueError):
            return None
    return call


def _wrong(judge: OverloadJudge, call: PlacedCall, stubs: Stubs) -> Iterator[str]:
    for name, stub in stubs.items():
        if stub is not None and not _is_right(judge, call, stub):
            yield name
    # What the reference cannot compute in single precision says nothing.
    with contextlib.suppress(RuntimeError, TypeError, ValueError):
        if not _judged(judge, call, computed(judge, call, "plain")):
            yield PLAIN


def _is_right(judge: OverloadJudge, call: PlacedCall, stub: TrustedStub) -> bool:
    """Whether what it answers is correct, and there within ``MOST_S``."""

    def late(_number: int, _frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(MOST_S)
    try:
        found = called(judge, call, stub)
    except Exception:  # whatever a kernel raises
        return False
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return judge.values(call, found) is PASSED


def _judged(judge: OverloadJudge, call: PlacedCall, outputs: Outputs) -> bool:
    if not outputs:
        return True
    got, expected = judge.comparable(call, outputs)
    limits = judge.limits(call.inputs.bound.case)
    shares = (share_used(got[name], wanted, limits) for name, wanted in expected.items() if name in got)
    return not any(math.isinf(share) for share in shares)


if __name__ == "__main__":
    main()
