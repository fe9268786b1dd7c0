"""How long does one kernel take, from nothing to a verdict: a softmax, at least 5 checks and 100 timed calls.

    python -m benchmarks.one_softmax [--shape 4096x4096] [--candidates 100 --jobs 8] [--device auto] [--json FILE]

Everything is counted: starting processes and the device, compiling the kernel, drawing inputs, judging outputs and
timing it beside the library. A second evaluation in the same session shows what starting took. With --candidates, so
many of them are judged in a session of their own, --jobs at once. Ends with 1 where a kernel did not pass.
"""

from __future__ import annotations

import functools
import json
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.own_problem import write_with_calls
from benchmarks.script import Script, device_option, json_option, shown, smoke_option
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import examples_dir, problems_dir
from kgbench.core.types import Result
from kgbench.harness.session.session import Job, Session, Settings
from kgbench.problem.registry import load_problem

CHECKS: Final = 5
"""Check cases of the one shape, each with inputs of its own."""
PROBLEM: Final = "aten/softmax"


def _shape(_ctx: click.Context, _param: click.Parameter, text: str) -> tuple[int, int]:
    sizes = text.split("x")
    if len(sizes) != 2 or not all(size.isdigit() and int(size) for size in sizes):
        raise click.BadParameter(f"{text!r} is not ROWSxCOLUMNS, for example 4096x4096")
    return int(sizes[0]), int(sizes[1])


@click.command(cls=Script)
@click.option("--shape", default="4096x4096", show_default=True, callback=_shape, help="Of the float32 input.")
@click.option("--candidates", default=0, show_default=True, help="Also judge so many in a session of their own.")
@click.option("--jobs", default=8, show_default=True, help="How many of --candidates at once.")
@device_option
@json_option
@smoke_option(shape="8x16", device="cpu")
def main(shape: tuple[int, int], candidates: int, jobs: int, device: str, json_path: Path | None) -> None:
    """Seconds from nothing to a verdict for one softmax kernel; prints a line of JSON per evaluation."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = _problem(Path(folder), *shape)
        for row in _one_by_one(path, device):
            found.append({"shape": "x".join(map(str, shape)), **row})
            print(json.dumps(found[-1]), flush=True)
        if candidates:
            found.append(_many(path, candidates, jobs, device))
            print(json.dumps(found[-1]), flush=True)
    if json_path is not None:
        json_path.write_text(json.dumps(found, indent=1))
    sys.exit(any(row["failures"] for row in found))


def _one_by_one(path: Path, device: str) -> list[dict[str, Any]]:
    """Two evaluations in one session; the first one counts its start."""
    rows = []
    begun = time.monotonic()
    with Session(Settings(device=device, jobs=1)) as session:
        for number in range(2):
            result = session.evaluate(_job(path, "one", number))
            rows.append({"wall_s": round(time.monotonic() - begun, 2), **_row(result), "device": session.facts["name"]})
            begun = time.monotonic()
    return rows


def _row(result: Result) -> dict[str, Any]:
    timing = next((case.timing for case in result.cases if case.timing), None)
    return {
        "outcome": str(result.outcome),
        "failures": _failures([result]),
        "checks": len(result.cases),
        "timed_calls": timing.outputs_timed if timing else 0,
        "outputs_judged": timing.outputs_verified if timing else 0,
        "candidate_us": timing.candidate_us if timing else None,
        "library_us": timing.library_us if timing else None,
        "seconds": result.seconds,
    }


def _many(path: Path, candidates: int, jobs: int, device: str) -> dict[str, Any]:
    """So many candidates, several at once."""
    begun = time.monotonic()
    with Session(Settings(device=device, jobs=jobs)) as session, ThreadPoolExecutor(jobs) as pool:
        ready = time.monotonic()
        work = [_job(path, "many", number) for number in range(candidates)]
        results = list(shown(pool.map(session.evaluate, work), candidates, "candidates"))
        ended = time.monotonic()
        timings = [case.timing for result in results for case in result.cases if case.timing]
        return {
            "candidates": candidates,
            "jobs": jobs,
            "right": sum(result.outcome is Outcome.PASSED for result in results),
            "failures": _failures(results),
            "wall_s": round(ended - begun, 1),
            "start_s": round(ready - begun, 1),
            "timing_share": round(session.timed_s / (ended - ready), 3),
            "library_shared": round(sum(timing.library_shared for timing in timings) / max(len(timings), 1), 2),
            "candidate_us": [round(timing.candidate_us, 2) for timing in timings],
            "ratio": [round(timing.ratio, 4) for timing in timings],
        }


def _failures(results: list[Result]) -> list[str]:
    """Why kernels did not pass, each reason once."""
    return sorted({f"{each.outcome}: {each.reason}" for each in results if each.outcome is not Outcome.PASSED})


_load: Final = functools.cache(load_problem)
"""Reads a problem as a run does: once."""


def _job(path: Path, whose: str, number: int) -> Job:
    text = (examples_dir() / f"{PROBLEM}.py").read_text()
    return Job(_load(path), whose, number, f"{text}\n# {number}\n")


def _problem(folder: Path, rows: int, columns: int) -> Path:
    """The softmax problem with this one shape, checked five times and timed."""
    call = f"((T([{rows}, {columns}], f32), -1), {{}})"
    return write_with_calls(problems_dir() / f"{PROBLEM}.yaml", [call] * CHECKS, [call], folder)


if __name__ == "__main__":
    main()
