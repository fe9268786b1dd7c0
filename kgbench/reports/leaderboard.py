"""All runs of a folder as rankings: one per device, source and version of its problems. Printing is the command's.

Runs stand on one board only where their numbers mean the same: on the same hardware, beside the same library, over the
same problem files. Runs of a part of a source are listed and never ranked beside those of all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kgbench.core.errors import KgbenchError, numbered
from kgbench.problem.problem_set import ProblemSet, sha256_of
from kgbench.reports.model import Report, report_of
from kgbench.scores.rows import Row
from kgbench.scores.score import Place
from kgbench.scores.table import scores_in
from kgbench.store.by_device import by_device
from kgbench.store.layout import RUN_FILE
from kgbench.store.reader import read_run, shard_of

_LIBRARY_OF: Final = {"aten": "torch", "vllm": "vllm", "cublas": "nvidia-cublas"}


@dataclass(frozen=True)
class Entry:
    """A run's row for one source."""

    rank: int | None
    """Rank from 1, the same for runs of equal shares; None for a part of the source."""
    run: str
    path: Path
    model: str
    date: str
    """Day on which the run was started, UTC."""
    policy: str
    unfinished: str
    """How it ended, such as ``interrupted``, where it lacks results that count as failures; else empty."""
    row: Row
    """The run's row for this source, with bootstrap intervals."""


@dataclass(frozen=True)
class Board:
    """Entries that can be ranked together, the best first; parts of the source at the end."""

    device: str
    source: str
    library: str
    """Package and version that the source is compared with; empty where it was not installed."""
    problem_set: ProblemSet
    """This source's problems, of which each run's other sources are no part."""
    entries: tuple[Entry, ...]

    def to_json(self) -> dict[str, Any]:
        from kgbench.reports.json_data import row_json

        entries = [{**vars(each), "path": str(each.path), "row": row_json(each.row)} for each in self.entries]
        return {**vars(self), "problem_set": vars(self.problem_set), "entries": entries}


def boards(reports: Iterable[Report]) -> tuple[Board, ...]:
    """By device, then source. A run on several sources stands on several boards."""
    found: dict[tuple[str, str, str, str], list[tuple[Report, Row]]] = {}
    for report in reports:
        for row in report.rows:
            if row.kinds == "compute" and report.suite is None:
                found.setdefault(_key(report, row), []).append((report, row))
    return tuple(_board(*key, found[key]) for key in sorted(found))


def read_reports(folder: Path) -> tuple[tuple[Report, ...], tuple[str, ...]]:
    """(reports, what cannot be read of them) of every run that lies in a folder, the oldest first."""
    reports: list[Report] = []
    notes: list[str] = []
    for file in sorted(folder.glob(f"**/{RUN_FILE}")):
        try:
            run = read_run(file.parent)
        except KgbenchError as error:
            notes.append(numbered("KGB626", f"left out: {error}"))
            continue
        if shard := shard_of(run.info):
            notes.append(numbered("KGB626", f"left out: {run.path} is shard {shard} of a run; rank what they merge to"))
            continue
        reports += map(report_of, by_device(run))
        notes += [f"{run.path}: {note}" for note in run.notes]
    return tuple(reports), tuple(notes)


def _key(report: Report, row: Row) -> tuple[str, str, str, str]:
    info = report.info
    device = (info.get("device") or {}).get("name") or "unknown device"
    package = _LIBRARY_OF.get(row.source, "")
    version = (info.get("packages") or {}).get(package)
    return device, row.source, f"{package} {version}" if version else "", _problems_sha256(info, row.source)


def _problems_sha256(info: dict[str, Any], source: str) -> str:
    return sha256_of((each["id"], each.get("sha256")) for each in _of_source(info, source))


def _of_source(info: dict[str, Any], source: str) -> list[dict[str, Any]]:
    return [each for each in info.get("problems", ()) if each["id"].partition("/")[0] == source]


def _board(device: str, source: str, library: str, sha256: str, found: Sequence[tuple[Report, Row]]) -> Board:
    versions = sorted({ProblemSet.of(report.info).version for report, _ in found})
    problems = len(_of_source(found[0][0].info, source))
    return Board(device, source, library, ProblemSet(" and ".join(versions), problems, sha256), _ranked(found))


def _ranked(found: Sequence[tuple[Report, Row]]) -> tuple[Entry, ...]:
    ordered = sorted(found, key=lambda each: (each[1].is_subset(), *_order(each[1]), str(each[0].info.get("id"))))
    entries: list[Entry] = []
    for place, (report, row) in enumerate(ordered, start=1):
        last = entries[-1] if entries else None
        alike = last is not None and _order(last.row) == _order(row)
        rank = None if row.is_subset() else last.rank if alike and last else place
        entries.append(_entry(rank, report, row))
    return tuple(entries)


def _order(row: Row) -> tuple[float, ...]:
    """fast_1, then correct, then the geometric mean over all; the highest first."""
    return tuple(-row.values.get(score.name, 0.0) for score in scores_in(Place.RANK))


def _entry(rank: int | None, report: Report, row: Row) -> Entry:
    policies = {result.policy for result in report.results if result.policy is not None}
    status = str(report.info.get("status") or "finished")
    return Entry(
        rank=rank,
        run=str(report.info.get("id") or Path(report.where).name),
        path=Path(report.where),
        model=str(report.info.get("model")),
        date=str(report.info.get("started") or "")[:10],
        policy=", ".join(sorted(policies)),
        unfinished="" if status == "finished" else status,
        row=row,
    )
