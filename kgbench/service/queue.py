"""The queue of submissions. An acknowledged submission is on disk.

A submission is queued, then judging, then done; it becomes done once, with the verdict in the same write. Those that a
killed server left judging are queued again when the next one starts.
"""

from __future__ import annotations

import math
import secrets
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from kgbench.service.database import Database
from kgbench.service.errors import ServiceError
from kgbench.service.tokens import LOCAL, Caller
from kgbench.store.encoding import sha256

MOST_ATTEMPTS: Final = 10
"""How often a server may end while it judges a submission before that one is given up."""
_RETRY_S: Final = 10
"""Seconds after which a full queue may have room, where nothing is known of how fast it moves."""
_WITHOUT_VERDICT: Final = "SELECT count(*) FROM submissions WHERE owner = ? AND state != 'done'"
_NEXT: Final = f"""
SELECT min(number) AS number,
  (SELECT count(*) FROM submissions WHERE state = 'judging' AND owner = waiting.owner) AS busy
FROM submissions AS waiting
WHERE state = 'queued' AND (owner = '{LOCAL}' OR owner IN (SELECT name FROM tokens WHERE revoked IS NULL))
GROUP BY owner ORDER BY busy, number LIMIT 1
"""
"""The oldest submission of the owner with the fewest being judged, so that a long batch delays nobody. Those of a
withdrawn token wait.
"""


@dataclass(frozen=True)
class Wanted:
    """A submission as it was sent."""

    problem: str
    problem_sha256: str
    source: str
    key: str = ""
    """The same key again is the same submission, so that a request whose answer was lost may be sent again."""
    model: str = ""
    sample: int = 0
    round: int = 0
    practice: bool = False
    timing: bool = True


@dataclass(frozen=True)
class Submission:
    """A stored submission."""

    number: int
    id: str
    owner: str
    batch: str | None
    problem: str
    problem_sha256: str
    model: str
    sample: int
    round: int
    practice: bool
    timing: bool
    source: str
    sha256: str
    state: str
    attempts: int
    submitted: float
    """Seconds since 1970, as the others."""
    started: float | None
    finished: float | None
    ended: int | None
    """Which verdict of the service it was, from 1."""
    outcome: str | None
    verdict: str | None
    """JSON of what its author may be told."""


