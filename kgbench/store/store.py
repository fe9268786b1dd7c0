"""A run on disk: ``runs/<utc>-<id>/`` with run.json, results, replies, candidates, logs. Nothing finished is lost.

* run.json is replaced whole (temporary file, fsync, rename). Its segments are the times that the run was begun or
  gone on with, each with a seed of its own, of which it holds only the hash until the segment is over.
* results.jsonl is locked by whoever writes the run.
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
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from kgbench.core.errors import MachineError, UsageError, numbered
from kgbench.core.files import sync_directory, write_atomically
from kgbench.core.types import Result, result_from_json
from kgbench.llm.conversation import Prompt, Question, Reply, Stop, Turn, Usage
from kgbench.problem.suites import SUITE_FILE

FORMAT: Final = 1
RUN_FILE: Final = "run.json"
RESULTS_FILE: Final = "results.jsonl"
REPLIES_DIR: Final = "replies"
_ENDINGS: Final = {
    "running": "The run is still going, or was killed before it could say how it ended.",
    "interrupted": "The run was interrupted.",
    "failed": "The run was ended by an error.",
    "incomplete": "The model left questions without a reply.",
    "generated": "The replies are there, and nothing is judged yet.",
}
_BLOCK_BYTES: Final = 1 << 16
_WINDOWS: Final = re.compile(rb'"windows": \[[^\]]*\]')
_NOT_FINITE: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_MARKS: Final = tuple(f'"{name}"'.encode() for name in _NOT_FINITE)
"""A line without any of them has no such number, which saves looking through all of its times."""


class StoreError(UsageError):
    """A run folder cannot be made or read; exit code 2."""


class NewerError(StoreError):
    """A run folder is a newer kgbench's; exit code 2."""


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


@dataclass(frozen=True)
class StoredReply:
    """What came of one question, and what was read from it."""

    reply: Reply | None
    """None where the provider refused the question."""
    code: str | None
    """The kernel; None where there is none."""
    why: str
    """How the kernel was found, or why there is none."""
    usd: float | None
    """None where the price is unknown."""
    prompt_sha256: str


