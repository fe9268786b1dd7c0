"""How long does one kernel take, from nothing to a verdict: a softmax, at least 5 checks and 100 timed calls.

    python -m benchmarks.one_softmax [--shape 4096x4096] [--candidates 100 --jobs 8] [--device auto] [--json FILE]

Everything is counted: starting processes and the device, compiling the kernel, drawing inputs, judging outputs and
timing it beside the library. A second evaluation in the same session shows what starting took. With --candidates, so
many of them are judged in a session of their own, --jobs at once.
"""

from __future__ import annotations

import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import yaml

from kgbench.core.paths import examples_dir, problems_dir
from kgbench.core.types import Outcome
from kgbench.harness.session.session import Job, Session, Settings

CHECKS = 5


@click.command()
@click.option("--shape", default="4096x4096", show_default=True)
@click.option("--candidates", default=0, show_default=True)
@click.option("--jobs", default=8, show_default=True)
@click.option("--device", default="auto", show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Also write everything measured here.")
def main(shape: str, candidates: int, jobs: int, device: str, json_path: Path | None) -> None:
    """Measure one evaluation."""
    rows, columns = (int(part) for part in shape.split("x"))
    text = (examples_dir() / "aten/softmax.py").read_text()
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = _problem(Path(folder), rows, columns)
        begun = time.monotonic()
        with Session(Settings(device=device, jobs=1)) as session:
            for number in range(2):
                result = session.evaluate(Job(str(path), "aten/softmax", "one", number, f"{text}\n# {number}\n"))
                timing = next((case.timing for case in result.cases if case.timing), None)
                found.append(
                    {
                        "shape": shape,
                        "outcome": str(result.outcome),
                        "reason": result.reason,
                        "wall_s": round(time.monotonic() - begun, 2),
                        "checks": len(result.cases),
                        "timed_calls": timing.outputs_timed if timing else 0,
                        "outputs_judged": timing.outputs_verified if timing else 0,
                        "candidate_us": timing.candidate_us if timing else None,
                        "library_us": timing.library_us if timing else None,
                        "seconds": result.seconds,
                        "device": session.facts["name"],
                    }
                )
                print(json.dumps(found[-1]), flush=True)
                begun = time.monotonic()
        if candidates:
            found.append(_many(path, text, candidates, jobs, device))
            print(json.dumps(found[-1]), flush=True)
    if json_path is not None:
        json_path.write_text(json.dumps(found, indent=1))


def _many(path: Path, text: str, candidates: int, jobs: int, device: str) -> dict[str, Any]:
    """So many candidates, several at once."""
    begun = time.monotonic()
    with Session(Settings(device=device, jobs=jobs)) as session, ThreadPoolExecutor(jobs) as pool:
        ready = time.monotonic()
        work = [Job(str(path), "aten/softmax", "many", n, f"{text}\n# {n}\n") for n in range(candidates)]
        results = list(pool.map(session.evaluate, work))
        ended = time.monotonic()
        timings = [case.timing for result in results for case in result.cases if case.timing]
        return {
            "candidates": candidates,
            "jobs": jobs,
            "right": sum(result.outcome is Outcome.PASSED for result in results),
            "wall_s": round(ended - begun, 1),
            "start_s": round(ready - begun, 1),
            "timing_share": round(session.timed_s / (ended - ready), 3),
            "library_shared": round(sum(timing.library_shared for timing in timings) / max(len(timings), 1), 2),
            "candidate_us": [round(timing.candidate_us, 2) for timing in timings],
            "ratio": [round(timing.ratio, 4) for timing in timings],
        }


def _problem(folder: Path, rows: int, columns: int) -> Path:
    """The softmax problem with this one shape, checked five times and timed."""
    data = yaml.safe_load((problems_dir() / "aten/softmax.yaml").read_text())
    case = {"a": rows, "b": columns, "dtype": "float32"}
    data["cases"]["check"] = [dict(case) for _ in range(CHECKS)]
    data["cases"].pop("fuzz", None)
    data["cases"]["bench"] = {preset: [dict(case)] for preset in data["cases"]["bench"]}
    path = folder / "aten" / "softmax.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(data, sort_keys=False, width=10_000))
    return path


if __name__ == "__main__":
    main()
