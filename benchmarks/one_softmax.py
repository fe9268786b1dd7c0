"""How long does one kernel take, from nothing to a verdict: a softmax, at least 5 checks and 100 timed calls.

    python -m benchmarks.one_softmax [--shape 4096x4096] [--device auto] [--json FILE]

Everything is counted: starting processes and the device, compiling the kernel, drawing inputs, judging outputs and
timing it beside the library. A second evaluation in the same session shows what starting took.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import yaml

from kgbench.harness.session import Job, Session, Settings
from kgbench.paths import examples_dir, problems_dir

CHECKS = 5


@click.command()
@click.option("--shape", default="4096x4096", show_default=True)
@click.option("--device", default="auto", show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Also write everything measured here.")
def main(shape: str, device: str, json_path: Path | None) -> None:
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
    if json_path is not None:
        json_path.write_text(json.dumps(found, indent=1))


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
