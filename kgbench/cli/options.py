"""Options of several commands, their values, and whether kernels can run here."""

from __future__ import annotations

import dataclasses
import importlib.util
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kgbench.cli.completion import complete_gpu, complete_problem, complete_source
from kgbench.core.errors import MachineError, UsageError
from kgbench.core.kinds import PolicyMode
from kgbench.harness.machine.settings import SANDBOX_LEVELS

if TYPE_CHECKING:
    from kgbench.core.kinds import DeviceKind
    from kgbench.harness.machine.settings import Deadlines

PHASES: Final = ("import", "compile", "extension", "case", "window", "whole")

ALL_GPUS: Final = 1 << 10
"""Number of GPUs that ``--gpus all`` stands for: more than a machine has."""


class GpuCount(click.IntRange):
    """A number of GPUs from 1, or ``all``."""

    name = "gpus"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if value == "all":
            return ALL_GPUS
        if str(value).isdigit() and int(str(value)) > 0:
            return int(str(value))
        self.fail(f"{value!r} is neither a number from 1 nor all; GPUs by number are --device cuda:0,2", param, ctx)


source_option = click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_source,
    help="aten, vllm, cublas, a comma list, or all. Repeatable.  [default: all]",
)
problems_option = click.option(
    "--problems",
    "globs",
    multiple=True,
    metavar="GLOB",
    shell_complete=complete_problem,
    help="Only problems whose id matches, for example 'cublas/*gemm*'. Repeatable.",
)
gpus_option = click.option(
    "--gpus",
    type=GpuCount(),
    metavar="N|all",
    help="How many GPUs to use; those that another kgbench uses are left out.  [default: all that --device numbers, "
    "or 1]",
)
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Candidates that are prepared at once on each device; one at a time is timed.  [default: as many as cores "
    "and memory allow]",
)
new_run_option = click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    metavar="DIR",
    help="Where the run's folder is made.",
)
require_sandbox_option = click.option(
    "--require-sandbox",
    type=click.Choice(SANDBOX_LEVELS),
    metavar="LEVEL",
    help="Exit with 3 unless kernels can be sandboxed at this level: none, process, isolated or full "
    "(docs/sandbox.md).",
)
fail_option = click.option("--fail", is_flag=True, help="Exit with 1 when any problem is not correct.")
problem_dir_option = click.option(
    "--problem-dir",
    "problem_dirs",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A folder of your own problems, <source>/<name>.yaml. Repeatable.",
)
device_option = click.option(
    "--device",
    default="auto",
    show_default=True,
    metavar="NAME",
    shell_complete=lambda ctx, param, incomplete: [n for n in ("auto", "cpu", "cuda") if n.startswith(incomplete)],
    help="auto (a GPU where there is one), cpu, cuda, or GPUs by number: cuda:0,2.",
)
policy_option = click.option(
    "--policy",
    type=click.Choice([str(mode) for mode in PolicyMode]),
    default=str(PolicyMode.STRICT),
    show_default=True,
    help="What to do with a kernel that leaves its work to PyTorch or a library (docs/policy.md): strict "
    "rejects it, report only reports it, off does not check.",
)
timeout_option = click.option(
    "--timeout",
    "timeout_s",
    type=float,
    metavar="SECONDS",
    help="Time limit for one candidate as a whole; short for --deadline whole=SECONDS.  [default: 300]",
)
deadline_option = click.option(
    "--deadline",
    "deadlines",
    multiple=True,
    metavar="PHASE=SECONDS",
    help="Time limit for one phase: import (60), compile (120), extension (300, builds C++), case (10), window "
    "(30), whole (300). "
    "The defaults are three times as long on a CPU. Repeatable.",
)

_JUDGING_OPTIONS: Final = (
    problem_dir_option, device_option, gpus_option, jobs_option, timeout_option, deadline_option,
    require_sandbox_option, policy_option,
)  # fmt: skip


