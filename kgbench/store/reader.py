"""Reads a run folder, even a partly damaged one."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from kgbench.core.errors import numbered
from kgbench.core.types import Result, result_from_json
from kgbench.store.encoding import NOT_FINITE_BYTES, with_floats
from kgbench.store.errors import NewerError, StoreError, reason
from kgbench.store.layout import FORMAT, PACKED_RESULTS_FILE, RESULTS_FILE, RUN_FILE

_NOT_FINISHED: Final = {
    "running": "The run is still going, or was killed before it could say how it ended.",
    "interrupted": "The run was interrupted.",
    "failed": "The run was ended by an error.",
    "incomplete": "The model left questions without a reply.",
    "partial": "Parts of the merged run are missing, or did not finish.",
    "generated": "The replies are there, and nothing is judged yet.",
}
"""What a report says about an unfinished run, keyed by the status in run.json."""
_DECLARED_BEFORE: Final = {"aten": 110, "vllm": 50, "cublas": 50}
"""Number of problems of each source, for runs of older versions, whose run.json has no ``declared``."""
_WINDOWS: Final = re.compile(rb'"windows": \[[^\]]*\]')
"""Matches the raw samples of a timing in a line of results.jsonl."""


UNFINISHED: Final = "KGB609"
"""Number of the note on a run that has not finished."""


@dataclass(frozen=True)
class StoredRun:
    """A run read from its folder."""

    path: Path
    info: dict[str, Any]
    results: tuple[Result, ...]
    notes: tuple[str, ...]
    """Sentences on what is damaged, missing or unfinished."""


def read_run(path: Path, *, with_windows: bool = False) -> StoredRun:
    """Reads a run folder. The run may have been killed, and its files may be partly damaged: ``notes`` says so.

    with_windows: also reads the raw samples (``Timing.windows``), which are large and which no score needs.
    Raises StoreError when there is no run, when nothing of it can be read, or when a newer kgbench wrote it.
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
    how_it_ended = _NOT_FINISHED.get(info.get("status", ""), "" if results else "The run ended without a result.")
    if how_it_ended and info.get("status"):
        if (path / PACKED_RESULTS_FILE).exists():
            next_step = "It is published so, and nothing is added."
        else:
            command = "evaluate" if info["status"] == "generated" else "run --resume"
            next_step = f"`kgbench {command} {path}` does what is missing."
        words = f"{how_it_ended} {next_step}"
        notes = (*notes, numbered("KGB609", words))
    if shard := shard_of(info):
        words = f"shard {shard} of a run: what the others judge counts as missing here; `kgbench merge` makes one run"
        notes = (*notes, numbered("KGB640", words))
    return StoredRun(path, info, results, notes)


def shard_of(info: Mapping[str, Any]) -> str:
    """The shard that this run is, as ``3/8``; empty for a whole run. ``info`` is run.json."""
    return str((info.get("asked") or {}).get("shard") or "")


def _info_or_none(path: Path) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """(run.json, notes). run.json is None when it cannot be read but there are results. Raises StoreError."""
    try:
        return read_info(path), ()
    except NewerError:
        raise
    except StoreError as error:
        if not any((path / name).is_file() for name in (RESULTS_FILE, PACKED_RESULTS_FILE)):
            raise
        words = (
            f"{error}. Its results are shown all the same: which problems were asked for, on which machine and with "
            "which versions is not known, and shares are of the problems that have a result."
        )
        return None, (numbered("KGB614", words),)


def _info_of(path: Path, results: Sequence[Result]) -> dict[str, Any]:
    """A substitute for a damaged run.json, made from what the results say."""
    kinds = {result.problem: result.kind for result in results}
    problems = [{"id": name, "kind": kind} for name, kind in kinds.items()]
    models = sorted({result.model for result in results})
    samples = max((result.sample + 1 for result in results), default=1)
    return {"format": FORMAT, "id": path.name, "model": ", ".join(models), "samples": samples, "problems": problems}


def read_info(run: Path) -> dict[str, Any]:
    """The content of run.json.

    Raises StoreError when it is missing, damaged or no run's, and NewerError when a newer kgbench wrote it.
    """
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


def problem_hashes(info: Mapping[str, Any]) -> dict[str, str | None]:
    """SHA-256 of the file of each problem of a run, by id; None where it was not stored. ``info`` is run.json."""
    return {each["id"]: each.get("sha256") for each in info.get("problems", ())}


def declared_in(info: Mapping[str, Any]) -> dict[str, int]:
    """Number of problems of each source when the run was started. ``info`` is run.json."""
    declared = info.get("declared")
    return dict(_DECLARED_BEFORE) if not isinstance(declared, dict) else {str(k): int(v) for k, v in declared.items()}


def read_results(
    path: Path, *, with_windows: bool = False, again: str = "run --resume"
) -> tuple[tuple[Result, ...], tuple[str, ...]]:
    """(results, notes). A line that cannot be read is left out and noted.

    again: the command that judges the candidates of such lines again, for the notes. Raises StoreError when the file
    cannot be read, or when it has damaged lines and no readable one.
    """
    results: list[Result] = []
    damaged: list[StoreError] = []
    notes: list[str] = []
    try:
        with _opened(path) as file:
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
        raise StoreError("KGB407", f"{path}: cannot read: {reason(error)}") from error
    except (EOFError, zlib.error) as error:
        packed = path if path.suffix == ".gz" else path.with_name(f"{path.name}.gz")
        raise StoreError("KGB407", f"{packed}: cannot read: {error}; restore it from a copy") from error
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


def _opened(path: Path) -> IO[bytes] | gzip.GzipFile:
    """The opened file of results; that of a published run is decompressed. Raises OSError."""
    packed = path.with_name(PACKED_RESULTS_FILE)
    if path.name == RESULTS_FILE and not path.exists() and packed.is_file():
        return gzip.open(packed, "rb")
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _no_results(path: Path, state: str) -> str:
    return numbered("KGB608", f"{path.name} is {state}: no candidate was finished")


def _read_line(path: Path, number: int, line: bytes, *, with_windows: bool) -> Result:
    try:
        data = _without_windows(line) if not with_windows else json.loads(line)
        for case in data.get("cases", ()) if any(mark in line for mark in NOT_FINITE_BYTES) else ():
            if case.get("timing"):
                case["timing"] = with_floats(case["timing"])
        return result_from_json(data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError("KGB412", f"{path}:{number}: not a result: {_why_not(error)}") from error


def _without_windows(line: bytes) -> Any:
    """The line's JSON with empty ``windows``, which are most of its bytes.

    No text of a candidate can match the pattern, because quotes in it are escaped.
    """
    try:
        return json.loads(_WINDOWS.sub(b'"windows": []', line))
    except ValueError:
        return json.loads(line)  # in the first runs, windows held lists, which the pattern does not match


def _why_not(error: Exception) -> str:
    """The error's message as a sentence; the text of a KeyError is only the missing key."""
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)
