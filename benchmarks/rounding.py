"""How much of its error limit an honest implementation of a cuBLAS problem uses: 1 is the limit, more would be wrong.

python -m benchmarks.rounding ['cublas/*gemm*' ...] [--json FILE]

On the CPU, over check and fuzz cases. ``library`` is OpenBLAS. ``rounded`` is the float64 reference, rounded once. The
others are the reference's own lines in the problem's precision, with every sum of products kept one term after the
other (``sequential``), in blocks of 32 that are then added (``blocked``) or as a tree (``paired``); products are
rounded before they are added, as without fused multiply-add, and complex ones are four real ones.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import click
import torch
from torch.overrides import TorchFunctionMode

from benchmarks.script import Script, globs_argument, json_option, shown, smoke_option
from benchmarks.summing import ORDERS, Add, is_product, product, total
from kgbench.baselines.registry import Unavailable, load_baseline
from kgbench.core import user_modules
from kgbench.harness.verdict.call_requests import written_names
from kgbench.harness.verdict.compare import share_used
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.wire.buffers import SharedBuffer, create_buffer, tensor_at
from kgbench.problem.cases import expand_cases
from kgbench.problem.model import Overload
from kgbench.problem.registry import Registry, load_problem

Outputs = dict[str, torch.Tensor]
Implementation = Callable[[OverloadJudge, PlacedCall], Outputs]
_SUMS: Final = (torch.sum, torch.Tensor.sum)


@click.command(cls=Script)
@globs_argument("cublas/*")
@json_option
@smoke_option(globs=("cublas/cublasSdot_v2",))
def main(globs: tuple[str, ...], json_path: Path | None) -> None:
    """How much of their error limit honest implementations use: a row per problem of those named (cublas/*)."""
    torch.set_num_threads(1)
    registry = Registry()
    chosen = registry.select(globs=globs)
    found = {}
    click.echo(f"{'problem':<40}" + "".join(f"{kind:>12}" for kind in KINDS))
    for problem in shown(chosen, len(chosen), "problems"):
        found[problem] = shares(load_problem(registry.paths[problem]).overloads[0])
        click.echo(f"{problem:<40}" + "".join(f"{share:12.3f}" for share in found[problem].values()))
    if json_path is not None:
        json_path.write_text(json.dumps(found))


def shares(overload: Overload, kinds: Iterable[str] = ()) -> dict[str, float]:
    """The largest share of the limit that each kind of implementation uses, where this machine has it."""
    judge = OverloadJudge(overload, torch.device("cpu"))
    generator = torch.Generator("cpu").manual_seed(0)
    found: dict[str, float] = {}
    for case in expand_cases(overload, "cpu", None, "rounding"):
        if case.phase == "bench" or case.unjudged:
            continue
        call = judge.place(case, generator)
        for kind in kinds or KINDS:
            try:
                outputs = KINDS[kind](judge, call)
            except Unavailable:
                continue
            found[kind] = max(found.get(kind, 0.0), _share(judge, call, outputs))
    return found


def _share(judge: OverloadJudge, call: PlacedCall, outputs: Outputs) -> float:
    largest = 0.0
    for name, expected in judge.reference.expected(call.inputs.arguments(), written_names(call.inputs.bound)).items():
        got, wanted, live = outputs[name], expected, judge.live(call, name)
        if live is not None:
            got = torch.where(live, got, torch.zeros_like(got))
            wanted = type(wanted)(torch.where(live, wanted.value, torch.zeros_like(wanted.value)), wanted.magnitude)
        largest = max(largest, share_used(got, wanted, judge.limits(call.inputs.bound.case)))
    return largest


# --- implementations ---


def library(judge: OverloadJudge, call: PlacedCall) -> Outputs:
    """The baseline of a CPU, on memory laid out as a worker sees it."""
    entry = load_baseline(judge.overload.baseline["cpu"], "cpu").call
    buffer = create_buffer("cpu", call.end)
    try:
        for offset, image in call.inputs.images(buffer.address):
            buffer.bytes_at(offset, image.numel()).copy_(image)
        entry(*_passed(call, buffer))
        return {
            name: chunk.view(buffer.bytes_at(chunk.offset, chunk.image.numel())).clone()
            for name, chunk in call.inputs.chunks.items()
            if name in written_names(call.inputs.bound)
        }
    finally:
        buffer.release()


def _passed(call: PlacedCall, buffer: SharedBuffer) -> list[Any]:
    passed = []
    for argument in call.inputs.bound.arguments:
        placed = call.inputs.pointers.get(argument.name) or call.inputs.chunks.get(argument.name)
        if placed is not None:
            passed.append(tensor_at(buffer, placed.place))
        else:
            passed.append(getattr(torch, argument.value) if argument.type.startswith("dtype") else argument.value)
    return passed


def rounded(judge: OverloadJudge, call: PlacedCall) -> Outputs:
    arguments = call.inputs.arguments()
    expected = judge.reference.expected(arguments, written_names(call.inputs.bound))
    return {name: each.value.to(arguments[name].dtype) for name, each in expected.items()}


def summed(add: Add) -> Implementation:
    """The reference in the problem's own arithmetic, with sums in an order of ``benchmarks.summing``."""

    def implementation(judge: OverloadJudge, call: PlacedCall) -> Outputs:
        given = call.inputs.arguments()
        compute = judge.limits(call.inputs.bound.case).compute
        narrow = compute == "float16"
        own = {name: value if narrow else _at_least_float32(value) for name, value in given.items()}
        module, _, function = judge.overload.reference.partition(":")
        user_modules.make_importable()
        with Summed(add):
            found = getattr(importlib.import_module(module), function)(**own)
        return {name: each.value.to(given[name].dtype) for name, each in found.items()}

    return implementation


def _at_least_float32(value: Any) -> Any:
    is_narrow = isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.float() if is_narrow else value


class Summed(TorchFunctionMode):
    """Products of matrices and sums of vectors, term by term in the tensors' own type."""

    def __init__(self, add: Add) -> None:
        self.add = add
        super().__init__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if is_product(func):
            return product(*args, self.add)
        if func in _SUMS and len(args) == 1 and not kwargs:
            return total(args[0], self.add)
        return func(*args, **(kwargs or {}))


KINDS: Final[dict[str, Implementation]] = {
    "library": library, "rounded": rounded, **{name: summed(add) for name, add in ORDERS.items()},
}  # fmt: skip


if __name__ == "__main__":
    main()
