"""How often an honest implementation would be called wrong, and how near it comes to the limit, over many seeds.

    python -m benchmarks.limit_shares ['aten/*' ...] [--seeds 200] [--bench 3] [--kind library] [--json FILE]

On the CPU, in one process, over the check and fuzz cases of as many seeds as asked, and a few of the timed ones.
``library`` is the problem's baseline, or its fallback where that does not run here. ``plain`` is its reference in the
arithmetic of the problem (float32 for all outputs of up to 32 bits). ``coarse`` is that with every function of
mathematics off by up to two units in the last place, as CUDA's own are. ``sequential`` adds the terms of every sum, of
products of matrices too, one after the other, as a thread does that has a row to itself; ``blocked`` does in blocks of
32, ``paired`` as a tree; complex products are split into four real ones. Of kinds compute and creation, without those
whose outputs are all exact; outputs in float64 are left to ``library``.

``share`` is the worst part of the limit that was used, inf where a call was beyond it, ``wrong`` the calls that were.
With ``--itself`` an operand meets itself (``benchmarks/meeting.py``): B = Aᵀ, y = x, a distance of x from x.
A row over ``--over`` (0.6) is marked and named with its case, to be looked at: is the scale too small near a
singularity, or is the implementation the less accurate one?
"""

from __future__ import annotations

import json
import math
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
import torch
from torch.overrides import TorchFunctionMode

from benchmarks.meeting import meet
from benchmarks.script import Script, globs_argument, json_option, shown, smoke_option
from benchmarks.summing import ORDERS, Add, is_product, product, total
from kgbench.baselines.registry import Unavailable, load_baseline
from kgbench.harness.process.trusted_worker import TrustedStub
from kgbench.harness.verdict.call_requests import written_names
from kgbench.harness.verdict.compare import share_used
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.verdict.narrow_dtypes import stored_as
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.verdict.reference import element, values_only
from kgbench.harness.wire.buffers import SharedBuffer, create_buffer
from kgbench.harness.wire.requests import PlaceOutputs
from kgbench.problem.cases import Case, expand_cases
from kgbench.problem.model import Overload
from kgbench.problem.registry import Registry, load_problem

KINDS: Final = ("library", "plain", "coarse", *ORDERS)
SINGLE: Final = {torch.float64: torch.float32, torch.complex128: torch.complex64}
LOG2_E: Final = math.log2(math.e)
FUNCTIONS: Final = frozenset({
    "acosh", "asin", "cos", "cosh", "digamma", "div", "erfc", "exp", "exp2", "expm1", "i0", "log", "log10", "log1p",
    "log2", "logaddexp2", "logit", "logsigmoid", "polygamma", "reciprocal", "rsqrt", "sigmoid", "sin", "sinh",
    "softmax", "special_entr", "special_zeta", "sqrt", "tan", "tanh", "true_divide", "__truediv__", "__rtruediv__",
})  # fmt: skip
Outputs = dict[str, torch.Tensor]


@dataclass
class Row:
    """One overload, by one kind of implementation."""

    problem: str
    overload: str
    kind: str
    calls: int = 0
    elements: int = 0
    wrong: int = 0
    share: float = 0.0
    """The worst of all calls that were not beyond the limit; ``wrong`` counts the others."""
    case: str = ""
    """The first beyond the limit, else the worst one."""
    failure: str = ""
    """Why the last call that raised did."""

    def add(self, name: str, share: float, elements: int) -> None:
        self.calls += 1
        self.elements += elements
        if math.isinf(share):
            self.case = self.case if self.wrong else name
            self.wrong += 1
        elif share > self.share:
            self.case = self.case if self.wrong else name
            self.share = share


