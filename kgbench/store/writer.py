"""Writes a run folder. A finished result is on disk before the run goes on.

* run.json is replaced whole (temporary file, fsync, rename). It has one segment for each time that the run was started
  or resumed. Each segment has its own seed. Until the segment ends, run.json holds only the seed's hash.
* The process that writes the run holds a lock on results.jsonl.
* results.jsonl gets one line per result. Each append is one write and one fsync. A killed run loses at most what is
  being appended. When an append fails, the file is truncated to its length before.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from kgbench.core.files import sync_directory, write_atomically
from kgbench.core.types import Result
from kgbench.llm.conversation import Question
from kgbench.problem.suites import SUITE_FILE
from kgbench.store.encoding import json_text, sha256
from kgbench.store.errors import StoreError, WriteError, reason
from kgbench.store.layout import (
    FORMAT,
    PACKED_RESULTS_FILE,
    REPLIES_DIR,
    RESULTS_FILE,
    RUN_FILE,
    candidate_path,
    sample_name,
)
from kgbench.store.reader import read_info
from kgbench.store.replies import StoredReply, read_reply

_BLOCK_BYTES: Final = 1 << 16
"""Bytes per read when results.jsonl is searched backwards for its last newline."""


MADE_WITH: Final = ("kgbench", "device", "packages")
"""Keys of run.json that describe the last segment; an earlier segment has its own."""


class RunStore:
    """Writes one run folder; a lock keeps a second writer out."""

    def __init__(self, path: Path, info: Mapping[str, Any], *, made_out: bool = False) -> None:
        """Opens and locks an existing folder; ``create`` makes one.

        Raises StoreError when another process writes it.
        """
        self.path = path
        self._made_out = made_out
        self._info = dict(info)
        self._before: dict[str, Any] | None = None
        self._results_fd = os.open(path / RESULTS_FILE, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(self._results_fd)
        except BlockingIOError:
            os.close(self._results_fd)
            raise StoreError(
                "KGB401", f"{path}: another kgbench is writing this run; wait until it has ended"
            ) from None

    @classmethod
    def create(cls, out: Path, run_id: str, info: Mapping[str, Any], *, seed: str) -> RunStore:
        """Makes ``out/run_id`` and writes run.json with the seed's hash in place of the seed.

        Raises StoreError when the folder cannot be made or written.
        """
        path, made_out, made = out / run_id, not out.exists(), False
        try:
            out.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o700)  # a worker with its own uid must not read seeds or results
            made = True
            (path / "candidates").mkdir()
            (path / "logs").mkdir()
            info = {"format": FORMAT, "id": run_id, "status": "running", "finished": None, **info}
            store = cls(path, info, made_out=made_out)
            store._add_segment(seed, info.get("started"), info.get("command"))
            sync_directory(out)
        except OSError as error:
            if made:
                _remove(path, and_parent=made_out)
            raise StoreError(
                "KGB402", f"{path}: cannot write a run here: {reason(error)}; give another folder with --out DIR"
            ) from error
        return store

    @classmethod
    def reopen(cls, path: Path) -> RunStore:
        """Opens a run that is no longer being written, and removes an incomplete last line of its results.

        Raises StoreError when there is no run, when it is a published one, when another process writes it, or when
        it cannot be written.
        """
        info = read_info(path)
        if (path / PACKED_RESULTS_FILE).exists():
            words = f"{path}: a published run stays as it is; `kgbench reproduce {path}` judges it again"
            raise StoreError("KGB430", words)
        try:
            store = cls(path, info)
            os.ftruncate(store._results_fd, _whole_lines(store._results_fd))
        except OSError as error:
            raise StoreError("KGB403", f"{path}: cannot be written: {reason(error)}") from error
        return store

    def begin(self, changes: Mapping[str, Any], *, seed: str, started: str, command: Sequence[str]) -> None:
        """Starts a new segment, with a new seed, of a reopened run.

        Raises WriteError on a full disk, and StoreError when run.json cannot be written for another reason.
        """
        self._before = self.info
        segments = [
            {**each, "status": "killed"} if each["status"] == "running" else each
            for each in self._info.get("segments", ())
        ]
        if segments:
            segments[-1] = segments[-1] | {key: self._info.get(key) for key in MADE_WITH}
        try:
            self._info = {**self._info, **changes, "status": "running", "finished": None, "segments": segments}
            self._add_segment(seed, started, command)
        except OSError as error:
            os.close(self._results_fd)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise self._failure(self.path / RUN_FILE, error) from error
            raise StoreError("KGB403", f"{self.path}: cannot be written: {reason(error)}") from error

    def _add_segment(self, seed: str, started: str | None, command: Sequence[str] | None) -> None:
        new = {"started": started, "finished": None, "status": "running", "command": command}
        new |= {"seed_sha256": sha256(seed), "seed": None}
        self._write_info({"segments": [*self._info.get("segments", ()), new]})

    @property
    def info(self) -> dict[str, Any]:
        return dict(self._info)

    @property
    def log_dir(self) -> Path:
        return self.path / "logs"

    def update(self, changes: Mapping[str, Any]) -> None:
        """Merges ``changes`` into run.json. Raises WriteError; the old file then stands as it was."""
        try:
            self._write_info(changes)
        except OSError as error:
            raise self._failure(self.path / RUN_FILE, error) from error

    def _write_info(self, changes: Mapping[str, Any]) -> None:
        self._info = {**self._info, **changes}
        write_atomically(self.path / RUN_FILE, json_text(self._info, indent=2) + "\n")

    def save_candidate(self, problem_id: str, sample: int, text: str, round: int = 0) -> Path:
        """Stores a candidate's source as received, and returns its path. Raises WriteError."""
        path = candidate_path(self.path, problem_id, sample, round)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "replace"))
        except OSError as error:
            raise self._failure(path, error) from error
        return path

    def save_reply(self, question: Question, reply: StoredReply) -> None:
        """Stores the whole prompt and the whole reply. Any thread may call this. Raises WriteError."""
        name = sample_name(question.problem.id, question.sample, question.round)
        path = self.path / REPLIES_DIR / f"{name}.json"
        asked = {"prompt": asdict(question.prompt), "sampling": asdict(question.sampling)}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json_text({**asdict(reply), "asked": asked}, indent=1))
        except OSError as error:
            raise self._failure(path, error) from error

    def read_reply(self, problem_id: str, sample: int, round: int) -> StoredReply | None:
        """The stored reply; None when there is none. Raises StoreError."""
        return read_reply(self.path, problem_id, sample, round)

    def agent_dir(self, problem_id: str, sample: int, round: int) -> Path:
        """Folder for an agent's own log. This does not create it."""
        return self.path / "agents" / sample_name(problem_id, sample, round)

    def save_suite(self, text: str) -> None:
        """Stores the suite, whose calls are judged in place of the problems' own cases. Raises WriteError."""
        try:
            write_atomically(self.path / SUITE_FILE, text)
        except OSError as error:
            raise self._failure(self.path / SUITE_FILE, error) from error

    @property
    def seed_sha256(self) -> str:
        """SHA-256 of the current segment's seed; empty in a run that an older version wrote without segments."""
        segments = self._info.get("segments")
        return str(segments[-1]["seed_sha256"]) if segments else ""

    def append(self, *results: Result) -> None:
        """Appends one line per result and waits until all are on disk.

        Raises WriteError. The file then has its earlier lines only.
        """
        lines = "".join(json_text(result.to_json()) + "\n" for result in results).encode()
        end = os.fstat(self._results_fd).st_size
        try:
            _write_all(self._results_fd, lines)
            os.fsync(self._results_fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._results_fd, end)
            raise self._failure(self.path / RESULTS_FILE, error) from error

    def discard(self) -> None:
        """Removes a run in which nothing was judged, and its parent folder if ``create`` made that.

        A reopened run is not removed: its run.json gets its former content.
        """
        if self._before is not None:
            with contextlib.suppress(OSError):
                write_atomically(self.path / RUN_FILE, json_text(self._before, indent=2) + "\n")
        os.close(self._results_fd)
        if self._before is not None:
            return
        _remove(self.path, and_parent=self._made_out)

    def finish(self, status: str, *, finished: str, seed: str) -> None:
        """Ends the run: writes its status (``finished``, ``interrupted``, ``failed``), its end time and its seed.

        Raises WriteError. The lock is released in any case.
        """
        *earlier, last = self._info["segments"]
        last = {**last, "status": status, "finished": finished, "seed": seed}
        try:
            self.update({"status": status, "finished": finished, "segments": [*earlier, last]})
        finally:
            self.release()

    def close(self, *, finished: bool = False) -> None:
        """Closes a reopened run that had nothing left to judge. Raises WriteError.

        finished: also sets the status to ``finished``.
        """
        try:
            if finished and self._info.get("status") != "finished":
                self.update({"status": "finished"})
        finally:
            self.release()

    def release(self) -> None:
        """Closes results.jsonl and so releases the lock. A second call does nothing."""
        if self._results_fd >= 0:
            os.close(self._results_fd)
            self._results_fd = -1

    def _failure(self, path: Path, error: OSError) -> WriteError:
        return WriteError(
            "KGB413", f"{path}: cannot write: {reason(error)}; results finished before are kept in {self.path}"
        )


def _lock(fd: int) -> None:
    """Locks a file. Raises BlockingIOError when another process holds the lock.

    A file system without locks is written without one.
    """
    import fcntl  # not on Windows, where runs are only read

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return


def _whole_lines(fd: int) -> int:
    """Length of the file in bytes up to and including its last newline."""
    end = os.fstat(fd).st_size
    while end > 0:
        begin = max(0, end - _BLOCK_BYTES)
        found = os.pread(fd, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


def _write_all(fd: int, data: bytes) -> None:
    written = os.write(fd, data)
    if written < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _remove(path: Path, *, and_parent: bool) -> None:
    """Removes a run's folder; ``and_parent``: also its parent folder, if that is then empty."""
    shutil.rmtree(path, ignore_errors=True)
    if and_parent:
        with contextlib.suppress(OSError):
            path.parent.rmdir()
