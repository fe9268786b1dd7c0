"""``kgbench publish``: writes a run as evidence that anyone can judge again, once its checks hold."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kgbench.cli.completion import complete_run
from kgbench.cli.options import out_option
from kgbench.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kgbench.reports.publishing.checks import Check
    from kgbench.store.reader import StoredRun

_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_FOLDER: Final = click.Path(path_type=Path, file_okay=False)


@click.command(short_help="Write a run to results/ as evidence.", context_settings={"max_content_width": 110})
@click.argument("run", metavar="RUN", shell_complete=complete_run)
@click.option("--as", "what", metavar="WHAT", help="Last part of the folder's name.  [default: the run's model]")
@click.option(
    "--null",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    help="Output of `kgbench selftest null --json` within 12 hours. Repeatable: pieces that together reach each "
    "library that is beaten in the run.  [default: RUN/selftest-null.json]",
)
@click.option(
    "--exploits",
    type=_FILE,
    metavar="FILE",
    help="Likewise the output of `kgbench selftest exploits`.  [default: RUN/selftest-exploits.json]",
)
@click.option(
    "--after",
    type=_FOLDER,
    metavar="FOLDER",
    help="The published run whose verdicts these kernels were written from, which may follow another itself.",
)
@click.option(
    "--leave-out",
    "left_out",
    multiple=True,
    metavar="PROBLEM",
    help="With --after: publish its result and do not count it, so that the kernel of a round before counts, as where "
    "no null test has reached its library. Repeatable.",
)
@click.option(
    "--to",
    type=_FOLDER,
    metavar="DIR",
    default=Path("results"),
    show_default=True,
    help="The folder of published runs.",
)
@click.option(
    "--draft",
    type=_FOLDER,
    metavar="DIR",
    help="Write a draft to this folder even if checks fail; RESULTS.md never shows it.",
)
@click.option("--dry-run", is_flag=True, help="Print all checks and write nothing.")
@out_option
def publish(
    run: str, what: str | None, null: tuple[Path, ...], exploits: Path | None, after: Path | None,
    left_out: tuple[str, ...], to: Path, draft: Path | None, dry_run: bool, out: Path,
) -> None:  # fmt: skip
    """Write a run to results/ as evidence that anyone can judge again (docs/published.md).

    It has to be whole (a later round may be interrupted), of one GPU, with its seeds disclosed and the shipped
    problems, strict in policy and sandbox, and with the null test and the exploits of the same 12 hours beside it. Exit
    code 1: --dry-run, and a check does not hold.
    """
    from kgbench.reports.publishing.checks import checks, follows
    from kgbench.reports.publishing.folder import (
        counted,
        files_of,
        folder_name,
        size_check,
        with_followed,
        write_folder,
    )
    from kgbench.reports.publishing.selftests import EXPLOITS, FILES, NULL, read_evidence
    from kgbench.store.errors import StoreError
    from kgbench.store.find import find_run
    from kgbench.store.layout import PACKED_RESULTS_FILE
    from kgbench.store.reader import read_run

    if draft is not None and draft.resolve().is_relative_to(to.resolve()):
        raise UsageError("KGB433", f"--draft {draft}: {to} holds published runs; give a folder elsewhere")
    stored = read_run(find_run(run, out))
    _check_left_out(left_out, after, stored)
    if (stored.path / PACKED_RESULTS_FILE).exists():
        raise StoreError("KGB430", f"{stored.path}: it is published already; `kgbench reproduce` judges it again")
    given = {NULL: null, EXPLOITS: (exploits,) if exploits else ()}
    evidence = [read_evidence(part, *(files or [stored.path / FILES[part]])) for part, files in given.items()]
    counts = counted(stored, left_out)
    found = list(checks(counts, evidence, later_round=after is not None))
    if after is not None:
        found.append(follows(counts, [read_run(each) for each in with_followed(after)]))
    what = what or str(stored.info.get("model") or "unknown")
    path = (draft or to) / folder_name(stored.info, what)
    follows_name = after.name if after else ""
    files = files_of(stored, what, found, evidence, draft=draft is not None, after=follows_name, left_out=left_out)
    found.append(size_check(files, draft or to, path))
    _say(found, draft=draft, dry_run=dry_run)
    if dry_run:
        sys.exit(int(not all(check.holds for check in found)))
    written = write_folder(files, path)
    shown = "" if draft else "; `make results` shows it in RESULTS.md"
    click.echo(f"{path}: {'written' if written else 'the same lies there already'}{shown}")


def _check_left_out(left_out: tuple[str, ...], after: Path | None, stored: StoredRun) -> None:
    """Raises UsageError where no earlier kernel could count, or where there is nothing to leave out."""
    if left_out and after is None:
        raise UsageError("KGB438", "--leave-out is for a later round, whose earlier kernels count then; add --after")
    if strange := sorted(set(left_out).difference(result.problem for result in stored.results)):
        raise UsageError("KGB438", f"--leave-out {strange[0]}: the run has no result of it")


def _say(found: Sequence[Check], *, draft: Path | None, dry_run: bool) -> None:
    """Print all checks. Raises UsageError where one fails and the run is to be published."""
    for check in found:
        click.echo(check.line())
    bad = [check.name for check in found if not check.holds]
    if bad and draft is None and not dry_run:
        words = f"not published: {len(bad)} of {len(found)} checks do not hold ({', '.join(bad)})"
        raise UsageError("KGB431", f"{words}; each line above with WRONG says the next step")