@click.command(cls=Script)
@globs_argument("aten/*", "cublas/*", "vllm/*")
@click.option("--seeds", default=200, show_default=True, help="So many draws of every check and fuzz case.")
@click.option("--bench", default=3, show_default=True, help="So many draws of every timed case for the CPU.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(KINDS),
    default=KINDS,
    show_default=True,
    help="Implementations; may be repeated.",
)
@click.option("--itself", is_flag=True, help="Only calls of which one operand can be made another: B = Aᵀ, y = x.")
@click.option("--first", default=0, show_default=True, help="The first seed.")
@click.option("--over", default=0.6, show_default=True, help="Mark who uses more of the limit than this.")
@json_option
@smoke_option(globs=("aten/softmax",), seeds=1, bench=0, kinds=("library", "plain"))
def main(
    globs: tuple[str, ...],
    seeds: int,
    bench: int,
    kinds: tuple[str, ...],
    itself: bool,
    first: int,
    over: float,
    json_path: Path | None,
) -> None:
    """How much of the limit honest implementations use: a row per overload and kind, of the problems named (all)."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    registry, rows = Registry(), []
    chosen = registry.select(globs=globs)
    click.echo(f"{'problem':<40}{'overload':<18}{'kind':<11}{'calls':>8}{'elements':>12}{'share':>8}{'wrong':>9}  case")
    for problem in shown(chosen, len(chosen), "problems"):
        for overload in load_problem(registry.paths[problem]).overloads:
            if is_judged(overload):
                for row in measure(problem, overload, range(first, first + seeds), bench, kinds, itself):
                    rows.append(row)
                    click.echo(words(row, over))
    if json_path is not None:
        json_path.write_text(json.dumps([asdict(row) for row in rows]))
    calls = {kind: sum(row.calls for row in rows if row.kind == kind) for kind in kinds}
    wrong = {kind: sum(row.wrong for row in rows if row.kind == kind) for kind in kinds}
    click.echo("; ".join(f"{kind}: {wrong[kind]} of {calls[kind]} calls wrong" for kind in kinds))


def is_judged(overload: Overload) -> bool:
    """Whether its values are, by a limit that is not equality."""
    return bool(overload.check) and overload.kind in ("compute", "creation") and overload.tolerance.rule != "exact"


def words(row: Row, over: float) -> str:
    share = math.inf if row.wrong else row.share
    mark = f"{'!' if row.wrong else '?' if share > over else ' '} {row.case if share > over else ''}"
    wrong = f"{row.wrong / max(1, row.calls):9.3%}"
    return (
        f"{row.problem:<40}{row.overload:<18}{row.kind:<11}{row.calls:>8}{row.elements:>12}{share:>8.3f}{wrong} {mark}"
        f"{f'  [{row.failure}]' if row.failure else ''}"
    )


def measure(
    problem: str, overload: Overload, seeds: range, bench: int, kinds: tuple[str, ...], itself: bool = False
) -> list[Row]:
    """Every kind of implementation on the same calls. ``itself``: of those alone in which operands can meet."""
    rows = {kind: Row(problem, overload.name, kind) for kind in kinds}
    judge = OverloadJudge(overload, torch.device("cpu"))
    library, failure = library_of(overload) if "library" in kinds else (None, "")
    if library is None and "library" in rows:
        rows["library"].failure = failure
    try:
        for seed in seeds:
            for case in _cases(overload, seed, with_bench=seed - seeds.start < bench):
                generator = torch.Generator("cpu").manual_seed(zlib.crc32(f"{seed} {case.id}".encode()))
                call = replace(judge.place(case, generator), remembers=True)
                # Large and faint operands are drawn for each other: one alone would overflow.
                if itself and (case.values != "default" or not meet(call, overload.prepare)):
                    continue
                for kind, row in rows.items():
                    if kind != "library" or library is not None:
                        _add(row, judge, call, library, seed)
    finally:
        if library is not None and library.buffer is not None:
            library.kept = None
            library.buffer.release()
    return list(rows.values())


def _cases(overload: Overload, seed: int, with_bench: bool) -> Iterator[Case]:
    """Those of the phases that are wanted; the others are not even made."""
    shorter = replace(overload, opinfo=(), bench=overload.bench if with_bench else {})
    for case in expand_cases(shorter, "cpu", None, f"limit shares {seed}"):
        if not case.unjudged and not case.exact:
            yield case


def _add(row: Row, judge: OverloadJudge, call: PlacedCall, library: TrustedStub | None, seed: int) -> None:
    """One call by one kind of implementation. What it cannot run is no call of it."""
    try:
        if row.kind == "library":
            assert library is not None
            outputs = called(judge, call, library)
        else:
            outputs = computed(judge, call, row.kind)
    except Exception as error:  # an operator without this dtype on a CPU, and the like
        row.failure = f"{call.inputs.bound.case.id}: {type(error).__name__}: {error}".splitlines()[0][:160]
        return
    if not outputs:
        return
    got, expected = judge.comparable(call, outputs)
    limits = judge.limits(call.inputs.bound.case)
    judged = {name: wanted for name, wanted in expected.items() if name in got}
    shares = {name: share_used(got[name], wanted, limits) for name, wanted in judged.items()}
    if not shares:
        return
    worst = max(shares, key=lambda name: shares[name])
    name = f"{call.inputs.bound.case.id} seed {seed} {worst} {got[worst].dtype}".replace("torch.", "")
    row.add(name, shares[worst], sum(got[name].numel() for name in judged))


# --- implementations ---


def library_of(overload: Overload) -> tuple[TrustedStub | None, str]:
    """A stub with the baseline of a CPU loaded, or the fallback; else why there is neither."""
    failure = "no library on a CPU"
    for target in (overload.baseline.get("cpu"), overload.fallback):
        if target:
            try:
                entry = load_baseline(target, "cpu").call
            except Unavailable as error:
                failure = str(error)
                continue
            stub = TrustedStub(None, "cpu", Path())  # type: ignore[arg-type]
            stub.entries = {overload.name: entry}
            return stub, ""
    return None, failure


def called(judge: OverloadJudge, call: PlacedCall, library: TrustedStub) -> Outputs:
    """What the library answers, on memory laid out as a worker sees it."""
    buffer = _buffer(library, call.end)
    for offset, image in call.inputs.images(buffer.address):
        buffer.bytes_at(offset, image.numel()).copy_(image)
    judge.bases.add(buffer.address)
    library.call(judge.requests.call(call), [])
    library.place(PlaceOutputs(), [])
    outputs = judge.outputs(call, buffer.bytes_at(0, call.end).clone())
    if not isinstance(outputs, dict):
        raise ValueError(outputs.reason)
    return outputs


def _buffer(library: TrustedStub, nbytes: int) -> SharedBuffer:
    """The stub's, replaced by a larger one where it is too small."""
    if library.buffer is None or library.buffer.nbytes < nbytes:
        library.kept = None
        if library.buffer is not None:
            library.buffer.release()
        library.buffer = create_buffer("cpu", 2 * nbytes)
    return library.buffer