def judging_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator for commands that judge candidates: where they judge, how long, and under which policy."""
    for option in reversed(_JUDGING_OPTIONS):
        command = option(command)
    return command


PROMPT_OPTIONS: Final = (
    click.option("--language", type=click.Choice(("triton", "cuda", "torch-cpp", "any")), default="triton",
                 show_default=True, help="What the kernel is to be written in."),
    click.option("--shots", type=click.IntRange(0, 8), default=0, show_default=True, metavar="N",
                 help="Examples in the prompt, kernels for other problems."),
    click.option("--bench-shapes/--no-bench-shapes", default=True, show_default=True,
                 help="Whether the prompt names the shapes that are timed."),
    click.option("--target-gpu", metavar="NAME", default="", shell_complete=complete_gpu,
                 help="The GPU that the prompt describes, such as H200.  [default: the one here]"),
)  # fmt: skip
"""The options that change a prompt; docs/prompts.md."""

fast_at_option = click.option(
    "--fast-at",
    metavar="P,P,…",
    default="0.5,0.8,1,1.2,1.5,2",
    show_default=True,
    help="The p for which fast_p is shown: correct and more than p times as fast as the library.",
)
fail_under_option = click.option(
    "--fail-under",
    metavar="BOUNDS",
    default="",
    help="Exit with 1 when a share is lower: 'fast_0=1.0,cublas:fast_1=0.5' bounds fast_0 of all problems and fast_1 "
    "of cublas. fast_0 counts correct problems of every kind, the others those of kind compute.",
)
out_option = click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    metavar="DIR",
    help="The folder of runs.",
)
against_option = click.option(
    "--against",
    type=click.Choice(("eager", "compile")),
    help="With --suite kernelbench:PATH: time candidates beside the problem's own module, or beside "
    "torch.compile of it.  [default: eager]",
)
trace_option = click.option(
    "--trace",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help="Write a timeline of what every process did, as a Chrome trace that https://ui.perfetto.dev opens; compressed "
    "where the name ends in .gz.",
)
html_option = click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help="Write a page that opens offline, in place of the table.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout in place of the table.")


def deadline_overrides(deadlines: Sequence[str], timeout_s: float | None) -> dict[str, float]:
    """Seconds by phase that the command line gives. Raises UsageError."""
    overrides = {}
    for text in deadlines:
        phase, _, seconds_text = text.partition("=")
        try:
            seconds = float(seconds_text)
        except ValueError:
            seconds = 0.0
        if phase not in PHASES or not 0 < seconds < float("inf"):
            raise UsageError(
                "KGB103",
                f"--deadline {text}: expected PHASE=SECONDS with a phase of {', '.join(PHASES)}, "
                "for example --deadline compile=60",
            )
        overrides[phase] = seconds
    if timeout_s is not None:
        if "whole" in overrides:
            raise UsageError("KGB104", "--timeout is --deadline whole=SECONDS: give one of the two")
        if not 0 < timeout_s < float("inf"):
            raise UsageError("KGB105", f"--timeout {timeout_s:g}: expected a number of seconds above 0")
        overrides["whole"] = timeout_s
    return overrides


def check_machine() -> None:
    """Raises MachineError where no kernel can run, before anything is written."""
    if not sys.platform.startswith("linux"):
        raise MachineError(
            "KGB301",
            f"kernels run on Linux only, and this is {platform.system()}. Here list, show, validate and report work; "
            "for run use a Linux machine, WSL 2 or a Linux container",
        )
    if importlib.util.find_spec("torch") is None:
        raise MachineError(
            "KGB302",
            "torch is not installed, and every kernel here is judged with it.\n"
            "  without an NVIDIA GPU:  the CPU build, see https://pytorch.org/get-started/locally/ (Linux, pip, CPU)\n"
            "  with an NVIDIA GPU:     pip install 'kgbench[torch]'\n"
            "  from a checkout:        make demo",
        )


def deadlines_on(device: str, overrides: dict[str, float]) -> Deadlines:
    """The device's defaults and what the command line says. Raises MachineError when there is no such device."""
    from kgbench.harness.machine.devices import find_devices

    return deadlines_of(find_devices(device)[0].kind, overrides)


def deadlines_of(kind: DeviceKind, overrides: dict[str, float]) -> Deadlines:
    """The defaults of a kind of device and what the command line says."""
    from kgbench.harness.machine.settings import Deadlines

    seconds = {f"{phase}_s": value for phase, value in overrides.items()}
    return dataclasses.replace(Deadlines.for_device(kind), **seconds)


def one_report(asked: Mapping[str, object]) -> str:
    """The given one of several options that each ask for another report. Raises UsageError where two are given."""
    named = [option for option, given in asked.items() if given]
    if len(named) > 1:
        raise UsageError("KGB190", f"{named[0]} and {named[1]} are two reports; ask for one at a time")
    return named[0] if named else ""


def thresholds(text: str) -> tuple[float, ...]:
    """The values of ``--fast-at``. Raises UsageError."""
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not values or not all(0 < value < 1000 for value in values):
        raise UsageError(
            "KGB106", f"--fast-at {text}: expected positive numbers between commas, for example --fast-at 0.5,1,2"
        )
    return values
