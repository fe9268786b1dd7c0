"""Runs the hostile and broken kernels of tests/candidates side by side and prints what each one got.

python -m benchmarks.misbehaviour [--device auto] [--jobs N] [--mutants] [--only GLOB] [--json FILE]
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import click

from benchmarks.script import Script, device_option, json_option, shown, smoke_option
from kgbench.core.paths import answer_dirs, problems_dir
from kgbench.core.text import plain
from kgbench.harness.session.session import Deadlines, Job, Session, Settings
from kgbench.problem.registry import load_problem
from tests.harness.candidates import KnownCandidate, adversaries, mutants

SHORT = Deadlines(import_s=10.0, compile_s=5.0, case_s=3.0, window_s=5.0, whole_s=60.0)

LIMITS = {"memory_bytes": 4 << 30, "output_bytes": 16 << 20, "processes": 64}


@click.command(cls=Script)
@device_option
@click.option("--jobs", default=0, help="How many at once.  [default: what cores and memory allow]")
@click.option("--mutants", "with_mutants", is_flag=True, help="Also the wrong kernels of tests/candidates/mutants.")
@click.option("--only", default="*", show_default=True, metavar="GLOB", help="Kernels by id, as in 'adversaries/*'.")
@json_option
@smoke_option(only="adversaries/no_e*", jobs=1, device="cpu")
def main(device: str, jobs: int, with_mutants: bool, only: str, json_path: Path | None) -> None:
    """Judge every adversary; the column behind the seconds says whether it got the outcome that its header names.

    Ends with 1 where one did not.
    """
    settings = Settings(device, jobs=jobs, deadlines=SHORT, hidden=answer_dirs(), limits=LIMITS, say=print)
    known = [each for each in (*adversaries(), *(mutants() if with_mutants else ())) if fnmatch(each.id, only)]
    if not known:
        raise click.BadParameter(f"no kernel's id matches {only!r}", param_hint="--only")
    with Session(settings) as session, ThreadPoolExecutor(session.jobs) as pool:
        fitting = [each for each in known if each.device in ("any", session.facts["kind"])]
        for each in known:
            if each not in fitting:
                print(f"{each.id:45s} not run: needs {each.device}")
        judged = pool.map(lambda each: judge(session, each), fitting)
        rows = list(shown(judged, len(fitting), "kernels"))
    print(f"{sum(row['right'] for row in rows)} of {len(rows)} got the outcome they name")
    if json_path is not None:
        json_path.write_text(json.dumps(rows))
    sys.exit(not all(row["right"] for row in rows))


def judge(session: Session, known: KnownCandidate) -> dict[str, Any]:
    """One kernel; prints its line."""
    begun = time.monotonic()
    path = problems_dir() / f"{known.problem_id}.yaml"
    result = session.evaluate(Job(load_problem(path), known.id, source=known.text))
    seconds = time.monotonic() - begun
    right = result.outcome in known.outcomes
    first = plain(result.reason.splitlines()[0][:90]) if result.reason else ""
    print(f"{known.id:45s} {result.outcome:14s} {seconds:5.1f} s {'ok ' if right else 'NOT '} {first}", flush=True)
    return {"candidate": known.id, "outcome": result.outcome, "reason": result.reason, "right": right}


if __name__ == "__main__":
    main()
