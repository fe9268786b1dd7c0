"""The null test: every problem's library against itself, several runs; what is left is the harness's own noise.

    python -m benchmarks.null_test [--runs 3] [--device auto] [--problems GLOB] [--json FILE]

Prints, per bench case, the library's time and the ratio of each run with its interval, then how many ratios lie within
1 % (work over 20 µs) and 3 % (below), and the geometric mean over all.
"""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import click

from kgbench.harness.session import Job, Session, Settings
from kgbench.paths import problems_dir


@click.command()
@click.option("--runs", default=3, show_default=True)
@click.option("--device", default="auto", show_default=True)
@click.option("--problems", "pattern", default="*/*", show_default=True, help="Glob over <source>/<name>.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Also write everything measured here.")
def main(runs: int, device: str, pattern: str, json_path: Path | None) -> None:
    """Measure the library against itself."""
    rows: list[dict[str, Any]] = []
    with Session(Settings(device=device, jobs=1)) as session:
        print(json.dumps(session.facts))
        for run in range(runs):
            for path in sorted(problems_dir().glob(f"{pattern}.yaml")):
                rows += measure(session, path, run)
    report(rows)
    if json_path is not None:
        json_path.write_text(json.dumps({"facts": session.facts, "rows": rows}))


def measure(session: Session, path: Path, run: int) -> list[dict[str, Any]]:
    """One problem's bench cases in one run."""
    problem_id = f"{path.parent.name}/{path.stem}"
    result = session.evaluate(Job(str(path), problem_id, "baseline", sample=run, trusted="baseline"))
    if not any(case.timing for case in result.cases):
        print(f"{problem_id}: {result.outcome} {result.reason.splitlines()[0] if result.reason else ''}", flush=True)
    rows = []
    for case in result.cases:
        if (timing := case.timing) is None:
            continue
        rows.append(
            {
                "problem": problem_id,
                "case": f"{case.overload} {case.id}".strip(),
                "run": run,
                "library_us": timing.library_us,
                "ratio": timing.ratio,
                "low": timing.low,
                "high": timing.high,
                "queued": timing.queued,
                "scored_by": timing.scored_by,
                "pairs": sum(window.kind == "window" for window in timing.windows) // 2,
                "calls": max(window.calls for window in timing.windows),
                "seconds": result.seconds,
                "memory_mb": result.memory_mb,
                "windows": [[w.side[0], w.kind, w.calls, w.done_us, w.secured_us] for w in timing.windows],
            }
        )
    return rows


def report(rows: list[dict[str, Any]]) -> None:
    """Print the table and the summary."""
    keys = sorted({(row["problem"], row["case"]) for row in rows})
    for key in keys:
        mine = [row for row in rows if (row["problem"], row["case"]) == key]
        ratios = "  ".join(f"{row['ratio']:.4f} [{row['low']:.3f}, {row['high']:.3f}]" for row in mine)
        flags = f"{mine[0]['calls']}x{mine[0]['pairs']}{'' if mine[0]['queued'] else ' direct'} {mine[0]['scored_by']}"
        print(f"{key[0]:34s} {key[1]:24s} {mine[0]['library_us']:10.2f} us  {ratios}  {flags}")
    for name, limit, chosen in (
        ("over 20 us, within 1 %", 0.01, [row for row in rows if row["library_us"] > 20]),
        ("20 us and below, within 3 %", 0.03, [row for row in rows if row["library_us"] <= 20]),
    ):
        good = sum(abs(row["ratio"] - 1) <= limit for row in chosen)
        print(f"{name}: {good} of {len(chosen)}")
    if rows:
        print(f"geometric mean: {math.exp(statistics.fmean(math.log(row['ratio']) for row in rows)):.5f}")
        covered = sum(row["low"] <= 1 <= row["high"] for row in rows)
        print(f"intervals that hold 1: {covered} of {len(rows)}")


if __name__ == "__main__":
    main()
