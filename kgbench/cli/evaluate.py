"""``kgbench evaluate``: judges the stored replies of a run; no model is asked."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from kgbench.cli.completion import complete_run
from kgbench.cli.evaluation_run import JudgedOn, Shown, carry_out
from kgbench.cli.options import (
    deadline_overrides,
    fail_option,
    fail_under_option,
    fast_at_option,
    json_option,
    judging_options,
    out_option,
    thresholds,
)
from kgbench.cli.resume import reopened
from kgbench.core.errors import UsageError, shown_path
from kgbench.evaluation.request import RunRequest, absolute, phases


@click.command(short_help="Judge the replies that kgbench generate kept.", context_settings={"max_content_width": 110})
@click.argument("run", metavar="RUN", shell_complete=complete_run)
@judging_options
@out_option
@fast_at_option
@json_option
@fail_option
@fail_under_option
def evaluate(
    run: str,
    problem_dirs: tuple[Path, ...],
    device: str,
    gpus: int | None,
    jobs: int | None,
    timeout_s: float | None,
    deadlines: tuple[str, ...],
    out: Path,
    require_sandbox: str | None,
    policy: str,
    fast_at: str,
    as_json: bool,
    fail: bool,
    fail_under: str,
) -> None:
    """Judge the replies of a run that `kgbench generate` made, here or on another machine. No model is asked.

    RUN is its folder, a prefix of its id, or last. Verdicts that exist already are kept.
    """
    from kgbench.models.providers.replay import Recorded
    from kgbench.scores.bounds import parse_bounds

    overrides = deadline_overrides(deadlines, timeout_s)
    request = RunRequest.here(None, device=device, require_sandbox=require_sandbox, policy=policy)
    shown = Shown(thresholds(fast_at), parse_bounds(fail_under), as_json=as_json, fail=fail)
    store, begun = reopened(run, out, request, None)
    folders, deadlines = absolute(problem_dirs) or begun.problem_dirs, phases(overrides) or begun.deadlines
    request = replace(begun, problem_dirs=folders, deadlines=deadlines)
    if not request.asking:
        store.release()
        raise UsageError(
            "KGB569", f"{shown_path(store.path)} has no replies to judge: its kernels came from {request.model}"
        )
    asker = Recorded(store.path, request.model)
    sys.exit(carry_out(request, out, None, store, JudgedOn(gpus or 0, jobs or 0), shown, asker=asker))