class Queue:
    """The submissions of one service."""

    def __init__(self, database: Database, most: int = 20_000) -> None:
        """``most``: submissions without a verdict that all callers together may have."""
        self._database = database
        self._most = most

    def recover(self) -> int:
        """Queue again what a server was judging when it ended. Returns their number."""
        with self._database.transaction() as cursor:
            cursor.execute("UPDATE submissions SET state = 'queued' WHERE state = 'judging'")
            return cursor.rowcount

    def submit(self, caller: Caller, wanted: Sequence[Wanted], batch: str | None = None) -> list[tuple[str, bool]]:
        """(id, new) of each, all of them or none. Raises ServiceError above a quota."""
        now, taken = time.time(), []
        with self._database.transaction() as cursor:
            known = {each.key: self._known(cursor, caller, each) for each in wanted if each.key}
            fresh = [each for each in wanted if not known.get(each.key)]
            self._check_quotas(cursor, caller, len(fresh), now)
            for each in wanted:
                found = known.get(each.key) if each.key else None
                name = found or secrets.token_hex(16)
                if not found:
                    _insert(cursor, name, caller, each, batch, now)
                    if each.key:
                        known[each.key] = name
                taken.append((name, not found))
        return taken

    def _known(self, cursor: sqlite3.Cursor, caller: Caller, each: Wanted) -> str | None:
        statement = "SELECT id, problem, sha256 FROM submissions WHERE owner = ? AND key = ?"
        row = cursor.execute(statement, (caller.name, each.key)).fetchone()
        if row is None:
            return None
        if (row["problem"], row["sha256"]) != (each.problem, sha256(each.source)):
            words = f"the key {each.key!r} was given to another kernel before; give each submission a key of its own"
            raise ServiceError("KGB714", words, 409)
        return str(row["id"])

    def _check_quotas(self, cursor: sqlite3.Cursor, caller: Caller, count: int, now: float) -> None:
        if not count:
            return
        (mine,) = cursor.execute(_WITHOUT_VERDICT, (caller.name,)).fetchone()
        if mine + count > caller.queue:
            room = mine + count - caller.queue
            words = (
                f"{caller.name} has {mine} submissions without a verdict and may have {caller.queue}: "
                f"{count} more do not fit"
            )
            raise ServiceError("KGB712", words, 429, self._seconds_for(cursor, room))
        (all_waiting,) = cursor.execute("SELECT count(*) FROM submissions WHERE state != 'done'").fetchone()
        if all_waiting + count > self._most:
            words = f"the service has {all_waiting} submissions without a verdict and takes {self._most}"
            raise ServiceError("KGB712", words, 429, self._seconds_for(cursor, all_waiting + count - self._most))
        if caller.rate is not None:
            _check_rate(cursor, caller, count, now)

    def _seconds_for(self, cursor: sqlite3.Cursor, verdicts: int) -> int:
        """Estimated seconds for so many verdicts, from the last ones."""
        statement = "SELECT finished FROM submissions WHERE ended IS NOT NULL ORDER BY ended DESC LIMIT 50"
        last = [row["finished"] for row in cursor.execute(statement)]
        each_s = (last[0] - last[-1]) / (len(last) - 1) if len(last) > 1 else _RETRY_S
        return max(1, min(600, math.ceil(each_s * verdicts)))

    def claim(self) -> Submission | None:
        """Takes the next one to judge; None where nothing waits."""
        # Not synced: a machine that ends undoes the claim, and what it was judging is queued again anyway.
        with self._database.transaction(synced=False) as cursor:
            row = cursor.execute(_NEXT).fetchone()
            if row is None:
                return None
            change = "UPDATE submissions SET state = 'judging', started = ?, attempts = attempts + 1 WHERE number = ?"
            cursor.execute(change, (time.time(), row["number"]))
            found = cursor.execute("SELECT * FROM submissions WHERE number = ?", (row["number"],)).fetchone()
        return _submission(found)

    def finish(self, submission: Submission, outcome: str, verdict: str) -> bool:
        """Store a verdict, once. Returns False where the submission has one or was started again: this one is
        discarded.
        """
        with self._database.transaction() as cursor:
            cursor.execute(
                "UPDATE submissions SET state = 'done', finished = ?, outcome = ?, verdict = ?, "
                "ended = (SELECT coalesce(max(ended), 0) + 1 FROM submissions) "
                "WHERE number = ? AND state = 'judging' AND attempts = ?",
                (time.time(), outcome, verdict, submission.number, submission.attempts),
            )
            return cursor.rowcount == 1

    def put_back(self, submission: Submission) -> None:
        """Queue a submission again that was not judged, because the server ends in order."""
        with self._database.transaction() as cursor:
            cursor.execute(
                "UPDATE submissions SET state = 'queued', attempts = attempts - 1 "
                "WHERE number = ? AND state = 'judging' AND attempts = ?",
                (submission.number, submission.attempts),
            )

    def get(self, name: str, owner: str) -> Submission:
        """Raises ServiceError where the owner has no such submission."""
        rows = self._database.read("SELECT * FROM submissions WHERE id = ? AND owner = ?", name, owner)
        if not rows:
            raise ServiceError("KGB716", f"{owner} has no submission {name!r}", 404)
        return _submission(rows[0])

    def batch(self, name: str, owner: str, after: int = 0) -> list[Submission]:
        """Its submissions in their order; ``after`` leaves out verdicts up to that one. Raises ServiceError."""
        rows = self._database.read(
            "SELECT * FROM submissions WHERE batch = ? AND owner = ? ORDER BY number", name, owner
        )
        if not rows:
            raise ServiceError("KGB716", f"{owner} has no batch {name!r}", 404)
        found = map(_submission, rows)
        return [each for each in found if each.ended is None or each.ended > after]

    def newest(self, owner: str, limit: int, before: int | None = None) -> list[Submission]:
        """An owner's last ones, the newest first; ``before`` a number goes on further down."""
        bound = before if before is not None else 1 << 62
        statement = "SELECT * FROM submissions WHERE owner = ? AND number < ? ORDER BY number DESC LIMIT ?"
        return list(map(_submission, self._database.read(statement, owner, bound, limit)))

    def counts(self) -> dict[str, int]:
        """By state."""
        rows = self._database.read("SELECT state, count(*) AS n FROM submissions GROUP BY state")
        return {"queued": 0, "judging": 0, "done": 0, **{row["state"]: row["n"] for row in rows}}

    def outcomes(self) -> dict[str, int]:
        """Verdicts by outcome."""
        rows = self._database.read(
            "SELECT outcome, count(*) AS n FROM submissions WHERE state = 'done' GROUP BY outcome"
        )
        return {row["outcome"]: row["n"] for row in rows}

    def oldest_s(self) -> float:
        """Seconds that the oldest one waits; 0 where none does."""
        (row,) = self._database.read("SELECT min(submitted) AS first FROM submissions WHERE state = 'queued'")
        return 0.0 if row["first"] is None else max(0.0, time.time() - row["first"])

    def forget(self, days: float) -> int:
        """Delete submissions whose verdict is older. Returns their number."""
        with self._database.transaction() as cursor:
            bound = time.time() - days * 86400
            cursor.execute("DELETE FROM submissions WHERE state = 'done' AND finished < ?", (bound,))
            return cursor.rowcount


def _check_rate(cursor: sqlite3.Cursor, caller: Caller, count: int, now: float) -> None:
    rate = caller.rate
    assert rate is not None
    since = now - rate.per_s
    statement = "SELECT submitted FROM submissions WHERE owner = ? AND submitted > ? ORDER BY submitted"
    times = [row["submitted"] for row in cursor.execute(statement, (caller.name, since))]
    too_many = len(times) + count - rate.count
    if too_many <= 0:
        return
    words = f"{caller.name} may submit {rate}, and {count} on top of the {len(times)} recent ones would be too many"
    if count > rate.count:
        raise ServiceError("KGB711", f"{words}: submit at most {rate.count} at once", 429, rate.per_s)
    wait_s = times[too_many - 1] + rate.per_s - now
    raise ServiceError("KGB711", words, 429, max(1, math.ceil(wait_s)))


def _insert(cursor: sqlite3.Cursor, name: str, caller: Caller, each: Wanted, batch: str | None, now: float) -> None:
    values = {
        "id": name, "owner": caller.name, "key": each.key or name, "batch": batch, "problem": each.problem,
        "problem_sha256": each.problem_sha256, "model": each.model, "sample": each.sample, "round": each.round,
        "practice": each.practice, "timing": each.timing, "source": each.source, "sha256": sha256(each.source),
        "submitted": now, "state": "queued",
    }  # fmt: skip
    places = ", ".join("?" * len(values))
    cursor.execute(f"INSERT INTO submissions ({', '.join(values)}) VALUES ({places})", tuple(values.values()))


def _submission(row: sqlite3.Row) -> Submission:
    values: dict[str, Any] = {each.name: row[each.name] for each in fields(Submission)}
    flags = {name: bool(values[name]) for name in ("practice", "timing")}
    return Submission(**{**values, **flags})
