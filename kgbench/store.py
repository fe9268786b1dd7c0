"""A run on disk: ``runs/<utc>-<id>/`` with run.json, results.jsonl, candidates/ and logs/. Nothing finished is lost.

* run.json is replaced whole (temporary file, fsync, rename). Until the run is over it holds only the hash of the seed.
* results.jsonl gets one line per candidate, one write and one fsync each. A killed run loses at most the line being
  written; a line that could not be written whole is cut off again.
* JSON is strict: a float that is not finite is written as the text ``nan``, ``inf`` or ``-inf``, a complex number as
  text. Reading turns the three texts back into floats inside timings, where numbers are needed.

What the lines mean as scores is ``scores.py``'s.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kgbench.errors import MachineError, UsageError
from kgbench.types import Result, result_from_json

FORMAT: Final = 1
RUN_FILE: Final = "run.json"
RESULTS_FILE: Final = "results.jsonl"
_ENDINGS: Final = {
    "running": "The run is still going, or was killed before it could say how it ended.",
    "interrupted": "The run was interrupted.",
    "failed": "The run was ended by an error.",
}
_NOT_FINITE: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class StoreError(UsageError):
    """A run folder cannot be made or read; exit code 2."""


class WriteError(MachineError):
    """A run folder that was made can no longer be written, for example on a full disk; exit code 3."""


@dataclass(frozen=True)
class StoredRun:
    """A run as read back."""

    path: Path
    info: dict[str, Any]
    results: tuple[Result, ...]
    notes: tuple[str, ...]
    """What was found damaged while reading, in words."""


class RunStore:
    """The one writer of a run folder."""

    def __init__(self, path: Path, info: Mapping[str, Any], *, made_out: bool = False) -> None:
        """Takes over an existing folder; ``create`` makes one."""
        self.path = path
        self._made_out = made_out
        self._info = dict(info)
        self._results_fd = os.open(path / RESULTS_FILE, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @classmethod
    def create(cls, out: Path, run_id: str, info: Mapping[str, Any], *, seed: str) -> RunStore:
        """Makes ``out/run_id`` and writes run.json with the seed's hash in place of the seed.

        Raises StoreError when the folder cannot be made or written.
        """
        path, made_out = out / run_id, not out.exists()
        try:
            out.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o700)  # a worker has a uid of its own where it can, and must not read seeds or results
            (path / "candidates").mkdir()
            (path / "logs").mkdir()
            info = {"format": FORMAT, "id": run_id, **info, "seed_sha256": sha256(seed), "seed": None}
            store = cls(path, info, made_out=made_out)
            store.update({})
            _sync_directory(out)
        except OSError as error:
            raise StoreError(
                f"{path}: cannot write a run here: {_words(error)}; give another folder with --out DIR"
            ) from error
        return store

    @property
    def info(self) -> dict[str, Any]:
        return dict(self._info)

    @property
    def log_dir(self) -> Path:
        return self.path / "logs"

    def update(self, changes: Mapping[str, Any]) -> None:
        """Merges ``changes`` into run.json. Raises OSError; the old file then stands as it was."""
        self._info = {**self._info, **changes}
        write_atomically(self.path / RUN_FILE, json_text(self._info, indent=2) + "\n")

    def save_candidate(self, problem_id: str, sample: int, text: str) -> Path:
        """Keeps the source as received. Raises WriteError."""
        path = self.path / "candidates" / f"{problem_id}.{sample}.py"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        except OSError as error:
            raise self._failure(path, error) from error
        return path

    def append(self, result: Result) -> None:
        """Appends one line and waits until it is on disk. Raises WriteError; earlier lines are then still whole."""
        line = (json_text(result.to_json()) + "\n").encode()
        end = os.fstat(self._results_fd).st_size
        try:
            _write_all(self._results_fd, line)
            os.fsync(self._results_fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._results_fd, end)
            raise self._failure(self.path / RESULTS_FILE, error) from error

    def discard(self) -> None:
        """Removes a run in which nothing was judged, and the folder of runs where this one made it."""
        os.close(self._results_fd)
        shutil.rmtree(self.path, ignore_errors=True)
        if self._made_out:
            with contextlib.suppress(OSError):
                self.path.parent.rmdir()

    def finish(self, status: str, *, finished: str, seed: str) -> None:
        """Closes the run: its status (``finished``, ``interrupted``, ``failed``), when, and now the seed itself."""
        try:
            self.update({"status": status, "finished": finished, "seed": seed})
        except OSError as error:
            raise self._failure(self.path / RUN_FILE, error) from error
        finally:
            os.close(self._results_fd)

    def _failure(self, path: Path, error: OSError) -> WriteError:
        return WriteError(f"{path}: cannot write: {_words(error)}; results finished before are kept in {self.path}")


def find_run(spelling: str, out: Path) -> Path:
    """The run folder that a path, ``last`` (the newest below ``out``) or the begin of an id means.

    An id may also begin at its token, behind the dash, since what stands before is only the time. Raises StoreError.
    """
    given = Path(spelling).expanduser()
    if spelling != "last" and (given.is_dir() or given.is_absolute()):
        return given
    names = sorted(path.parent.name for path in out.glob(f"*/{RUN_FILE}"))
    if not names:
        raise StoreError(
            f"there is no run '{spelling}', and none in {out}; name its folder, or where runs are: --out DIR"
        )
    if spelling == "last":
        return out / names[-1]  # a name begins with the time
    found = [name for name in names if any(part.startswith(spelling) for part in (name, name.partition("-")[2]))]
    if len(found) == 1:
        return out / found[0]
    if found:
        raise StoreError(f"'{spelling}' means {len(found)} runs: {', '.join(found[-5:])}; write more of the id")
    raise StoreError(f"there is no run '{spelling}' in {out}; the newest are {', '.join(names[-3:])}")


def read_run(path: Path, *, with_windows: bool = False) -> StoredRun:
    """Reads a run folder, also one whose run was killed. Raises StoreError when it is none or damaged in the middle.

    Raw samples (``Timing.windows``) are many and scores do not need them: they come only when asked for.
    """
    info = _read_info(path / RUN_FILE)
    results, notes = read_results(path / RESULTS_FILE, with_windows=with_windows)
    how_it_ended = _ENDINGS.get(info.get("status", ""))
    return StoredRun(path, info, results, (*notes, how_it_ended) if how_it_ended else notes)


def read_results(path: Path, *, with_windows: bool = False) -> tuple[tuple[Result, ...], tuple[str, ...]]:
    """(results, notes). A last line without its end is left out and noted; any other damage raises StoreError."""
    results: list[Result] = []
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    cut = f"{path.name}:{number}: the last line is cut off and left out: the run was killed there"
                    return tuple(results), (cut,)
                results.append(_read_line(path, number, line, with_windows=with_windows))
    except FileNotFoundError:
        return (), (f"{path.name} is missing: no candidate was finished",)
    except OSError as error:
        raise StoreError(f"{path}: cannot read: {_words(error)}") from error
    return tuple(results), ()


def json_text(value: object, *, indent: int | None = None) -> str:
    """Strict JSON: see the module's text for what happens to floats that are not finite."""
    return json.dumps(_strict(value), allow_nan=False, indent=indent, ensure_ascii=False)


