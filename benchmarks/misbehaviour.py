"""Runs the hostile and broken kernels of tests/candidates/adversaries and prints what each one got.

python -m benchmarks.misbehaviour [--device auto] [--json FILE]
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from kgbench.harness.session import Deadlines, Job, Session, Settings
from kgbench.paths import answer_dirs, problems_dir
from tests.harness.candidates import adversaries

SHORT = Deadlines(import_s=10.0, compile_s=5.0, case_s=3.0, window_s=5.0, whole_s=60.0)


@click.command()
@click.option("--device", default="auto", show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path))
def main(device: str, json_path: Path | None) -> None:
    """Judge every adversary; the last column says whether it got the outcome that its header names."""
    rows = []
    settings = Settings(device=device, deadlines=SHORT, hidden=answer_dirs())
    with Session(settings) as session:
        for known in adversaries():
            if known.device not in ("any", session.facts["kind"]):
                print(f"{known.id:45s} not run: needs {known.device}")
                continue
            begun = time.monotonic()
            path = problems_dir() / f"{known.problem_id}.yaml"
            result = session.evaluate(Job(str(path), known.problem_id, "adversary", source=known.path.read_text()))
            seconds = time.monotonic() - begun
            right = result.outcome in known.outcomes
            first = result.reason.splitlines()[0][:90] if result.reason else ""
            print(
                f"{known.id:45s} {result.outcome:14s} {seconds:5.1f} s {'ok ' if right else 'NOT '} {first}", flush=True
            )
            rows.append({"candidate": known.id, "outcome": result.outcome, "reason": result.reason, "right": right})
    print(f"{sum(row['right'] for row in rows)} of {len(rows)} got the outcome they name")
    if json_path is not None:
        json_path.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
