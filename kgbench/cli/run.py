"""``kgbench run``: the main job, from a command line to a table."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kgbench.cli.asking import (
    RARELY_GIVEN,
    ModelOption,
    asking_options,
    asking_words,
    resumed_words,
)
from kgbench.cli.cluster_options import Spread, cluster_options
from kgbench.cli.completion import complete_model, complete_run
from kgbench.cli.evaluation_run import JudgedOn, Shown, carry_out
from kgbench.cli.options import (
    against_option,
    deadline_overrides,
    fail_option,
    fail_under_option,
    fast_at_option,
    json_option,
    judging_options,
    new_run_option,
    problems_option,
    source_option,
    thresholds,
    trace_option,
)
from kgbench.cli.remote import check_server, server_option
from kgbench.cli.resume import reopened
from kgbench.core.errors import UsageError
from kgbench.evaluation.request import RunRequest

if TYPE_CHECKING:
    from kgbench.store.writer import RunStore

EPILOG: Final = """
\b
Examples:
  the kernels that ship with kgbench, on every problem or on two sources
    kgbench run --model examples
    kgbench run --model examples --source cublas,vllm
  your kernels: a folder with <source>/<name>.py in it, or one file
    kgbench run --model dir:my_kernels
    kgbench run --model my_kernels/aten/softmax.py
    kgbench run --model fast.py --problems aten/softmax
  the library against itself: how much noise has the clock here?
    kgbench run --model baseline --problems 'cublas/*gemm*'
  a model: what would it cost, and then all of it
    kgbench run --model claude --source cublas --dry-run
    kgbench run --model claude --source cublas --budget-usd 5
    kgbench run --model openai-compatible:http://localhost:8000/v1#my-model --samples 4 --rounds 3
    kgbench run --model 'exec:my_agent --quiet' --problems aten/softmax
  on a machine that runs kgbench serve; KGBENCH_TOKEN has the token
    kgbench run --server https://judge.example:8650 --model dir:my_kernels

Every result is kept under --out as soon as it is known; `kgbench report RUN` prints the table of a run again.

Exit codes: 0 done, 1 a problem was not correct and --fail was given (or kgbench itself failed on a candidate), 2 wrong
command line, 3 this machine cannot, 130 interrupted.
"""


@click.command(
    epilog=EPILOG,
    short_help="Judge kernels and time them beside the library.",
    context_settings={"max_content_width": 110},
)
@click.option(
    "--model",
    metavar="PROVIDER",
    shell_complete=complete_model,
    cls=ModelOption,
    help="Who answers.",
)
@source_option
@problems_option
@click.option(
    "--suite",
    metavar="NAME",
    help="Judge other calls than the problems' own, for correctness only: opinfo (every sample input of the installed "
    "PyTorch), trace:FILE (the calls of a trace file), or smoke (one problem of each source, in seconds). "
    "torchbench:FILE judges and times the calls of BackendBench's data set, kernelbench:PATH candidates for the "
    "problems of a checkout of KernelBench.",
)
@against_option
@judging_options
@new_run_option
@click.option(
    "--resume",
    metavar="RUN",
    shell_complete=complete_run,
    help="Finish a run, given by its folder, a prefix of its id or last: candidates without a verdict, "
    "harness errors, problems whose file has changed.",
)
@click.option(
    "--seed",
    metavar="TEXT",
    help="Draw the same inputs as an earlier run. A candidate that knows the seed can know its inputs.  "
    "[default: secret]",
)
@trace_option
@fast_at_option
@json_option
@fail_option
@fail_under_option
@server_option
@asking_options
@cluster_options
def run(
    model: str | None,
    sources: tuple[str, ...],
    globs: tuple[str, ...],
    suite: str | None,
    against: str | None,
    problem_dirs: tuple[Path, ...],
    device: str,
    gpus: int | None,
    jobs: int | None,
    timeout_s: float | None,
    deadlines: tuple[str, ...],
    out: Path,
    resume: str | None,
    seed: str | None,
    require_sandbox: str | None,
    policy: str,
    trace: Path | None,
    fast_at: str,
    as_json: bool,
    fail: bool,
    fail_under: str,
    server: str,
    spread: Spread,
    **asking: Any,
) -> None:
    """Evaluate kernels: is each one correct, and how fast is it beside the library?

    A model is asked for a kernel for each problem. Each kernel is judged as soon as it is there, in a process that
    cannot reach the judging one, and is timed alternately with the library. Progress goes to stderr, the table (or
    JSON) to stdout. `kgbench generate --help` has the options about asking, such as --thinking.
    """
    from kgbench.problem.suites import check_name
    from kgbench.scores.bounds import parse_bounds

    spread.check(trace, server, fail=fail, fail_under=fail_under)
    shown = Shown(thresholds(fast_at), parse_bounds(fail_under), as_json=as_json, fail=fail)
    request = RunRequest.here(
        model, sources, globs, problem_dirs, suite=None if suite is None else check_name(suite),
        against=against or "", deadlines=deadline_overrides(deadlines, timeout_s), device=device,
        require_sandbox=require_sandbox, policy=policy, shard=spread.shard, asking=asking_words(asking),
    )  # fmt: skip
    check_server(server, request, trace)
    store, request = _begun(request, resume, out, seed)
    on = JudgedOn(gpus or 0, jobs or 0, trace, server, spread.ray, spread.mixed_devices)
    sys.exit(carry_out(request, out, seed, store, on, shown, yes=asking["yes"], dry_run=asking["dry_run"]))


for option in run.params:
    if isinstance(option, click.Option) and option.name in RARELY_GIVEN:
        option.hidden = True


def _begun(request: RunRequest, resume: str | None, out: Path, seed: str | None) -> tuple[RunStore | None, RunRequest]:
    """The run to continue and what it was started with; without one the request as it is. Raises UsageError."""
    if resume is not None:
        store, begun = reopened(resume, out, request, seed)
        return store, replace(begun, asking=resumed_words(begun.asking, request.asking))
    if not request.model:
        raise UsageError("KGB501", _which_model())
    return None, request


def _which_model() -> str:
    from kgbench.models.provider import provider_summaries

    known = "\n".join(f"  {summary}" for summary in provider_summaries().values())
    return f"--model is missing: whose kernels? The choices:\n{known}\nTry: kgbench run --model examples"