def computed(judge: OverloadJudge, call: PlacedCall, kind: str) -> Outputs:
    """The reference's own lines in float32, in the outputs' dtypes. Outputs of 64 bits are left out."""
    arguments = call.inputs.arguments()
    dtypes = {name: element(arguments, name).dtype for name in written_names(call.inputs.bound)}
    returned = (getattr(torch, spec.dtype) for spec in call.specs)
    dtypes |= dict(zip(call.outputs, returned, strict=True))
    compute = judge.limits(call.inputs.bound.case).compute or ""
    if any(dtype in SINGLE for dtype in dtypes.values()) or compute in ("float64", "complex128"):
        return {}
    with MODES[kind]():
        found = values_only(judge.reference.answers(arguments, written_names(call.inputs.bound)))
    return {name: stored_as(each.value, dtypes[name]) for name, each in found.items()}


class Single(TorchFunctionMode):
    """float32 wherever float64 is asked for."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        args = tuple(_single(each) for each in args)
        if name == "double":
            return func(*args).to(torch.float32)
        named = {key: _single(each) for key, each in (kwargs or {}).items()}
        return self.rounded(name, func(*args, **named))

    def rounded(self, name: str, result: Any) -> Any:
        return result


class Coarse(Single):
    """And functions of mathematics no better than CUDA's; exp by way of exp2, as Triton has it."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator("cpu").manual_seed(0)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        is_exp = func in (torch.exp, torch.Tensor.exp) and not kwargs and args[0].dtype == torch.float32
        if is_exp:
            func, args = torch.exp2, (args[0] * LOG2_E,)
        return super().__torch_function__(func, types, args, kwargs)

    def rounded(self, name: str, result: Any) -> Any:
        if name not in FUNCTIONS or getattr(result, "dtype", None) not in (torch.float32, torch.complex64):
            return result
        # One beside half for the function's own rounding and half for the product's.
        off = torch.finfo(torch.float32).eps * (2 * torch.rand(result.shape, generator=self.generator) - 1)
        return result * (1 + off)


class Summing(Single):
    """And sums and products of matrices with terms in one order."""

    def __init__(self, add: Add) -> None:
        super().__init__()
        self.add = add

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if is_product(func) and all(getattr(each, "dtype", None) in SINGLE.values() for each in args):
            return product(*args, self.add)
        if name == "linalg_vector_norm" and 0 < args[1] < math.inf and args[0].dtype == torch.float32:
            return summed(args[0].abs().pow(args[1]), args[2], self.add, **(kwargs or {})).pow(1 / args[1])
        is_sum = name in ("sum", "mean", "softmax") and args and getattr(args[0], "dtype", None) in SINGLE.values()
        if not is_sum or not args[0].numel():
            return super().__torch_function__(func, types, args, kwargs)
        named = dict(zip(("dim", "keepdim"), args[1:], strict=False)) | (kwargs or {})
        if name == "softmax":
            powers = torch.exp(args[0] - args[0].amax(named["dim"], keepdim=True))
            return powers / summed(powers, named["dim"], self.add, keepdim=True)
        found = summed(args[0], named.get("dim"), self.add, keepdim=bool(named.get("keepdim", False)))
        return found if name == "sum" else found * (found.numel() / args[0].numel())


def summed(terms: torch.Tensor, dim: Any, add: Add, keepdim: bool = False) -> torch.Tensor:
    """Their sum along one or several dimensions, or all."""
    if not terms.dim():
        return terms.clone()
    listed = [dim] if isinstance(dim, int) else list(dim or range(terms.dim()))
    dims = sorted(each % terms.dim() for each in listed)
    first = terms.movedim(dims, list(range(len(dims)))).flatten(0, len(dims) - 1)
    if not len(first):
        return terms.sum(dims, keepdim)
    found = total(first, add)
    for each in dims if keepdim else ():
        found = found.unsqueeze(each)
    return found


MODES: Final[dict[str, Callable[[], Single]]] = {
    "plain": Single, "coarse": Coarse, **{name: partial(Summing, add) for name, add in ORDERS.items()},
}  # fmt: skip


def _single(value: Any) -> Any:
    return SINGLE.get(value, value) if isinstance(value, torch.dtype) else value


if __name__ == "__main__":
    main()
