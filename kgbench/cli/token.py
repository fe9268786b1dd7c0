"""``kgbench token``: tokens for the users of a service."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kgbench.service.tokens import DEFAULT_QUEUE, DEFAULT_RATE

if TYPE_CHECKING:
    from kgbench.service.tokens import Token

EPILOG: Final = """
\b
Examples:
    kgbench token new alice --rate 60/min --queue 500
    kgbench token list
    kgbench token revoke alice

A token is printed once and kept as a hash. Commands work while the service runs, and at once. docs/service.md.
"""
data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("service"),
    show_default=True,
    metavar="DIR",
    help="The folder that kgbench serve has as --data.",
)


@click.group(epilog=EPILOG, short_help="Make, list and withdraw tokens of kgbench serve.")
def token() -> None:
    """Make, list and withdraw the tokens of a service."""


@token.command(short_help="Make a token and print it, once.")
@click.argument("name")
@click.option("--rate", default=DEFAULT_RATE, show_default=True, metavar="COUNT/UNIT",
              help="Submissions at most: 60/min, 5/s, 1000/h, 5000/day.")  # fmt: skip
@click.option("--queue", type=click.IntRange(min=1), default=DEFAULT_QUEUE, show_default=True, metavar="N",
              help="Submissions without a verdict at most; above it the answer is 429.")  # fmt: skip
@data_option
def new(name: str, rate: str, queue: int, data: Path) -> None:
    """Make a token for NAME and print it as the only line of standard output. Its holder acts as NAME."""
    from kgbench.service.database import Database
    from kgbench.service.tokens import Rate, Tokens

    read = Rate.read(rate)
    made = Tokens(Database(data)).new(name, read, queue)
    click.echo(made)
    click.echo(f"the token of {name}; it is shown this once. Its user sets KGBENCH_TOKEN to it", err=True)


@token.command("list", short_help="All names, with their quotas.")
@data_option
def list_tokens(data: Path) -> None:
    """All tokens by name: quota, when made, when withdrawn. The tokens themselves are not kept."""
    from kgbench.service.database import Database
    from kgbench.service.tokens import Tokens

    found = Tokens(Database(data, make=False)).all()
    if not found:
        click.echo("there is no token; kgbench token new NAME makes one", err=True)
        sys.exit(0)
    width = max(len(each.name) for each in found)
    for each in found:
        click.echo(f"{each.name:{width}}  {each.rate!s:>10}  queue {each.queue:>6}  {_since(each)}")


@token.command(short_help="Withdraw a token, at once.")
@click.argument("name")
@data_option
def revoke(name: str, data: Path) -> None:
    """Withdraw the token of NAME at once. Verdicts are kept; waiting submissions wait for a new token."""
    from kgbench.service.database import Database
    from kgbench.service.tokens import Tokens

    Tokens(Database(data, make=False)).revoke(name)
    click.echo(f"the token of {name} is withdrawn; kgbench token new {name} makes another", err=True)


def _since(each: Token) -> str:
    made = f"made {_day(each.made)}"
    return f"{made}, withdrawn {_day(each.revoked)}" if each.revoked is not None else made


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
