"""How long does judging take: one candidate at a time, and several at once on one or more GPUs.

    python -m benchmarks.throughput [--candidates 100] [--jobs 1,4,8,16] [--gpus 1,2] [--problems GLOB] [--json FILE]

Judges the example kernels of the chosen problems over and over, each time as a new candidate in its own process with
empty compiler caches, checks and timing included. Prints, per number of jobs and GPUs: wall seconds, seconds per
candidate, the share of the wall time in which something was timed, how the phases add up, and peak memory.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import click
import psutil

from benchmarks.script import Script, device_option, json_option, shown, smoke_option
from kgbench.cli.options import ALL_GPUS
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import examples_dir, problems_dir
from kgbench.core.types import Result
from kgbench.harness.session.session import Job, Session, Settings
from kgbench.problem.registry import load_problem


def _numbers(ctx: click.Context, param: click.Parameter, value: str) -> list[int]:
    return [ALL_GPUS if part == "all" else int(part) for part in value.split(",")]


@click.command(cls=Script)
@click.option("--candidates", default=100, show_default=True, help="For the largest number of jobs.")
@click.option("--jobs", default="1,4,8,16", show_default=True, callback=_numbers, help="At once on each GPU.")
@click.option("--gpus", default="1", show_default=True, callback=_numbers, help="How many GPUs; all for all.")
@device_option
@click.option("--problems", "pattern", default="*/*", show_default=True, help="Glob over <source>/<name>.")
@json_option
@smoke_option(candidates=2, jobs="1", gpus="1", pattern="aten/t", device="cpu")
def main(candidates: int, jobs: list[int], gpus: list[int], device: str, pattern: str, json_path: Path | None) -> None:
    """Seconds per candidate, one after the other and several at once; a line per number of jobs and GPUs.

    Ends with 1 where a kernel did not pass.
    """
    files = {f"{path.parent.name}/{path.stem}": path for path in sorted(examples_dir().glob(f"{pattern}.py"))}
    rows = []
    for gpu_count, job_count in itertools.product(gpus, jobs):
        # Fewer candidates where fewer are judged at once: the time per candidate is what is compared.
        count = max(len(files), math.ceil(candidates * min(1.0, job_count * gpu_count / (max(jobs) * max(gpus)))))
        rows.append(measure(files, count, job_count, gpu_count, device))
        print(words(rows[-1]), flush=True)
    if json_path is not None:
        json_path.write_text(json.dumps(rows, indent=1))
    sys.exit(any(row["wrong"] for row in rows))


def measure(files: dict[str, Path], count: int, jobs: int, gpus: int, device: str) -> dict[str, Any]:
    """Judge ``count`` candidates, cycling over the files."""
    chosen = list(itertools.islice(itertools.cycle(files.items()), count))
    # Samples of one problem follow each other, as in a run.
    chosen.sort(key=lambda item: item[0])
    with Session(Settings(device=device, jobs=jobs, gpus=gpus, say=print)) as session, Peaks() as peaks:
        begun = time.monotonic()
        with ThreadPoolExecutor(session.jobs) as pool:
            judged = pool.map(lambda item: _judge(session, *item), enumerate(chosen))
            results = list(shown(judged, count, "candidates"))
        wall_s = time.monotonic() - begun
        return {
            "jobs": jobs,
            "gpus": len(session.facts["devices"]),
            "candidates": count,
            "right": sum(result.outcome is Outcome.PASSED for result in results),
            "wrong": sorted({f"{r.problem}: {r.reason[:300]}" for r in results if r.outcome is not Outcome.PASSED}),
            "wall_s": wall_s,
            "s_per_candidate": wall_s / count,
            "timed_share": session.timed_s / (wall_s * len(session.facts["devices"])),
            "stopping_share": session.stopping_s / (wall_s * len(session.facts["devices"])),
            "library_shared": _share([c.timing.library_shared for r in results for c in r.cases if c.timing]),
            "phase_s": {name: statistics.fmean(r.seconds.get(name, 0.0) for r in results) for name in _PHASES},
            "host_mb": peaks.host_mb,
            "device_mb": peaks.device_mb,
            "device": session.facts["name"],
            "start_s": session.facts["start_s"],
            "results": [
                {
                    "problem": result.problem,
                    "seconds": result.seconds,
                    "ratios": [(c.timing.library_us, c.timing.ratio) for c in result.cases if c.timing],
                    "notes": [c.timing.note for c in result.cases if c.timing and c.timing.note],
                }
                for result in results
            ],
        }


_PHASES = ("library", "start", "import", "check", "bench", "waited", "total")


def _share(flags: list[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0


def _judge(session: Session, number: int, item: tuple[str, Path]) -> Result:
    problem_id, path = item
    text = f"{path.read_text()}\n# candidate {number}\n"
    return session.evaluate(Job(_load(problems_dir() / f"{problem_id}.yaml"), "throughput", number, text))


_load: Final = functools.cache(load_problem)
"""Reads a problem as a run does: once."""


class Peaks:
    """The most memory that this process and everything below it used while the block ran, sampled."""

    def __init__(self) -> None:
        self.host_mb = self.device_mb = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peaks:
        self._thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(5.0):
            self.host_mb = max(self.host_mb, _proportional_mb())
            self.device_mb = max(self.device_mb, _device_mb())


def _proportional_mb() -> float:
    """Proportional set size: pages shared by forks count once."""
    total = 0.0
    for process in [psutil.Process(os.getpid()), *psutil.Process(os.getpid()).children(recursive=True)]:
        try:
            total += process.memory_full_info().pss / 1e6
        except psutil.Error:
            continue
    return total


def _device_mb() -> float:
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return 0.0
    return sum(float(line) for line in answer.split()) * 1.048576


def words(row: dict[str, Any]) -> str:
    """One line."""
    phases = ", ".join(f"{name} {seconds:.2f}" for name, seconds in row["phase_s"].items() if seconds > 0.005)
    return (
        f"{row['gpus']} x {row['device']}, {row['jobs']} jobs each: {row['candidates']} candidates "
        f"({row['right']} right) in {row['wall_s']:.1f} s, {row['s_per_candidate']:.2f} s each; timing "
        f"{row['timed_share']:.0%} of the wall ({row['stopping_share']:.0%} stopping others), library times shared by "
        f"{row['library_shared']:.0%} of the cases; mean phases in s: {phases}; peak {row['host_mb']:.0f} MB host, "
        f"{row['device_mb']:.0f} MB device"
    )


if __name__ == "__main__":
    main()
