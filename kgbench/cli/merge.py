"""``kgbench merge``: makes one run of the parts that ``kgbench run --shard`` judged."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from kgbench.cli.completion import complete_run
from kgbench.cli.evaluation_run import Shown, closed
from kgbench.cli.options import (
    fail_option,
    fail_under_option,
    fast_at_option,
    json_option,
    new_run_option,
    thresholds,
)
from kgbench.core.errors import numbered, shown_path


@click.command(short_help="Make one run of parts that were judged with --shard.")
@click.argument("runs", metavar="RUN RUN…", nargs=-1, required=True, shell_complete=complete_run)
@new_run_option
@fast_at_option
@json_option
@fail_option
@fail_under_option
def merge(runs: Sequence[str], out: Path, fast_at: str, as_json: bool, fail: bool, fail_under: str) -> None:
    """Make one run of parts that `kgbench run --shard` judged, and print its table. The parts are not changed.

    Runs that differ in problems, model, policy or device are refused, and so are two that judged the same candidate.
    `kgbench run --resume` of the new run judges what is missing.
    """
    from kgbench.evaluation.coordinator import Ending, new_run_id
    from kgbench.evaluation.merge import merge as merged
    from kgbench.scores.bounds import parse_bounds
    from kgbench.store.find import find_run
    from kgbench.store.reader import read_run

    shown = Shown(thresholds(fast_at), parse_bounds(fail_under), as_json=as_json, fail=fail)
    parts = [read_run(find_run(run, out), with_windows=True) for run in runs]
    now = datetime.now(UTC)
    found = merged(parts, out, new_run_id(now, secrets.token_hex(3)), ("kgbench", *sys.argv[1:]))
    for each in found.differences:
        click.echo(f"kgbench: {numbered('KGB625', f'the parts differ in {each}')}", err=True)
    if found.missing:
        words = f"{found.missing}; what is missing: kgbench run --resume {shown_path(found.path)}"
        click.echo(f"kgbench: {numbered('KGB641', words)}", err=True)
    sys.exit(closed(Ending(found.path), shown))