class RunStore:
    """The one writer of a run folder."""

    def __init__(self, path: Path, info: Mapping[str, Any], *, made_out: bool = False) -> None:
        """Takes over an existing folder; ``create`` makes one."""
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
            path.mkdir(mode=0o700)  # a worker has a uid of its own where it can, and must not read seeds or results
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
                "KGB402", f"{path}: cannot write a run here: {_words(error)}; give another folder with --out DIR"
            ) from error
        return store

    @classmethod
    def reopen(cls, path: Path) -> RunStore:
        """Takes over a run that has ended, however that was; a last line that is cut off goes.

        Raises StoreError when there is no run, or when somebody writes it.
        """
        info = read_info(path)
        try:
            store = cls(path, info)
            os.ftruncate(store._results_fd, _whole_lines(store._results_fd))
        except OSError as error:
            raise StoreError("KGB403", f"{path}: cannot be written: {_words(error)}") from error
        return store

    def begin(self, changes: Mapping[str, Any], *, seed: str, started: str, command: Sequence[str]) -> None:
        """Goes on with a run that was reopened, with a new seed. Raises StoreError, WriteError on a full disk."""
        self._before = self.info
        segments = [
            {**each, "status": "killed"} if each["status"] == "running" else each
            for each in self._info.get("segments", ())
        ]
        try:
            self._info = {**self._info, **changes, "status": "running", "finished": None, "segments": segments}
            self._add_segment(seed, started, command)
        except OSError as error:
            os.close(self._results_fd)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise self._failure(self.path / RUN_FILE, error) from error
            raise StoreError("KGB403", f"{self.path}: cannot be written: {_words(error)}") from error

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
        """Keeps the source as received. Raises WriteError."""
        path = candidate_path(self.path, problem_id, sample, round)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "replace"))
        except OSError as error:
            raise self._failure(path, error) from error
        return path

    def save_reply(self, question: Question, reply: StoredReply) -> None:
        """Keeps what was asked and what came back, whole. From any thread. Raises WriteError."""
        name = _name(question.problem.id, question.sample, question.round)
        path = self.path / REPLIES_DIR / f"{name}.json"
        asked = {"prompt": asdict(question.prompt), "sampling": asdict(question.sampling)}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json_text({**asdict(reply), "asked": asked}, indent=1))
        except OSError as error:
            raise self._failure(path, error) from error

    def read_reply(self, problem_id: str, sample: int, round: int) -> StoredReply | None:
        """What was answered before; None where nothing was. Raises StoreError."""
        return read_reply(self.path, problem_id, sample, round)

    def agent_dir(self, problem_id: str, sample: int, round: int) -> Path:
        """Where an agent's own log belongs. Not made."""
        return self.path / "agents" / _name(problem_id, sample, round)

    def save_suite(self, text: str) -> None:
        """Keeps what is judged in place of the problems' own cases. Raises WriteError."""
        try:
            write_atomically(self.path / SUITE_FILE, text)
        except OSError as error:
            raise self._failure(self.path / SUITE_FILE, error) from error

    def append(self, result: Result) -> None:
        """Appends one line and waits until it is on disk. Raises WriteError; earlier lines are then still whole."""
        segments = self._info.get("segments")
        stamped = replace(result, seed=segments[-1]["seed_sha256"]) if segments else result
        line = (json_text(stamped.to_json()) + "\n").encode()
        end = os.fstat(self._results_fd).st_size
        try:
            _write_all(self._results_fd, line)
            os.fsync(self._results_fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._results_fd, end)
            raise self._failure(self.path / RESULTS_FILE, error) from error

    def discard(self) -> None:
        """Removes a run in which nothing was judged, and the folder of runs where this one made it.

        A run that was gone on with is again as it was.
        """
        if self._before is not None:
            with contextlib.suppress(OSError):
                write_atomically(self.path / RUN_FILE, json_text(self._before, indent=2) + "\n")
        os.close(self._results_fd)
        if self._before is not None:
            return
        _remove(self.path, and_parent=self._made_out)

    def finish(self, status: str, *, finished: str, seed: str) -> None:
        """Closes the run: its status (``finished``, ``interrupted``, ``failed``), when, and now the seed itself."""
        *earlier, last = self._info["segments"]
        last = {**last, "status": status, "finished": finished, "seed": seed}
        try:
            self.update({"status": status, "finished": finished, "segments": [*earlier, last]})
        finally:
            self.release()

    def close(self, *, finished: bool = False) -> None:
        """Leaves a run that was reopened and had nothing to do; ``finished``: say so where it did not yet."""
        try:
            if finished and self._info.get("status") != "finished":
                self.update({"status": "finished"})
        finally:
            self.release()

    def release(self) -> None:
        """Lets somebody else write the run."""
        if self._results_fd >= 0:
            os.close(self._results_fd)
            self._results_fd = -1

    def _failure(self, path: Path, error: OSError) -> WriteError:
        return WriteError(
            "KGB413", f"{path}: cannot write: {_words(error)}; results finished before are kept in {self.path}"
        )


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
            "KGB404", f"there is no run '{spelling}', and none in {out}; name its folder, or where runs are: --out DIR"
        )
    if spelling == "last":
        return out / names[-1]  # a name begins with the time
    found = [name for name in names if any(part.startswith(spelling) for part in (name, name.partition("-")[2]))]
    if len(found) == 1:
        return out / found[0]
    if found:
        raise StoreError(
            "KGB405", f"'{spelling}' means {len(found)} runs: {', '.join(found[-5:])}; write more of the id"
        )
    raise StoreError("KGB406", f"there is no run '{spelling}' in {out}; the newest are {', '.join(names[-3:])}")


