"""The self-test that stands beside a published run: what ``kgbench selftest null|exploits --json`` printed that day."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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
APART: Final = timedelta(hours=12)
"""Most time between a run's start or end and the end of a self-test that counts for it."""
_OF_THE_MACHINE: Final = ("kept",)
"""Keys that name files of the machine and are not published."""


@dataclass(frozen=True)
class Evidence:
    """One part of the self-test, as read from a file."""

    part: str
    path: Path
    data: Mapping[str, Any] | None
    """None where the file is missing or cannot be read."""
    unread: str = ""
    """Why, in words."""

    def published(self) -> dict[str, Any]:
        """The part of the data that is published."""
        return {key: value for key, value in (self.data or {}).items() if key not in _OF_THE_MACHINE}


def read_evidence(part: str, path: Path) -> Evidence:
    """Read a part's file. Never raises: a check reports what is missing."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Evidence(part, path, None, "it is missing")
    except (OSError, ValueError) as error:
        return Evidence(part, path, None, f"it cannot be read: {error}")
    if not isinstance(data, dict):
        return Evidence(part, path, None, "it is no JSON object")
    return Evidence(part, path, data)


def wrong_with(evidence: Evidence, ran: Sequence[str], device: str) -> Iterator[str]:
    """Why the self-test is not valid for a run on ``device``; ``ran``: when it started and ended, as ISO texts."""
    data = evidence.data
    if data is None:
        yield evidence.unread
        return
    if data.get("status") != "finished":
        yield f"it was not finished: {data.get('status')}"
    ended, times = _time(data.get("finished")), [time for time in map(_time, ran) if time is not None]
    if ended is None or not any(abs(ended - time) <= APART for time in times):
        words, apart = " to ".join(map(str, times)) or "an unknown time", APART.total_seconds() / 3600
        yield f"it is of {ended or 'an unknown time'}, the run of {words}: over {apart:g} h apart"
    if data.get("device") != device:
        yield f"it is of the device {data.get('device')}, the run of {device}"
    try:
        yield from (_null if evidence.part == NULL else _exploits)(data)
    except (KeyError, TypeError, AttributeError) as error:
        yield f"it is not what `kgbench selftest {evidence.part} --json` prints: {error}"


def _time(text: object) -> datetime | None:
    """A time as run.json has it; None where there is none."""
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def _null(data: Mapping[str, Any]) -> Iterator[str]:
    rows = data["problems"]
    runs = {row["run"] for row in rows}
    faster = [row["problem"] for row in rows if row["low"] > 1]
    if not rows:
        yield "it has timed no library"
    if len(faster) > allowed_faster(len(runs)):
        yield f"noise alone calls {len(faster)} libraries faster: {', '.join(faster[:5])}"


def _exploits(data: Mapping[str, Any]) -> Iterator[str]:
    states = {row["name"]: row["state"] for row in data["rows"]}
    if missing := [each.name for each in read_exploits() if each.name not in states]:
        yield f"{number_of(len(missing), 'exploit')} not tried: {', '.join(missing[:5])}"
    if bad := [name for name, state in states.items() if state in (MISSED, BROKEN)]:
        yield f"{number_of(len(bad), 'exploit')} not caught: {', '.join(bad[:5])}"
