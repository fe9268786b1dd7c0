"""The self-test that stands beside a published run: what ``kgbench selftest null|exploits --json`` printed that day."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from kgbench.core.text import number_of
from kgbench.selftest.exploits.runner import BROKEN, MISSED, read_exploits
from kgbench.selftest.null_test import allowed_faster

NULL: Final = "null"
EXPLOITS: Final = "exploits"
FILES: Final = {NULL: "selftest-null.json", EXPLOITS: "selftest-exploits.json"}
"""Name of each part's file beside the run."""
PACKED: Final = ".gz"
"""End of its name where it is published."""
APART: Final = timedelta(hours=12)
"""Most time between a run's start or end and the end of a self-test that counts for it."""
_NAMED: Final = 5
"""Most problems or exploits that one line names."""
_OF_THE_MACHINE: Final = ("kept",)
"""Keys that name files of the machine and are not published."""


@dataclass(frozen=True)
class Evidence:
    """One part of the self-test, as read from a file; a null test may have been made in pieces, a file each."""

    part: str
    paths: tuple[Path, ...]
    data: tuple[Mapping[str, Any], ...] = ()
    """What each file holds; empty where one is missing or cannot be read."""
    unread: str = ""
    """Why, in words."""

    @property
    def where(self) -> str:
        return ", ".join(map(str, self.paths))

    def published(self) -> dict[str, Any]:
        """The part of the data that is published; of several files a list, ``pieces``."""
        kept = [{key: value for key, value in each.items() if key not in _OF_THE_MACHINE} for each in self.data]
        return kept[0] if len(kept) == 1 else {"pieces": kept}


def read_evidence(part: str, *paths: Path) -> Evidence:
    """Read a part's files. Never raises: a check reports what is missing."""
    found = []
    for path in paths:
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return Evidence(part, paths, unread=f"{path} is missing")
        except (OSError, ValueError) as error:
            return Evidence(part, paths, unread=f"{path} cannot be read: {error}")
        if not isinstance(data, dict):
            return Evidence(part, paths, unread=f"{path} holds no JSON object")
        found.append(data)
    return Evidence(part, paths, tuple(found))


def wrong_with(evidence: Evidence, ran: Sequence[str], device: str, beaten: Collection[str]) -> Iterator[str]:
    """Why the self-test is not valid for a run on ``device``.

    Args:
        ran: when the run started and ended, as ISO texts.
        beaten: the problems in which a kernel is faster than the library by its interval, as noise alone might be.
    """
    if not evidence.data:
        yield evidence.unread
        return
    times = [time for time in map(_time, ran) if time is not None]
    for data in evidence.data:
        ended = _time(data.get("finished"))
        if ended is None or not any(abs(ended - time) <= APART for time in times):
            words, apart = " to ".join(map(str, times)) or "an unknown time", APART.total_seconds() / 3600
            yield f"it is of {ended or 'an unknown time'}, the run of {words}: over {apart:g} h apart"
        if data.get("device") != device:
            yield f"it is of the device {data.get('device')}, the run of {device}"
    try:
        yield from _null(evidence.data, beaten) if evidence.part == NULL else _exploits(evidence.data)
    except (KeyError, TypeError, AttributeError) as error:
        yield f"it is not what `kgbench selftest {evidence.part} --json` prints: {error}"


def _time(text: object) -> datetime | None:
    """A time as run.json has it; None where there is none."""
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def _null(pieces: Sequence[Mapping[str, Any]], beaten: Collection[str]) -> Iterator[str]:
    # A library that is in two pieces counts twice, so that none is repeated until noise happens to be kind.
    rows = [row for data in pieces for row in data["problems"]]
    runs = {row["run"] for row in rows}
    faster = [row["problem"] for row in rows if row["low"] > 1]
    reached = {row["problem"] for row in rows}.union(*(data.get("not_timed", ()) for data in pieces))
    if missed := [problem for problem in dict.fromkeys(beaten) if problem not in reached]:
        more = ", ..." if len(missed) > _NAMED else ""
        found = number_of(len(missed), "problem")
        yield f"{found} whose library is beaten not reached: {', '.join(missed[:_NAMED])}{more}"
    if len(faster) > allowed_faster(len(runs)):
        yield f"noise alone calls {len(faster)} libraries faster: {', '.join(faster[:_NAMED])}"


def _exploits(pieces: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if unfinished := [data.get("status") for data in pieces if data.get("status") != "finished"]:
        yield f"it was not finished: {unfinished[0]}"
    states = {row["name"]: row["state"] for data in pieces for row in data["rows"]}
    if missing := [each.name for each in read_exploits() if each.name not in states]:
        yield f"{number_of(len(missing), 'exploit')} not tried: {', '.join(missing[:_NAMED])}"
    if bad := [name for name, state in states.items() if state in (MISSED, BROKEN)]:
        yield f"{number_of(len(bad), 'exploit')} not caught: {', '.join(bad[:_NAMED])}"
