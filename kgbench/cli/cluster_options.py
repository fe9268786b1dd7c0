"""Options of ``kgbench run`` that spread a run over several machines."""

from __future__ import annotations

from typing import Final

import click

from kgbench.core.errors import UsageError

shard_option: Final = click.option(
    "--shard",
    metavar="N/COUNT",
    default="",
    help="Judge one of COUNT parts of the run, for example 3/8; `kgbench merge` makes one run of them "
    "(docs/clusters.md).",
)


def check_shard(shard: str, *, fail: bool, fail_under: str) -> None:
    """Raises UsageError where the exit code would say something of a run that is judged in part only."""
    from kgbench.evaluation.shard import Shard

    if not shard:
        return
    Shard.parse(shard)
    if fail or fail_under:
        option = "--fail" if fail else "--fail-under"
        words = f"{option} is about a whole run, and --shard {shard} judges a part: give {option} to kgbench merge"
        raise UsageError("KGB151", words)
