"""What the scripts of benchmarks/ share: options, progress, and how an error ends a script.

Every script takes ``--help`` and ``--smoke``: its smallest size, in seconds, on the CPU. A smoke run shows that the
script works; its figures mean nothing. An option that is given beside ``--smoke`` is heeded. Exit codes are those of
kgbench: 0 done, 1 failed, 2 wrong usage, 3 this machine cannot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from kgbench.core.errors import KgbenchError

T = TypeVar("T")
Decorator = Callable[[Any], Any]
PROGRESS_S: Final = 10.0
"""Shortest time in seconds between two lines of progress."""


class MachineLacks(click.ClickException):
    """This machine has not what the script needs; exit code 3."""

    exit_code = 3


class Script(click.Command):
    """A command that ends with a message and an exit code where kgbench raises one of its errors."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KgbenchError as error:
            click.echo(f"{ctx.info_name}: {error.printed}", err=True)
            ctx.exit(error.exit_code)


def smoke_option(**sizes: object) -> Decorator:
    """``--smoke``, with the values that it gives to other options, by their names."""

    def use(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
        if wanted:
            ctx.default_map = {**(ctx.default_map or {}), **sizes}

    words = "Smallest size, on the CPU, in seconds: shows that the script works; its figures mean nothing."
    return click.option("--smoke", is_flag=True, is_eager=True, expose_value=False, callback=use, help=words)


def globs_argument(*default: str) -> Decorator:
    """Problems by glob, as ``kgbench list --problems`` takes them. ``--smoke`` may set other ones, as ``globs``."""

    def chosen(ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
        return given or tuple(ctx.lookup_default("globs") or default)

    return click.argument("globs", nargs=-1, metavar="[GLOB]...", callback=chosen)


device_option: Final = click.option(
    "--device", default="auto", show_default=True, help="auto, cpu, cuda, or chosen GPUs as in cuda:0,2."
)
json_option: Final = click.option(
    "--json",
    "json_path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write everything measured here.",
)


def shown(things: Iterable[T], total: int, what: str) -> Iterator[T]:
    """The things one by one; says on stderr how many are done, every ten seconds at most."""
    said = begun = time.monotonic()
    for number, thing in enumerate(things, 1):
        yield thing
        now = time.monotonic()
        if now - said >= PROGRESS_S:
            said = now
            click.echo(f"{number} of {total} {what} done in {now - begun:.0f} s", err=True)
