"""How long a worker takes to start, and the peak memory of every process of a session.

python -m benchmarks.startup [--device auto] [--workers 10] [--json FILE]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import psutil

from benchmarks.script import Script, device_option, json_option, shown, smoke_option
from kgbench.core.paths import answer_dirs, examples_dir, problems_dir
from kgbench.harness.machine import processes
from kgbench.harness.session.session import Job, Session, Settings
from kgbench.problem.registry import load_problem

PROBLEM = "aten/t"
"""Has next to nothing to compute, so that what is measured is starting and ending."""


@click.command(cls=Script)
@device_option
@click.option(
    "--workers", default=10, show_default=True, type=click.IntRange(min=2), help="Started one after the other."
)
@json_option
@smoke_option(workers=2, device="cpu")
def main(device: str, workers: int, json_path: Path | None) -> None:
    """Seconds to start a session and workers, and peak memory of every process; prints JSON."""
    found: dict[str, Any] = {}
    begun = time.monotonic()
    with Session(Settings(device=device, jobs=1, hidden=answer_dirs())) as session:
        found["session_start_s"] = round(time.monotonic() - begun, 2)
        results = [evaluate(session, PROBLEM, sample) for sample in shown(range(workers), workers, "workers")]
        found["worker_start_s"] = summary([result.seconds["start"] for result in results[1:]])
        found["whole_candidate_s"] = summary([result.seconds["total"] for result in results[1:]])
        softmax = evaluate(session, "aten/softmax", 0)
        found["peak_mb"] = {**softmax.memory_mb, **peaks()}
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "import torch, triton"], check=True)
    found["fresh_interpreter_imports_s"] = round(time.monotonic() - begun, 2)
    print(json.dumps(found, indent=2))
    if json_path is not None:
        json_path.write_text(json.dumps(found))


def evaluate(session: Session, problem_id: str, sample: int) -> Any:
    """Judge the example of one problem."""
    source = (examples_dir() / f"{problem_id}.py").read_text()
    path = str(problems_dir() / f"{problem_id}.yaml")
    return session.evaluate(Job(load_problem(path), "examples", sample=sample, source=source))


def summary(seconds: list[float]) -> dict[str, float]:
    return {"median": round(statistics.median(seconds), 4), "max": round(max(seconds), 4)}


def peaks() -> dict[str, float]:
    """Peak resident MB of the processes below the fork server that are still alive: supervisor and library worker."""
    named = {}
    for child in processes.children(os.getpid()):
        if "kgbench.harness.process.fork_server" in " ".join(psutil.Process(child).cmdline()):
            # The referee is the one without children; a supervisor has one worker.
            supervisor = next(pid for pid in processes.children(child) if processes.children(pid))
            pids = {"library's supervisor": supervisor, "library worker": processes.children(supervisor)[0]}
            named = {name: round(processes.peak_bytes(pid) / 1e6, 1) for name, pid in pids.items()}
    return named


if __name__ == "__main__":
    main()
