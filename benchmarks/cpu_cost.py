"""What judging costs on a CPU, beside the last release: shown by every run of the tests, so that a slow rise is seen.

    python -m benchmarks.cpu_cost [--runs N] [--json FILE] [--store]

Judges some of the kernels that ship with kgbench, as ``kgbench run --model examples --device cpu`` does, in a process
of its own, and takes the processor time of everything that it starts. Machines differ, and one machine differs from
minute to minute. So the time is also given in units: processor time of a fixed piece of work that is done over and over
meanwhile. The last release's units are stored in cpu_cost.json. Two runs of one machine were up to 15 % apart.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.script import Script, json_option, shown, smoke_option
from kgbench import __version__

STORED: Final = Path(__file__).with_suffix(".json")
PROBLEMS: Final = ("aten/silu", "aten/softmax", "cublas/cublasSaxpy_v2", "vllm/rms_norm")
"""What is judged, globs allowed: kernels of each source, which take Triton's interpreter most of the time."""
SEED: Final = "cpu_cost"
"""The same inputs each time."""
UNIT: Final = """
import numpy
a = numpy.arange(64, dtype=numpy.float32)
total = 0
for i in range(40_000):
    total += i * i % 7
    a = numpy.where(a > 3, a - 1, a + 2)
"""
"""A unit of work: small operations of Python and numpy, of which Triton's interpreter consists."""


@click.command(cls=Script)
@click.option("--problems", "patterns", multiple=True, default=PROBLEMS, metavar="GLOB", help="What is judged.")
@click.option("--runs", default=1, show_default=True, help="The median of so many runs.")
@click.option("--store", is_flag=True, help="Store the figure as this version's, which is done once for each release.")
@json_option
@smoke_option(patterns=("aten/t",))
def main(patterns: tuple[str, ...], runs: int, store: bool, json_path: Path | None) -> None:
    """Processor seconds of judging a candidate on a CPU, beside the last release's in the same units."""
    measured = [measure(patterns) for _ in shown(range(runs), runs, "runs")]
    found = sorted(measured, key=lambda each: float(each["units_per_candidate"]))[runs // 2]
    known = json.loads(STORED.read_text(encoding="utf-8"))
    print(words(found, known if tuple(patterns) == PROBLEMS else None))
    if store:
        kept = {name: found[name] for name in ("version", "units_per_candidate", "problems")}
        STORED.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    if json_path is not None:
        json_path.write_text(json.dumps(found))


def measure(patterns: Sequence[str]) -> dict[str, Any]:
    """Raises click.ClickException where a kernel does not pass."""
    units_s: list[float] = []
    over = threading.Event()
    beside = threading.Thread(target=_do_units, args=(units_s, over))
    beside.start()
    try:
        core_s, judged = _judge(patterns)
    finally:
        over.set()
        beside.join()
    each_s, unit_s = core_s / len(judged), statistics.fmean(units_s)
    return {
        "version": __version__,
        "problems": judged,
        "core_s_per_candidate": each_s,
        "unit_s": unit_s,
        "units_per_candidate": each_s / unit_s,
    }


def _do_units(units_s: list[float], over: threading.Event) -> None:
    while not units_s or not over.is_set():
        with subprocess.Popen([sys.executable, "-c", UNIT]) as running:
            units_s.append(_core_s(running))


def _judge(patterns: Sequence[str]) -> tuple[float, list[str]]:
    """Processor seconds, and the ids of what was judged."""
    chosen = [word for pattern in patterns for word in ("--problems", pattern)]
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        command = [sys.executable, "-m", "kgbench", "run", "--model", "examples", *chosen, "--device", "cpu"]
        command += ["--jobs", "1", "--seed", SEED, "--out", folder, "--json", "--fail"]
        with subprocess.Popen(command, stdout=out, stderr=err) as running:
            core_s = _core_s(running)
        for file in (out, err):
            file.seek(0)
        if running.returncode:
            raise click.ClickException(f"kgbench run ended with {running.returncode}: {err.read()[-2000:]}")
        return core_s, sorted(each["problem"] for each in json.load(out)["results"])


def _core_s(running: subprocess.Popen[bytes]) -> float:
    """Wait for a process: processor seconds of it and of everything that it started."""
    _, status, used = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def words(found: dict[str, Any], known: dict[str, Any] | None) -> str:
    """One line."""
    units = found["units_per_candidate"]
    text = f"judging on a CPU: {found['core_s_per_candidate']:.2f} core seconds a candidate, {units:.2f} units"
    if known is None or known["problems"] != found["problems"]:
        return f"{text}; of these problems nothing is stored"
    change = units / known["units_per_candidate"] - 1
    return f"{text}; version {known['version']}: {known['units_per_candidate']:.2f} units ({change:+.0%})"


if __name__ == "__main__":
    main()