def read_run(path: Path, *, with_windows: bool = False) -> StoredRun:
    """Reads a run folder, also one whose run was killed or whose files are damaged in part, and notes what is missing.

    Raw samples (``Timing.windows``) are many and scores do not need them: they come only when asked for. Raises
    StoreError where there is no run, where nothing of it can be read, and where a newer kgbench wrote it.
    """
    info, notes = _info_or_none(path)
    results, unread = read_results(path / RESULTS_FILE, with_windows=with_windows)
    info = _info_of(path, results) if info is None else info
    notes = (*notes, *unread)
    if "segments" not in info and info.get("status"):
        words = (
            f"{path}: written by an older kgbench ({info.get('kgbench')}) that kept no policy, evidence, prompts or "
            f"seeds; all that it kept is shown. `kgbench run --model dir:{path / 'candidates'}` judges its kernels anew"
        )
        notes = (numbered("KGB627", words), *notes)
    how_it_ended = _ENDINGS.get(info.get("status", ""), "" if results else "The run ended without a result.")
    if how_it_ended and info.get("status"):
        command = "evaluate" if info["status"] == "generated" else "run --resume"
        words = f"{how_it_ended} `kgbench {command} {path}` does what is missing."
        notes = (*notes, numbered("KGB609", words))
    return StoredRun(path, info, results, notes)


def _info_or_none(path: Path) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """What run.json says; None with a note where it cannot be read and there are results. Raises StoreError."""
    try:
        return read_info(path), ()
    except NewerError:
        raise
    except StoreError as error:
        if not (path / RESULTS_FILE).is_file():
            raise
        words = (
            f"{error}. Its results are shown all the same: which problems were asked for, on which machine and with "
            "which versions is not known, and shares are of the problems that have a result."
        )
        return None, (numbered("KGB614", words),)


def _info_of(path: Path, results: Sequence[Result]) -> dict[str, Any]:
    """The little that results say about the run that they are of."""
    kinds = {result.problem: result.kind for result in results}
    problems = [{"id": name, "kind": kind} for name, kind in kinds.items()]
    models = sorted({result.model for result in results})
    samples = max((result.sample + 1 for result in results), default=1)
    return {"format": FORMAT, "id": path.name, "model": ", ".join(models), "samples": samples, "problems": problems}


