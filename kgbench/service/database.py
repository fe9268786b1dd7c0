"""The one SQLite file of a service: tokens and submissions. Written ahead (WAL) and synced before anything is said.

A server has one connection, which its threads share. ``kgbench token`` opens the same file beside it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kgbench.core.errors import UsageError
from kgbench.service.errors import ServiceError

FILE: Final = "service.sqlite"
_LOCK: Final = "serving"
"""File that a server has locked for as long as it runs."""
FORMAT: Final = 1
"""Version of the tables, stored as ``PRAGMA user_version``."""
BUSY_S: Final = 20.0
"""Seconds that a write waits for another process's."""
_TABLES: Final = """
CREATE TABLE tokens (
  name TEXT PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, rate INTEGER NOT NULL, per_s INTEGER NOT NULL,
  queue INTEGER NOT NULL, made REAL NOT NULL, revoked REAL
);
CREATE TABLE submissions (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, key TEXT NOT NULL,
  batch TEXT, problem TEXT NOT NULL, problem_sha256 TEXT NOT NULL, model TEXT NOT NULL, sample INTEGER NOT NULL,
  round INTEGER NOT NULL, practice INTEGER NOT NULL, timing INTEGER NOT NULL, source TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'judging', 'done')), attempts INTEGER NOT NULL DEFAULT 0,
  submitted REAL NOT NULL, started REAL, finished REAL, ended INTEGER UNIQUE, outcome TEXT, verdict TEXT,
  UNIQUE (owner, key)
);
CREATE INDEX by_state ON submissions (state, owner, number);
CREATE INDEX by_time ON submissions (owner, submitted);
CREATE INDEX by_batch ON submissions (batch, number) WHERE batch IS NOT NULL;
"""


class Database:
    """A connection with a lock, since SQLite has one writer anyway. Safe from any thread."""

    def __init__(self, folder: Path, *, make: bool = True) -> None:
        """Raises UsageError where the folder cannot be used, or where a newer kgbench made it."""
        self.path = folder / FILE
        self._lock = threading.RLock()
        if not make and not self.path.is_file():
            words = f"{folder}: no service has its data here; `kgbench token new NAME --data {folder}` makes it"
            raise UsageError("KGB705", words)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._connection = sqlite3.connect(
                self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False, cached_statements=64
            )
            self._connection.row_factory = sqlite3.Row
            self._prepare(folder)
        except (OSError, sqlite3.Error) as error:
            words = f"{folder}: cannot be used: {error}; give another folder with --data DIR"
            raise UsageError("KGB705", words) from error

    def _prepare(self, folder: Path) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        with self.transaction() as cursor:
            (version,) = cursor.execute("PRAGMA user_version").fetchone()
            if version > FORMAT:
                raise UsageError("KGB705", f"{folder}: written by a newer kgbench (format {version}); update kgbench")
            if version == 0:
                for statement in filter(str.strip, _TABLES.split(";")):
                    cursor.execute(statement)
                cursor.execute(f"PRAGMA user_version = {FORMAT}")

    @contextlib.contextmanager
    def transaction(self, *, synced: bool = True) -> Iterator[sqlite3.Cursor]:
        """A transaction: all of it is on disk when the block has ended, or nothing. Raises ServiceError where it cannot
        be written.

        ``synced``: False does not wait for the disk, for changes that are not acknowledged. They survive the process's
        end; a crash of the machine may undo them, never in part.
        """
        with self._lock:
            cursor = self._connection.cursor()
            try:
                cursor.execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
                cursor.execute("BEGIN IMMEDIATE")
                try:
                    yield cursor
                    cursor.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):
                        cursor.execute("ROLLBACK")
                    raise
            except sqlite3.OperationalError as error:
                words = f"the service cannot write its queue: {error}; nothing was taken. Try again later"
                raise ServiceError("KGB721", words, 503, 30) from error
            finally:
                cursor.close()

    def read(self, statement: str, *values: Any) -> list[sqlite3.Row]:
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def close(self) -> None:
        with self._lock:
            self._connection.close()


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[None]:
    """While the block lasts, no other server may work on the folder. Raises UsageError where one does."""
    fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            words = f"{folder}: another kgbench serve works on this folder; end it, or give another with --data DIR"
            raise UsageError("KGB704", words) from None
        yield
    finally:
        os.close(fd)
