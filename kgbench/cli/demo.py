"""``kgbench demo``: some of the kernels that ship with kgbench, judged in under a minute, and what to do next."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from kgbench.cli.evaluation_run import JudgedOn, Shown, carry_out
from kgbench.cli.options import device_option, new_run_option
from kgbench.core.errors import shown_path
from kgbench.core.paths import examples_dir
from kgbench.evaluation.request import RunRequest


@click.command(short_help="Judge some of the kernels that ship with kgbench.")
@device_option
@new_run_option
def demo(device: str, out: Path) -> None:
    """Judge some of the kernels that ship with kgbench, print the table, and say what to do next.

    A few of each source, those that are judged soon without a GPU: under a minute on two cores. It is a run like
    others: kgbench run --model examples judges all that ship.
    """
    from kgbench.models.providers.examples import DEMO
    from kgbench.scores.rows import THRESHOLDS

    request = RunRequest.here("examples", problems=DEMO, device=device)
    shown = Shown(THRESHOLDS, (), as_json=False, fail=False)
    code = carry_out(request, out, None, None, JudgedOn(0, 0), shown)
    for line in next_lines(out):
        click.echo(line)
    sys.exit(code)


def next_lines(out: Path) -> Iterator[str]:
    """Three commands to continue with, as typed in this shell."""
    from kgbench.models.providers.examples import DEMO

    place = [] if out == Path("runs") else ["--out", str(out)]
    commands = (
        (("show", f"last/{DEMO[0]}", *place), "everything about one verdict"),
        (("check", shown_path(examples_dir() / f"{DEMO[0]}.py")), "judge one file; yours may lie anywhere"),
        (("run", "--model", "claude", "--source", "cublas", "--dry-run"), "what it would cost to ask a model"),
    )
    yield ""
    yield f"{len(DEMO)} of the kernels that ship were judged; kgbench run --model examples judges all. Next:"
    for words, meaning in commands:
        yield f"  {shlex.join([*_program(), *words])}"
        yield f"      {meaning}"


def _program() -> list[str]:
    """How to call kgbench: by its name where the shell finds it, else from the environment that it runs in."""
    if shutil.which("kgbench"):
        return ["kgbench"]
    script = Path(sys.executable).with_name("kgbench")
    return [shown_path(script)] if script.is_file() else [shown_path(sys.executable), "-m", "kgbench"]
