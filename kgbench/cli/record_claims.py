"""Claims of a run to a device's records, and what ``kgbench verify`` enters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kgbench.core.errors import UsageError, numbered, shown_path
from kgbench.core.kinds import DeviceKind, PolicyMode
from kgbench.core.text import number_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kgbench.cli.again import Measured
    from kgbench.core.types import Result
    from kgbench.reports.model import Report
    from kgbench.store.reader import StoredRun
    from kgbench.store.records import Claim, Records

_NAMED: Final = 10
"""Most problems of which a run says a line; it counts the others."""


def say_records(report: Report) -> None:
    """Print on stderr which kernels would be records; none is one before it is verified."""
    from kgbench.core.paths import records_dir
    from kgbench.store.errors import StoreError
    from kgbench.store.records import read_records

    device = report.info.get("device") or {}
    if device.get("kind") != DeviceKind.CUDA or not device.get("name") or not records_dir().parent.is_dir():
        return
    try:
        records = read_records(records_dir(), device["name"])
    except StoreError:
        return  # the report's notes say so
    lines = list(_claims(report, records))
    for line in lines[:_NAMED]:
        click.echo(line, err=True)
    if len(lines) > _NAMED:
        click.echo(f"and {len(lines) - _NAMED} more", err=True)
    if lines:
        command = f"kgbench verify {shown_path(report.where)} --records {shown_path(records_dir())}"
        click.echo(f"no record counts before it is verified: {command}", err=True)


def _claims(report: Report, records: Records) -> Iterator[str]:
    from kgbench.scores.samples import is_fast
    from kgbench.scores.speedups import against_record, speedup
    from kgbench.store.records import beaten

    own = {problem.id for problem in report.selected if problem.own}
    for result in report.results:
        found, estimate = beaten(result, records), speedup(result)
        if not found or estimate is None or result.problem in own or not is_fast(result, 1.0):
            continue
        known = records.of(result.problem, result.problem_sha256)
        times = {case: us for case, us in (known.times() if known else {}).items() if case in found}
        line = f"{result.problem} {estimate.point:.2f}x the library"
        ratio = against_record(result, times)
        if known is None or ratio is None:
            yield f"first record: {line}"
            continue
        cases = "" if len(found) >= len(known.cases) else f" in {len(found)} of {len(known.cases)} cases"
        yield f"new record: {line}, {ratio.point:.2f}x the record{cases}"


def check_records(stored: StoredRun, folder: Path) -> None:
    """Check before anything is judged. Raises UsageError where the run cannot set a record, or a file is broken."""
    from kgbench.store.records import read_records

    info = stored.info
    device = info.get("device") or {}
    why = ""
    if device.get("kind") != DeviceKind.CUDA or not device.get("name"):
        why = f"it was made on {device.get('kind') or 'an unknown device'}, and records are of GPUs"
    elif (info.get("asked") or {}).get("policy") != PolicyMode.STRICT:
        why = "its policy is not strict; run it again with --policy strict"
    elif info.get("seed_is_secret") is not True:
        why = "its seed was given beforehand; run it again without --seed"
    if why:
        raise UsageError("KGB437", f"{shown_path(stored.path)}: this run cannot set a record: {why}")
    read_records(folder, device["name"])


def enter_records(stored: StoredRun, results: Sequence[Result], measured: Measured, folder: Path) -> None:
    """Enter records and print them; none where the device was not quiet. Raises StoreError, WriteError."""
    from kgbench.store.records import enter, path_of

    busy = measured.busy_before, measured.busy_after
    if busy != (0.0, 0.0):
        before, after = ("unknown" if each is None else f"{each:g} %" for each in busy)
        words = f"no record was entered: the device was busy ({before} before, {after} after); end what else runs there"
        click.echo(f"kgbench: {numbered('KGB651', words)} and verify again", err=True)
        return
    claims = list(_verified(stored, results, measured))
    for words in _left_out(results):
        click.echo(words, err=True)
    entered = enter(folder, measured.device, claims)
    cases = sum(map(len, entered.values()))
    path = shown_path(path_of(folder, measured.device))
    click.echo(f"records: {cases} cases of {len(entered)} problems entered in {path}", err=True)
    for problem in entered:
        click.echo(f"  {problem}: {', '.join(entered[problem])}", err=True)


def _left_out(results: Sequence[Result]) -> Iterator[str]:
    """Which winners make no record for want of a sandbox as for published runs."""
    from kgbench.reports.publishing.checks import SANDBOXES

    if weak := [result for result in results if not _is_sandboxed(result)]:
        levels = " and ".join(sorted({str(result.sandbox.get("level", "unknown")) for result in weak}))
        least = SANDBOXES[0]
        yield f"no record of {number_of(len(weak), 'winner')}: sandbox level {levels}, below {least} (docs/sandbox.md)"


def _is_sandboxed(result: Result) -> bool:
    from kgbench.reports.publishing.checks import SANDBOXES

    return result.sandbox.get("level") in SANDBOXES


def _verified(stored: StoredRun, results: Sequence[Result], measured: Measured) -> Iterator[Claim]:
    """Those that were measured just now, with the kernel's text, in a sandbox as for published runs."""
    from kgbench.store.encoding import sha256
    from kgbench.store.records import Claim
    from kgbench.store.repeat import candidate_file

    own = {each["id"] for each in stored.info.get("problems", ()) if each.get("own")}
    for result in results:
        file = candidate_file(stored, result)
        if file is None or result.problem in own or result.seed != measured.seed_sha256:
            continue
        text = file.read_text(encoding="utf-8")
        strict = result.policy == PolicyMode.STRICT and _is_sandboxed(result)
        if strict and sha256(text) == result.candidate_sha256:
            busy = (measured.busy_before or 0.0, measured.busy_after or 0.0)
            run_id = str(stored.info.get("id") or stored.path.name)
            yield Claim(result, text, run_id, measured.at, measured.seed_sha256, busy)