def write_atomically(path: Path, text: str) -> None:
    """Replaces a file whole: a reader sees the old text or the new one."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        with temporary.open("wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read_info(path: Path) -> dict[str, Any]:
    try:
        info = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise StoreError(
            f"{path.parent}: not a run: it has no {RUN_FILE}; give a folder that kgbench run made"
        ) from error
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: cannot read: {error}") from error
    if not isinstance(info, dict) or not isinstance(info.get("format"), int):
        raise StoreError(f"{path}: not a run: the key `format` is missing")
    if info["format"] > FORMAT:
        raise StoreError(
            f"{path}: written by a newer kgbench (format {info['format']}, known {FORMAT}); update kgbench"
        )
    return info


def _read_line(path: Path, number: int, line: bytes, *, with_windows: bool) -> Result:
    try:
        data = json.loads(line)
        for case in data.get("cases", ()):
            if case.get("timing"):
                windows = case["timing"].get("windows", ()) if with_windows else ()
                case["timing"] = _with_floats({**case["timing"], "windows": windows})
        return result_from_json(data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(f"{path}:{number}: not a result: {error}") from error


def _with_floats(timing: dict[str, Any]) -> dict[str, Any]:
    return {key: _to_float(value) for key, value in timing.items()}


def _to_float(value: Any) -> Any:
    if isinstance(value, list):
        return [_to_float(entry) for entry in value]
    if isinstance(value, dict):
        return _with_floats(value)
    return _NOT_FINITE.get(value, value) if isinstance(value, str) else value


def _strict(value: Any) -> Any:
    match value:
        case None | bool() | int():
            return value
        case str():
            return value.encode("utf-8", "replace").decode()  # a lone surrogate from a candidate's text is no UTF-8
        case float():
            return value if math.isfinite(value) else str(value)
        case complex() | Path():
            return str(value)
        case Mapping():
            return {str(key): _strict(entry) for key, entry in value.items()}
        case list() | tuple():
            return [_strict(entry) for entry in value]
    raise TypeError(f"no JSON for {type(value).__name__}: {value!r}")


def _write_all(fd: int, data: bytes) -> None:
    written = os.write(fd, data)
    if written < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _words(error: OSError) -> str:
    return error.strerror or str(error)
