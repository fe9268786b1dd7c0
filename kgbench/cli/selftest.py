"""``kgbench selftest``: tests the benchmark itself. Its parts are commands in ``selftest_*.py``.

Each part returns a Part, which this group prints. Without a subcommand all parts run, one after the other, and a last
line sums up. Finished parts are printed whatever ends it early.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import click

from kgbench.cli.options import check_machine, device_option, json_option
from kgbench.cli.selftest_parts import Early, Part, made_here, print_json, print_lines, status_of
from kgbench.core.errors import KgbenchError

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
    short_help="Test the benchmark itself: exploits, mutants, the null test.",
    context_settings={"max_content_width": 110},
)
@device_option
@json_option
@click.pass_context
def selftest(ctx: click.Context, device: str, as_json: bool) -> None:
    """Test the benchmark itself on this machine.

    Without a subcommand everything runs, which takes minutes on many cores and an hour on two, and the last line can be
    quoted. Finished parts are printed whatever ends it early.
    """
    if ctx.invoked_subcommand is not None:
        return
    from kgbench.core.interruption import ended_by_signals

    check_machine()
    begun = time.monotonic()
    found: dict[str, Part] = {}
    with ended_by_signals():
        early = _run_all(ctx, device, found, lambda lines: None if as_json else print_lines(lines))
        words = quoted(found, time.monotonic() - begun)
        if as_json:
            parts = {name: part.whole_data for name, part in found.items()}
            print_json({**made_here(device), "words": words, "status": status_of(early), **parts})
        else:
            click.echo(words)
        if early is not None:
            raise early
        sys.exit(int(not all(part.holds for part in found.values())))


def _run_all(
    ctx: click.Context, device: str, found: dict[str, Part], show: Callable[[Sequence[str]], None]
) -> Early | None:
    """Run each part with its defaults and put its findings into ``found``; returns what ended that early. Raises it
    where nothing was found.
    """
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
