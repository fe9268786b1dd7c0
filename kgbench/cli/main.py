"""The ``kgbench`` command line: which subcommands there are, and how an error ends one.

Each subcommand lives in a file of its own and is imported only when it is named or listed. None of these files may
import torch, pandas, numpy or rich at its top: ``--help`` and ``list`` answer at once.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any, Final

import click

from kgbench import __version__
from kgbench.core.errors import INTERRUPTED, KgbenchError, numbered
from kgbench.core.names import did_you_mean

GROUPS: Final[dict[str, dict[str, str]]] = {
    "Getting started": {
        "doctor": "kgbench.cli.doctor:doctor",
        "demo": "kgbench.cli.demo:demo",
        "run": "kgbench.cli.run:run",
        "check": "kgbench.cli.check:check",
    },
    "Models and results": {
        "prompt": "kgbench.cli.prompt:prompt",
        "generate": "kgbench.cli.generate:generate",
        "evaluate": "kgbench.cli.evaluate:evaluate",
        "report": "kgbench.cli.report:report",
        "compare": "kgbench.cli.compare:compare",
        "merge": "kgbench.cli.merge:merge",
        "leaderboard": "kgbench.cli.leaderboard:leaderboard",
        "verify": "kgbench.cli.verify:verify",
        "reproduce": "kgbench.cli.reproduce:reproduce",
        "export": "kgbench.cli.export:export",
        "try-backend": "kgbench.cli.try_backend:try_backend",
        "publish": "kgbench.cli.publish:publish",
        "show": "kgbench.cli.problems:show_command",
        "mcp": "kgbench.cli.mcp:mcp",
    },
    "For others": {
        "serve": "kgbench.cli.serve:serve",
        "token": "kgbench.cli.token:token",
    },
    "Authoring and self-test": {
        "list": "kgbench.cli.problems:list_command",
        "validate": "kgbench.cli.validate:validate",
        "new": "kgbench.cli.new:new",
        "selftest": "kgbench.cli.selftest:selftest",
    },
}
"""Subcommands in the order of ``--help``, by heading."""

COMMANDS: Final = {name: target for group in GROUPS.values() for name, target in group.items()}


EPILOG: Final = """
\b
Completion of commands, options, sources and problem ids, once per shell:
  eval "$(_KGBENCH_COMPLETE=bash_source kgbench)"       zsh: zsh_source
  _KGBENCH_COMPLETE=fish_source kgbench | source
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 machine cannot, 130 interrupted
"""


class LazyGroup(click.Group):
    """A group that imports a subcommand when it is needed, and prints kgbench's errors with their exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, group in GROUPS.items():
            with formatter.section(heading):
                commands = ((name, self.get_command(ctx, name)) for name in group)
                limit = formatter.width - 4 - max(map(len, COMMANDS))
                formatter.write_dl([(name, command.get_short_help_str(limit)) for name, command in commands if command])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            words = f"there is no command '{args[0]}'; {did_you_mean(args[0], COMMANDS)}"
            raise _Numbered(numbered("KGB102", words), ctx)
        return super().resolve_command(ctx, args)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with _clicks_errors_numbered():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        try:
            with _clicks_errors_numbered():
                return super().invoke(ctx)
        except KgbenchError as error:
            click.echo(f"kgbench: {error.printed}", err=True)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo(f"kgbench: {numbered('KGB601', 'interrupted')}", err=True)
            ctx.exit(INTERRUPTED)


class _Numbered(click.UsageError):
    """An error of click whose message has a number."""


_HELP: Final = getattr(click.exceptions, "NoArgsIsHelpError", _Numbered)
"""The exception with which click prints help where no argument was given; click before 8.2 prints it itself."""


@contextlib.contextmanager
def _clicks_errors_numbered() -> Iterator[None]:
    """Give click's own errors a number too."""
    try:
        yield
    except click.UsageError as error:
        if isinstance(error, _Numbered | _HELP):
            raise
        raise _Numbered(numbered("KGB101", error.format_message()), error.ctx) from None


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"max_content_width": 110})
@click.version_option(__version__, prog_name="kgbench")
def main() -> None:
    """Is this GPU kernel right, and faster than the library people use today?
    Begin with kgbench doctor, kgbench demo; no GPU needed.
    """
