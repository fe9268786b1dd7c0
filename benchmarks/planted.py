"""Planted kernels that are really 3 % faster than their library: how often are they called faster at p = 1?

    python -m benchmarks.planted [--percent 3] [--runs 1] [--problems 20] [--device auto] [--json FILE]

Twenty problems, four operators by five lengths, 60 to 200 µs on an H200. Candidate and library run the same operator of
PyTorch; the library's call is longer by so many percent than what the problem asks for and the candidate does. All are
bound by bandwidth, so that time follows length; with ``--percent 0`` it is one more null test. Prints each ratio with
its interval, and the share that was called faster.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.script import Script, device_option, json_option, shown, smoke_option
from kgbench.core import user_modules
from kgbench.harness.session.session import Job, Session, Settings
from kgbench.problem.registry import load_problem
from kgbench.scores.speedups import speedup

OPERATORS: Final = {
    "copy": ("x[:n]", "out.copy_(x)", "exact"),
    "negative": ("torch.neg(x[:n])", "torch.neg(x, out=out)", "exact"),
    "doubled": ("x[:n] * 2", "torch.mul(x, 2.0, out=out)", "exact"),
    "clamped": ("torch.clamp(x[:n], -1, 1)", "torch.clamp(x, -1.0, 1.0, out=out)", "exact"),
}
"""By name: reference, call, rule."""
MEGA_ELEMENTS: Final = {"cuda": (32, 40, 48, 64, 80), "cpu": (1, 2, 3, 4, 5)}

PROBLEM: Final = """\
summary: {name} of the first n elements
kind: compute
category: planted
entry: "{name}(x: Tensor, out: Tensor, n: int) -> None"
dtypes: {{required: [float32]}}
defaults: {{n: 1, total: 1}}
arguments:
  x: {{access: read, shape: "(total,)", draw: "normal()"}}
  out: {{access: readwrite, shape: "(total,)", draw: "normal()"}}
  n: {{value: "n"}}
cases:
  check: [{{total: 7, n: 5}}, {{total: 1030, n: 1000}}]
  bench:
    cpu: &sizes [{{total: {total}, n: {n}}}]
    gpu: *sizes
baseline: {{cuda: "planted_library:{name}", cpu: "planted_library:{name}"}}
reference: |
  def reference(x, out, n):
      return {{"out": torch.cat([{reference}, out[n:]])}}
tolerance: {{rule: {rule}}}
cost: {{flops: "n", bytes: "2 * itemsize * n"}}
doc: |
  The first n elements of out are made from those of x; the others stay.
"""
LIBRARY: Final = """

def {name}(x, out, n):
    {call}
"""
CANDIDATE: Final = """import torch

def {name}(x, out, n):
    x, out = x[:n], out[:n]
    {call}
"""


@click.command(cls=Script)
@click.option("--percent", default=3.0, show_default=True, help="By how much the candidate does less.")
@click.option("--runs", default=1, show_default=True, help="How often each problem is run.")
@click.option("--problems", default=20, show_default=True, help="Only the first so many.")
@device_option
@json_option
@smoke_option(problems=1, device="cpu")
def main(percent: float, runs: int, problems: int, device: str, json_path: Path | None) -> None:
    """How often kernels that do --percent less work are called faster; a row per problem and run.

    Ends with 1 where one has no verdict on its speed.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # a worker with a uid of its own reads the library's module
        user_modules.offer([folder])
        with Session(Settings(device=device, jobs=1)) as session:
            planted = plant(Path(folder), percent, MEGA_ELEMENTS[session.facts["kind"]])
            work = [(path, text, run) for run in range(runs) for path, text in planted[:problems]]
            measured = (measure(session, *each) for each in work)
            rows = list(shown(measured, len(work), "kernels"))
    timed = [row for row in rows if row["low"] is not None]
    faster = sum(row["low"] > 1 for row in timed)
    by_point = sum(row["ratio"] > 1 for row in timed)
    print(f"{percent:g} % less work: {faster} of {len(timed)} called faster ({by_point} by the point estimate)")
    if json_path is not None:
        json_path.write_text(json.dumps({"facts": session.facts, "percent": percent, "rows": rows}))
    sys.exit(len(timed) < len(rows))


def plant(folder: Path, percent: float, lengths: tuple[int, ...]) -> list[tuple[Path, str]]:
    """Problem files with their candidates' texts; the library's module lies beside them."""
    (folder / "planted").mkdir()
    library, planted = "import torch\n", []
    for operator, (reference, call, rule) in OPERATORS.items():
        for length in lengths:
            name = f"{operator}_{length}m"
            total = length << 20
            n = round(total / (1 + percent / 100)) // 4096 * 4096
            path = folder / "planted" / f"{name}.yaml"
            path.write_text(PROBLEM.format(name=name, total=total, n=n, reference=reference, rule=rule))
            library += LIBRARY.format(name=name, call=call)
            planted.append((path, CANDIDATE.format(name=name, call=call)))
    (folder / "planted_library.py").write_text(library)
    return planted


def measure(session: Session, path: Path, text: str, run: int) -> dict[str, Any]:
    """One planted kernel in one run."""
    job = Job(load_problem(path), "planted", sample=run, source=text)
    result = session.evaluate(job)
    found = speedup(result)
    row = {"problem": path.stem, "run": run, "outcome": str(result.outcome), "ratio": None, "low": None, "high": None}
    if found is None:
        print(f"{path.stem:16s} {result.outcome} {result.reason[:200]} {result.library}", flush=True)
        return row
    library_us = [case.timing.library_us for case in result.cases if case.timing]
    print(f"{path.stem:16s} {library_us[0]:8.1f} us  {found.point:.4f} [{found.low:.4f}, {found.high:.4f}]", flush=True)
    return {**row, "library_us": library_us[0], "ratio": found.point, "low": found.low, "high": found.high}


if __name__ == "__main__":
    main()
