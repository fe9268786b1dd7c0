"""``kgbench merge``: makes one run of parts that were judged apart, with the seeds, replies and logs of each.

The parts are not changed. What decides about correct or fast must be equal in all of them, and no candidate may have a
verdict in two.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kgbench.core.errors import UsageError, shown_path
from kgbench.core.outcomes import Blame
from kgbench.core.types import Key, Result
from kgbench.problem.suites import SUITE_FILE
from kgbench.reports.comparison import Difference, Side, differences
from kgbench.reports.reproduction import FILE as REPRODUCTION
from kgbench.scores.samples import newest
from kgbench.store.errors import StoreError, WriteError, reason
from kgbench.store.layout import REPLIES_DIR
from kgbench.store.reader import StoredRun
from kgbench.store.verification import FILE as VERIFICATION
from kgbench.store.writer import RunStore

PARTS_MISSING: Final = "partial"
"""Status of a run whose parts are not all there, or not all finished."""
_ALIKE: Final = {
    "model": "--model", "problem_set_sha256": "problem set", "suite": "--suite", "timed": "clock",
    "samples": "--samples", "rounds": "--rounds",
}  # fmt: skip
"""Keys of run.json that must be equal in all parts, with their names for users."""
_ASKED_ALIKE: Final = {"policy": "--policy", "deadlines": "--deadline", "against": "--against"}
"""The same for keys of the request."""


@dataclass(frozen=True)
class Merged:
    path: Path
    missing: str
    """Which parts are missing or not finished, in words; empty where the run is whole."""
    differences: tuple[Difference, ...]
    """Differences between the parts that do not decide."""


def merge(parts: Sequence[StoredRun], out: Path, run_id: str, command: Sequence[str]) -> Merged:
    """Make ``out/run_id`` of the parts.

    Raises UsageError where the parts cannot be one run, StoreError where the folder cannot be made, WriteError on a
    full disk; nothing is left of the run then.
    """
    if len(parts) < 2:
        raise UsageError("KGB152", "give the folders of all parts, for example kgbench merge runs/*")
    found = _checked(parts)
    results = list(_results(parts))
    missing = _missing(parts)
    info = _info(parts, missing)
    store = RunStore.create(out, run_id, {**info, "status": "running", "command": list(command)}, seed="")
    try:
        store.append(*results)
        for part in parts:
            _copy(part, store.path)
        segments = [segment for part in parts for segment in part.info.get("segments", ())]
        # Nothing was drawn from a seed of its own.
        store.update({"segments": segments, "status": info["status"]})
    except BaseException:
        store.discard()
        raise
    store.release()
    return Merged(store.path, missing, found)


def _checked(parts: Sequence[StoredRun]) -> tuple[Difference, ...]:
    """Differences between the parts. Raises UsageError where they make them different runs."""
    first = parts[0]
    others: dict[str, Difference] = {}
    for part in parts[1:]:
        apart = list(_apart(first, part))
        # Of parts of different runs the details say nothing more.
        found = [] if apart else list(differences(Side.of(first), Side.of(part)))
        apart += [str(each) for each in found if each.decides]
        if apart:
            lines = "".join(f"\n  {each}" for each in apart)
            raise UsageError(
                "KGB153",
                f"{_name(first)} and {_name(part)} are no parts of one run; they differ in{lines}\n"
                "Merge only what one command judged with different --shard; `kgbench compare` puts runs side by side",
            )
        others |= {str(each): each for each in found}
    return tuple(others.values())


def _apart(first: StoredRun, other: StoredRun) -> Iterator[str]:
    """Differences that make them parts of different runs, in words."""
    for key, words in _ALIKE.items():
        if first.info.get(key) != other.info.get(key):
            yield f"{words}: {_of(first, key)} and {_of(other, key)}"
    for key, words in _ASKED_ALIKE.items():
        one, two = (_asked(part).get(key) or "the default" for part in (first, other))
        if one != two:
            yield f"{words}: {one} and {two}"
    kinds = [(part.info.get("device") or {}).get("kind") for part in (first, other)]
    if all(kinds) and kinds[0] != kinds[1]:
        yield f"device: {kinds[0]} and {kinds[1]}"
    shards = [_shard(part)[1] for part in (first, other)]
    if shards[0] != shards[1]:
        yield f"--shard: a part of {shards[0]} and a part of {shards[1]}"
    if _suite_text(first) != _suite_text(other):
        yield "--suite: its calls"


def _of(part: StoredRun, key: str) -> str:
    """A part's value for a key, in words."""
    if key == "problem_set_sha256":
        return f"{len(part.info.get('problems', ()))} problems, sha256 {str(part.info.get(key))[:12]}"
    return str(part.info.get(key))


