"""Shared by the parts of ``kgbench selftest``: a part's result, its command, and work on many items at once."""

from __future__ import annotations

import contextlib
import queue
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kgbench.core.errors import KgbenchError

if TYPE_CHECKING:
    from rich.console import Console

    from kgbench.harness.session.session import Session, Settings

Early = KeyboardInterrupt | KgbenchError
"""What ends a part before its time: a signal, or a machine that fails."""
_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class CutShort:
    """Why a part ended early."""

    error: Early
    not_reached: int
    """Number of exploits, mutants or libraries that were not reached."""


def status_of(early: BaseException | None) -> str:
    """The status in the words of a run's, by what ended it early."""
    return "finished" if early is None else "interrupted" if isinstance(early, KeyboardInterrupt) else "failed"


class Gathered(list[_Found]):
    """Finished items, in the order of the input."""

    cut_short: CutShort | None = None
    """Why the rest is missing; None where everything is finished."""


@dataclass(frozen=True)
class Part:
    """What one part found."""

    words: str
    """Its share of the line that can be quoted, such as ``63 of 63 exploits caught``."""
    holds: bool
    lines: list[str] = field(default_factory=list)
    """Lines to print."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What is printed, as JSON-ready data."""
    cut_short: CutShort | None = None

    @property
    def quoted(self) -> str:
        cut = self.cut_short
        return self.words if cut is None else f"{self.words}, {status_of(cut.error)} with {cut.not_reached} not reached"

    @property
    def whole_data(self) -> dict[str, Any]:
        cut = self.cut_short
        not_reached = cut.not_reached if cut else 0
        ended = {"status": status_of(cut.error if cut else None), "not_reached": not_reached, "holds": self.holds}
        return {**ended, **self.data}


def made_here(device: str) -> dict[str, Any]:
    """Date, device and version, as the JSON begins with them; `kgbench publish` reads them."""
    from kgbench import __version__
    from kgbench.harness.machine.devices import find_devices

    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"kgbench": __version__, "finished": now, "device": find_devices(device)[0].name}


class PartCommand(click.Command):
    """A command whose callback returns a Part: prints it and ends with its exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        from kgbench.core.interruption import ended_by_signals

        with ended_by_signals():
            part = super().invoke(ctx)
            if not isinstance(part, Part):
                return part
            if ctx.params.get("as_json"):
                print_json({**made_here(str(ctx.params.get("device", "auto"))), **part.whole_data})
            else:
                print_lines([*part.lines, "", part.quoted])
            if part.cut_short is not None:
                raise part.cut_short.error
            sys.exit(int(not part.holds))


def gathered(
    settings: Settings,
    items: Sequence[_Item],
    work: Callable[[Session, _Item], _Found],
    said: Callable[[int, _Item, _Found], str],
) -> Gathered[_Found]:
    """What ``work`` finds of each item, several at a time; ``said`` makes a line for stderr of the n-th that is ready.

    A signal or an error of ours ends it early, with what is finished; raises it where nothing is.
    """
    from rich.console import Console

    from kgbench.evaluation.coordinator import opened
    from kgbench.harness.session.session import Session

    console = Console(stderr=True, highlight=False)
    futures: dict[Future[_Found], _Item] = {}
    ready: queue.SimpleQueue[Future[_Found]] = queue.SimpleQueue()
    early: Early | None = None
    try:
        with opened(session := Session(settings), console), _counting(console, len(items)) as count:
            pool = ThreadPoolExecutor(session.jobs)
            try:
                for item in items:
                    futures[future := pool.submit(work, session, item)] = item
                    future.add_done_callback(ready.put)
                for number in range(1, len(items) + 1):
                    # Of all that waits, this alone may be interrupted anywhere: the others hold locks.
                    future = ready.get()
                    if line := said(number, futures[future], future.result()):
                        console.print(line, soft_wrap=True, markup=False)
                    count(number)
            finally:
                # Nobody waits for what is under way: its referees are gone with the session.
                pool.shutdown(wait=False, cancel_futures=True)
    except (KeyboardInterrupt, KgbenchError) as error:
        early = error
    found = Gathered(each.result() for each in futures if each.done() and not each.cancelled() and not each.exception())
    if early is not None and not found:
        raise early
    found.cut_short = CutShort(early, len(items) - len(found)) if early is not None else None
    return found


@contextlib.contextmanager
def _counting(console: Console, whole: int) -> Iterator[Callable[[int], None]]:
    """On a terminal something moves meanwhile; told how many are ready."""
    if not console.is_terminal:
        yield lambda number: None
        return
    # Twice a second: more would take time from what is timed on the same cores.
    with console.status(f"0 of {whole}", refresh_per_second=2) as status:
        yield lambda number: status.update(f"{number} of {whole}")


def print_lines(lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(line)


def print_json(data: Any) -> None:
    from kgbench.store.encoding import json_text

    click.echo(json_text(data, indent=2))