def read_reply(run: Path, problem_id: str, sample: int, round: int) -> StoredReply | None:
    """A stored reply of a run; None where there is none. Raises StoreError when its file is damaged."""
    path = run / REPLIES_DIR / f"{_name(problem_id, sample, round)}.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        reply = data["reply"]
        if reply is not None:
            reply = Reply(**{**reply, "stop": Stop(reply["stop"]), "usage": Usage(**reply["usage"])})
        return StoredReply(reply, data["code"], data["why"], data["usd"], data["prompt_sha256"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        words = f"{path}: no stored reply can be read: {error}; remove the file, and the question is asked again"
        raise StoreError("KGB560", words) from error


def read_prompt(run: Path, problem_id: str, sample: int, round: int = 0) -> Prompt | None:
    """What was asked for a sample; None where nothing was, or where that cannot be read any more."""
    path = run / REPLIES_DIR / f"{_name(problem_id, sample, round)}.json"
    try:
        said = json.loads(path.read_text(encoding="utf-8"))["asked"]["prompt"]
        return Prompt(said["system"], tuple(Turn(**turn) for turn in said["turns"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def candidate_path(run: Path, problem_id: str, sample: int, round: int = 0) -> Path:
    """Where a run keeps a candidate, whether it is there or not."""
    return run / "candidates" / f"{_name(problem_id, sample, round)}.py"


def _name(problem_id: str, sample: int, round: int) -> str:
    """``aten/add.0`` and, of a further round, ``aten/add.0.round1``, below the folder of its kind."""
    return f"{problem_id}.{sample}" + (f".round{round}" if round else "")


def read_results(
    path: Path, *, with_windows: bool = False, again: str = "run --resume"
) -> tuple[tuple[Result, ...], tuple[str, ...]]:
    """(results, notes). Lines that cannot be read are left out and noted. Raises StoreError where no line can be.

    ``again`` is the command that makes such lines anew.
    """
    results: list[Result] = []
    damaged: list[StoreError] = []
    notes: list[str] = []
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    cut = f"{path.name}:{number}: the last line is cut off and left out: the run was killed there"
                    notes.append(numbered("KGB607", f"{cut}; `kgbench {again} {path.parent}` judges it again"))
                    continue
                try:
                    results.append(_read_line(path, number, line, with_windows=with_windows))
                except StoreError as error:
                    damaged.append(error)
    except FileNotFoundError:
        return (), (_no_results(path, "missing"),)
    except OSError as error:
        raise StoreError("KGB407", f"{path}: cannot read: {_words(error)}") from error
    if damaged and not results:
        raise damaged[0]
    if damaged:
        words = (
            f"{damaged[0]}; {len(damaged)} of {len(damaged) + len(results)} lines cannot be read and are left out; "
            f"`kgbench {again} {path.parent}` judges what they were about again"
        )
        notes.append(numbered("KGB615", words))
    if not results and not notes:
        notes.append(_no_results(path, "empty"))
    return tuple(results), tuple(notes)


def _no_results(path: Path, state: str) -> str:
    return numbered("KGB608", f"{path.name} is {state}: no candidate was finished")


def json_text(value: object, *, indent: int | None = None) -> str:
    """Strict JSON: see the module's text for what happens to floats that are not finite."""
    return json.dumps(_strict(value), allow_nan=False, indent=indent, ensure_ascii=False)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read_info(run: Path) -> dict[str, Any]:
    """What run.json says. Raises StoreError."""
    path = run / RUN_FILE
    try:
        info = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise StoreError(
            "KGB408", f"{path.parent}: not a run: it has no {RUN_FILE}; give a folder that kgbench run made"
        ) from error
    except (OSError, ValueError) as error:
        words = f"{path}: cannot read: {error}; restore it from a copy, or remove the folder"
        raise StoreError("KGB409", words) from error
    if not isinstance(info, dict) or not isinstance(info.get("format"), int):
        raise StoreError(
            "KGB410", f"{path}: not a run: the key `format` is missing; give a folder that kgbench run made"
        )
    if info["format"] > FORMAT:
        raise NewerError(
            "KGB411", f"{path}: written by a newer kgbench (format {info['format']}, known {FORMAT}); update kgbench"
        )
    return info


def _read_line(path: Path, number: int, line: bytes, *, with_windows: bool) -> Result:
    try:
        data = _without_windows(line) if not with_windows else json.loads(line)
        for case in data.get("cases", ()) if any(mark in line for mark in _MARKS) else ():
            if case.get("timing"):
                case["timing"] = _with_floats(case["timing"])
        return result_from_json(data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError("KGB412", f"{path}:{number}: not a result: {_why_not(error)}") from error


def _without_windows(line: bytes) -> Any:
    """They are most of a line. No candidate's text can look like this, since its quotes are escaped."""
    try:
        return json.loads(_WINDOWS.sub(b'"windows": []', line))
    except ValueError:
        return json.loads(line)  # windows of the first runs had lists in them


def _why_not(error: Exception) -> str:
    """A missing key is all that a KeyError says."""
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)


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


def _lock(fd: int) -> None:
    """Raises BlockingIOError when somebody else has it. A file system that knows no locks is written without one."""
    import fcntl  # not on Windows, where runs are only read

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return


def _whole_lines(fd: int) -> int:
    """Bytes up to the end of the last line that has one."""
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
    """A run that never began, and the folder of runs where it was made for it."""
    shutil.rmtree(path, ignore_errors=True)
    if and_parent:
        with contextlib.suppress(OSError):
            path.parent.rmdir()


def _words(error: OSError) -> str:
    return error.strerror or str(error)
