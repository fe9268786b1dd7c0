"""Does anything grow: a thousand checks through one Evaluator, 100 in flight.

    python -m benchmarks.many_checks [--checks 1000] [--in-flight 100] [--device auto] [--problem aten/t] [--json FILE]

Prints, after a tenth of the checks and after all of them, checks per second and the processes, open descriptors and
memory of this process and of everything below it.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import psutil

from benchmarks.script import Script, device_option, json_option, shown, smoke_option
from kgbench import Evaluator
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import examples_dir

SETTLED_S = 2.0
"""After this long without work, what is still there stays."""


@click.command(cls=Script)
@click.option("--checks", default=1000, show_default=True, type=click.IntRange(min=2), help="How many in all.")
@click.option("--in-flight", default=100, show_default=True, help="How many at once.")
@device_option
@click.option("--problem", default="aten/t", show_default=True, help="Whose example kernel is checked.")
@click.option("--timing/--no-timing", default=False, show_default=True, help="Also time each kernel.")
@json_option
@smoke_option(checks=3, in_flight=1, device="cpu")
def main(checks: int, in_flight: int, device: str, problem: str, timing: bool, json_path: Path | None) -> None:
    """Checks per second, and what many checks leave behind; prints a line of JSON per stage.

    Ends with 1 where a check did not pass.
    """
    text = (examples_dir() / f"{problem}.py").read_text()
    rows = []
    with Evaluator(device, timing=timing) as evaluator, ThreadPoolExecutor(in_flight) as pool:
        done = 0
        for target in (max(1, checks // 10), checks):
            begun = time.monotonic()
            texts = (f"{text}\n# {number}\n" for number in range(done, target))
            checked = pool.map(lambda each: evaluator.check(problem, each), texts)
            wrong = [
                result.reason
                for result in shown(checked, target - done, "checks")
                if result.outcome is not Outcome.PASSED
            ]
            seconds = time.monotonic() - begun
            time.sleep(SETTLED_S)
            rows.append(_state(target, (target - done) / seconds, wrong))
            print(json.dumps(rows[-1]), flush=True)
            done = target
    time.sleep(SETTLED_S)
    rows.append({"after closing": [process.name() for process in psutil.Process().children(recursive=True)]})
    print(json.dumps(rows[-1]))
    if json_path is not None:
        json_path.write_text(json.dumps(rows, indent=1))
    sys.exit(any(row.get("wrong") for row in rows))


def _state(checks: int, per_second: float, wrong: list[str]) -> dict[str, Any]:
    own = psutil.Process()
    below = own.children(recursive=True)
    sizes = sorted((round(process.memory_info().rss / 1e6) for process in below), reverse=True)
    return {
        "checks": checks,
        "checks_per_s": round(per_second, 2),
        "wrong": len(wrong),
        "first_wrong": wrong[:1],
        "own_mb": round(own.memory_info().rss / 1e6, 1),
        "own_descriptors": own.num_fds(),
        "own_threads": own.num_threads(),
        "processes_below": len(below),
        "largest_mb": sizes[:4],
        "descriptors_below": sum(process.num_fds() for process in below),
    }


if __name__ == "__main__":
    main()