def _results(parts: Sequence[StoredRun]) -> Iterator[Result]:
    """All results, without harness errors for which another part has a verdict. Raises UsageError where two parts have
    a verdict.
    """
    verdicts: dict[Key, StoredRun] = {}
    for part in parts:
        for result in newest(part.results):
            if result.outcome.facts.blames is Blame.HARNESS:
                continue
            other = verdicts.setdefault(result.key, part)
            if other is not part:
                raise UsageError(
                    "KGB154",
                    f"{_name(other)} and {_name(part)} both have a verdict on {result.problem} sample {result.sample}; "
                    "leave one of the two out",
                )
    for part in parts:
        yield from (result for result in part.results if verdicts.get(result.key, part) is part)


def _missing(parts: Sequence[StoredRun]) -> str:
    """The shards that are missing and the parts that have not finished, in words."""
    count = _shard(parts[0])[1]
    there = {_shard(part)[0] for part in parts}
    gone = [f"{number}/{count}" for number in range(1, count + 1) if number not in there] if count > 1 else []
    words = [f"shard {', '.join(gone)} is missing"] if gone else []
    words += [f"{_name(each)} is {each.info.get('status')}" for each in parts if each.info.get("status") != "finished"]
    return "; ".join(words)


def _info(parts: Sequence[StoredRun], missing: str) -> dict[str, Any]:
    """The merged run.json, without id and segments."""
    first = next((part.info for part in parts if part.info.get("device")), parts[0].info)
    ended = [part.info["finished"] for part in parts if part.info.get("finished")]
    return {
        **{key: value for key, value in first.items() if key not in ("id", "segments")},
        "status": PARTS_MISSING if missing else "finished",
        "started": min(str(part.info.get("started")) for part in parts),
        "finished": max(ended, default=datetime.now(UTC).isoformat(timespec="seconds")),
        "asked": {**_asked(parts[0]), "shard": ""},
        "timed_s": round(sum(part.info.get("timed_s", 0.0) for part in parts), 3),
        "wall_s": round(sum(part.info.get("wall_s", 0.0) for part in parts), 3),
        "parts": [
            {
                "id": part.info.get("id"),
                "shard": _asked(part).get("shard") or None,
                **{key: part.info.get(key) for key in ("status", "started", "finished", "command", "machine")},
                "devices": (part.info.get("device") or {}).get("devices"),
            }
            for part in parts
        ],
    }


def _copy(part: StoredRun, to: Path) -> None:
    """Copy candidates, replies and logs. Raises WriteError."""
    try:
        for name in ("candidates", REPLIES_DIR, "agents"):
            if (part.path / name).is_dir():
                shutil.copytree(part.path / name, to / name, dirs_exist_ok=True)
        if (part.path / "logs").is_dir():
            shutil.copytree(part.path / "logs", to / "logs" / str(part.info.get("id")))
        for name in (VERIFICATION, REPRODUCTION):
            if (part.path / name).is_file():
                with (to / name).open("ab") as file:
                    file.write((part.path / name).read_bytes())
        if (part.path / SUITE_FILE).is_file():
            shutil.copy(part.path / SUITE_FILE, to / SUITE_FILE)
    except (OSError, shutil.Error) as error:
        words = reason(error) if isinstance(error, OSError) and error.strerror else str(error)
        words = f"{to}: cannot write: {words}; make room and merge again, the parts are whole"
        raise WriteError("KGB413", words) from error


def _shard(part: StoredRun) -> tuple[int, int]:
    """(number, of how many); (1, 1) of a run that was not split."""
    number, _, count = str(_asked(part).get("shard") or "1/1").partition("/")
    try:
        return int(number), int(count)
    except ValueError as error:
        raise StoreError("KGB410", f"{part.path}: not a run: its shard is {number!r}") from error


def _asked(part: StoredRun) -> Mapping[str, Any]:
    asked: Mapping[str, Any] = part.info.get("asked") or {}
    return asked


def _suite_text(part: StoredRun) -> str:
    with contextlib.suppress(OSError):
        return (part.path / SUITE_FILE).read_text(encoding="utf-8")
    return ""


def _name(part: StoredRun) -> str:
    shard = _asked(part).get("shard")
    return shown_path(part.path) + (f" (shard {shard})" if shard else "")
