"""Options of ``kgbench run`` that spread a run over several machines."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from kgbench.core.errors import UsageError

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Spread:
    """The values of these options."""

    shard: str
    ray: str
    mixed_devices: bool

    def check(self, trace: Path | None, server: str, *, fail: bool, fail_under: str) -> None:
        """Raises UsageError where options do not go together."""
        from kgbench.evaluation.shard import Shard

        if self.mixed_devices and not self.ray:
            words = "--mixed-devices is about nodes of a cluster: give --ray auto or --ray HOST:PORT"
            raise UsageError("KGB155", words)
        if self.ray and trace is not None:
            words = "--trace records the processes of one machine, and --ray has others: leave one out"
            raise UsageError("KGB155", words)
        if self.ray and server:
            raise UsageError("KGB155", "--ray and --server both say who judges: give one of the two")
        if self.shard:
            Shard.parse(self.shard)
        if self.shard and (fail or fail_under):
            option = "--fail" if fail else "--fail-under"
            words = f"{option} is about a whole run, and --shard {self.shard} judges a part: give it to kgbench merge"
            raise UsageError("KGB151", words)


_OPTIONS: Final = (
    click.option("--shard", metavar="N/COUNT", default="",
                 help="Judge one of COUNT parts of the run, for example 3/8; `kgbench merge` makes one run of them "
                      "(docs/clusters.md)."),
    click.option("--ray", metavar="auto|HOST:PORT", default="",
                 help="Judge on the devices of a running Ray cluster: the one that is here, or the one at an address "
                      "(docs/clusters.md)."),
    click.option("--mixed-devices", is_flag=True,
                 help="With --ray, use GPUs of several models, and keep them apart in every table."),
)  # fmt: skip


def cluster_options(command: _Command) -> _Command:
    """A decorator that adds these options; the command gets them as ``spread``."""

    @functools.wraps(command)
    def with_spread(*, shard: str, ray: str, mixed_devices: bool, **others: Any) -> Any:
        return command(spread=Spread(shard, ray, mixed_devices), **others)

    for option in reversed(_OPTIONS):
        with_spread = option(with_spread)
    return with_spread  # type: ignore[return-value]
