"""``kgbench selftest``: does the benchmark itself hold? Its parts lie in files of their own, ``selftest_*.py``.

Each part is a command that returns a Part; this group prints it. Without a subcommand all parts run, one after the
other, and a last line that can be quoted says what came out. What is finished is printed whatever ends it early.
"""

from __future__ import annotations

import contextlib
import importlib
import queue
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kgbench.cli.options import check_machine, device_option
from kgbench.cli.report import json_option
from kgbench.core.errors import KgbenchError

if TYPE_CHECKING:
    from rich.console import Console

    from kgbench.harness.session.session import Session, Settings

Early = KeyboardInterrupt | KgbenchError
"""What ends a part before its time: a signal, or a machine that fails."""
_Item = TypeVar("_Item")
_Found = TypeVar("_Found")

PARTS: Final[dict[str, str]] = {
    "exploits": "kgbench.cli.selftest_exploits:exploits",
    "mutants": "kgbench.cli.selftest_mutants:mutants",
    "null": "kgbench.cli.selftest_null:null",
}
"""Parts in the order in which they run: name to ``module:command``."""

EPILOG: Final = """
\b
Examples:
  all parts, on the GPU where there is one
    kgbench selftest
  one of them
    kgbench selftest exploits --device cpu

Exit codes: 0 everything holds, 1 something does not, 2 wrong command line, 3 this machine cannot, 130 interrupted.
"""


@dataclass(frozen=True)
class CutShort:
    """Why a part is not whole."""

    error: Early
    not_reached: int
    """How many exploits, mutants or libraries."""


def _status(early: BaseException | None) -> str:
    """In the words of a run's status, by what ended it early."""
    return "finished" if early is None else "interrupted" if isinstance(early, KeyboardInterrupt) else "failed"


class Gathered(list[_Found]):
    """What is finished, in the order of what it was found of."""

    cut_short: CutShort | None = None
    """None where that is everything."""


@dataclass(frozen=True)
class Part:
    """What one part found."""

    words: str
    """Its share of the line that can be quoted, such as ``63 of 63 exploits caught``."""
    holds: bool
    lines: list[str] = field(default_factory=list)
    """What is printed."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The same as JSON-ready data."""
    cut_short: CutShort | None = None

    @property
    def quoted(self) -> str:
        cut = self.cut_short
        return self.words if cut is None else f"{self.words}, {_status(cut.error)} with {cut.not_reached} not reached"

    @property
    def whole_data(self) -> dict[str, Any]:
        cut = self.cut_short
        not_reached = cut.not_reached if cut else 0
        return {"status": _status(cut.error if cut else None), "not_reached": not_reached, **self.data}


class PartCommand(click.Command):
    """A command whose callback returns a Part: prints it and ends with its exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        from kgbench.core.interruption import ended_by_signals

        with ended_by_signals():
            part = super().invoke(ctx)
            if not isinstance(part, Part):
                return part
            if ctx.params.get("as_json"):
                _print_json(part.whole_data)
            else:
                _print_lines([*part.lines, "", part.quoted])
            if part.cut_short is not None:
                raise part.cut_short.error
            sys.exit(int(not part.holds))


class PartsGroup(click.Group):
    """Imports a part when it is named or listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(PARTS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return command_of(cmd_name) if cmd_name in PARTS else None


def command_of(name: str) -> click.Command:
    """The command of a part."""
    module, _, attribute = PARTS[name].partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    return command


@click.group(
    cls=PartsGroup,
    invoke_without_command=True,
    epilog=EPILOG,
    short_help="Does the benchmark itself hold: exploits, mutants, the null test.",
    context_settings={"max_content_width": 110},
)
@device_option
@json_option
@click.pass_context
def selftest(ctx: click.Context, device: str, as_json: bool) -> None:
    """Does the benchmark itself hold on this machine?

    Without a subcommand everything runs, which takes minutes on many cores and an hour on two, and the last line can be
    quoted. What is finished is printed whatever ends it early.
    """
    if ctx.invoked_subcommand is not None:
        return
    from kgbench.core.interruption import ended_by_signals

    check_machine()
    begun = time.monotonic()
    found: dict[str, Part] = {}
    with ended_by_signals():
        early = _run_all(ctx, device, found, lambda lines: None if as_json else _print_lines(lines))
        words = quoted(found, time.monotonic() - begun)
        if as_json:
            parts = {name: part.whole_data for name, part in found.items()}
            _print_json({"words": words, "status": _status(early), **parts})
        else:
            click.echo(words)
        if early is not None:
            raise early
        sys.exit(int(not all(part.holds for part in found.values())))


def _run_all(
    ctx: click.Context, device: str, found: dict[str, Part], show: Callable[[Sequence[str]], None]
) -> Early | None:
    """Puts what each part finds by its defaults into ``found``; what ended that early. Raises it where nothing is."""
    try:
        for name in PARTS:
            command = command_of(name)
            assert command.callback is not None
            with command.make_context(name, ["--device", device], parent=ctx) as own:
                part: Part = own.invoke(command.callback, **own.params)
            found[name] = part
            show([f"--- {name} ---", *part.lines, "", part.quoted, ""])
            if part.cut_short is not None:
                return part.cut_short.error
    except (KeyboardInterrupt, KgbenchError) as early:
        if not found:
            raise
        return early
    return None


def quoted(found: Mapping[str, Part], seconds: float) -> str:
    """One line that a person can quote."""
    from kgbench import __version__

    missing = [name for name in PARTS if name not in found]
    whole = not missing and all(part.cut_short is None for part in found.values())
    verdict = "holds" if whole else "holds so far"
    if not all(part.holds for part in found.values()):
        verdict = "DOES NOT HOLD"
    words = "; ".join([*(part.quoted for part in found.values()), *(f"{name} not run" for name in missing)])
    return f"kgbench {__version__} {verdict}: {words} ({seconds:.0f} s)"


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


def _print_lines(lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(line)


def _print_json(data: Any) -> None:
    from kgbench.store.encoding import json_text

    click.echo(json_text(data, indent=2))
