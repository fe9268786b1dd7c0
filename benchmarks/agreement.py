"""How far the library is from each problem's own reference: the largest error, and how much of its limit that is.

python -m benchmarks.agreement ['vllm/*' ...] [--device cuda] [--json FILE]

Over all check and bench cases, in one process: what is compared are two trusted implementations. On a CPU a problem's
fallback stands in for a library that does not run there. ``share`` is the part
of the limit that the library uses at its worst element, or in the root mean square; above 1 a case is not correct.
``error`` is the largest difference between an element and the float64 answer, in units in the last place of the
output's dtype at that element's size. 0 means equal bits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import torch

from benchmarks.script import Script, globs_argument, json_option, shown, smoke_option
from kgbench.baselines.registry import Unavailable, load_baseline
from kgbench.core.details.sentences import words_of
from kgbench.harness.machine.devices import find_devices
from kgbench.harness.process.trusted_worker import TrustedStub
from kgbench.harness.verdict.compare import compare, share_used
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.wire.buffers import create_buffer
from kgbench.harness.wire.requests import PlaceOutputs
from kgbench.problem.cases import Case, expand_cases
from kgbench.problem.model import Overload
from kgbench.problem.registry import Registry, load_problem

COLUMNS = ("problem", "overload", "cases", "share", "error (ulp)", "worst case")


@click.command(cls=Script)
@globs_argument("vllm/*")
@click.option("--device", default="cpu", show_default=True, type=click.Choice(("cpu", "cuda")), help="Whose library.")
@json_option
@smoke_option(globs=("aten/t",), device="cpu")
def main(globs: tuple[str, ...], device: str, json_path: Path | None) -> None:
    """How far libraries are from each problem's reference: a row per overload of the problems named (vllm/*)."""
    find_devices(device)
    torch.set_num_threads(1)
    registry, rows = Registry(), []
    chosen = registry.select(globs=globs)
    click.echo("{:<42}{:<20}{:>6}{:>9}{:>13}  {}".format(*COLUMNS))
    for problem in shown(chosen, len(chosen), "problems"):
        for overload in load_problem(registry.paths[problem]).overloads:
            if overload.check and overload.kind not in ("random", "sync"):
                row = {"problem": problem, "overload": overload.name, **agreement(overload, device)}
                rows.append(row)
                click.echo(
                    "{:<42}{:<20}{cases:>6}{share:>9.3f}{ulps:>13.3g}  {worst}".format(problem, overload.name, **row)
                )
                if json_path is not None:
                    json_path.write_text(json.dumps(rows))


def agreement(overload: Overload, device: str) -> dict[str, Any]:
    """The worst of all cases; ``worst`` says why there are none, where there are none."""
    found: dict[str, Any] = {"cases": 0, "share": 0.0, "ulps": 0.0, "worst": ""}
    target = overload.baseline.get(device) or (overload.fallback if device == "cpu" else None) or ""
    try:
        entry = load_baseline(target, device).call
    except (Unavailable, ValueError) as error:
        return {**found, "worst": str(error)}
    judge = OverloadJudge(overload, torch.device(device))
    memory_gb = torch.cuda.get_device_properties(0).total_memory / 1e9 if device == "cuda" else None
    generator = torch.Generator(device).manual_seed(0)
    for case in expand_cases(overload, device, memory_gb, "agreement"):
        try:
            share, ulps = _case(judge, case, entry, generator)
        except Exception as error:  # a library that fails says so in its row
            return {**found, "share": float("inf"), "worst": f"{case.id}: {type(error).__name__}: {error}"[:200]}
        found["cases"] += 1
        found["ulps"] = max(found["ulps"], ulps)
        if share > found["share"]:
            found["share"], found["worst"] = share, case.id
    return found


def _case(judge: OverloadJudge, case: Case, entry: Any, generator: torch.Generator) -> tuple[float, float]:
    call = judge.place(case, generator)
    stub = TrustedStub(None, judge.device.type, Path())  # type: ignore[arg-type]
    stub.entries = {judge.overload.name: entry}
    stub.buffer = create_buffer(judge.device.type, call.end)
    try:
        for offset, image in call.inputs.images(stub.buffer.address):
            stub.buffer.bytes_at(offset, image.numel()).copy_(image)
        stub.call(judge.requests.call(call), [])
        stub.place(PlaceOutputs(), [])
        snapshot = stub.buffer.bytes_at(0, call.end).clone()
    finally:
        if judge.device.type == "cuda":
            torch.cuda.synchronize()
        stub.kept = None
        stub.buffer.release()
    judge.bases.add(0)
    outputs = judge.outputs(call, snapshot)
    if not isinstance(outputs, dict):
        raise ValueError(outputs.reason)
    if case.unjudged or not judge.overload.values_defined:
        return 0.0, 0.0
    got, expected = judge.comparable(call, outputs)
    limits = judge.limits(case)
    shares = [share_used(got[name], wanted, limits) for name, wanted in expected.items()]
    for name, wanted in expected.items():
        if (mismatch := compare(name, got[name], wanted, limits)) is not None:
            raise ValueError(words_of(mismatch))
    return max(shares, default=0.0), max(
        (_ulps(got[name], wanted.value) for name, wanted in expected.items()), default=0.0
    )


def _ulps(got: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest |got - wanted| in units of ``got``'s last place at |wanted|, where both are finite."""
    if not got.numel() or not (got.is_floating_point() or got.is_complex()):
        return float((got.to(torch.float64) - wanted.to(torch.float64)).abs().max()) if got.numel() else 0.0
    info = torch.finfo(got.dtype)
    wide = torch.complex128 if got.is_complex() else torch.float64
    actual, right = got.to(wide), wanted.to(wide)
    usable = torch.isfinite(actual) & torch.isfinite(right)
    exponent = torch.floor(torch.log2(right.abs().clamp_min(info.smallest_normal)))
    errors = ((actual - right).abs() / (info.eps * torch.exp2(exponent)))[usable]
    return float(errors.max()) if errors.numel() else 0.0


if __name__ == "__main__":
    main()
