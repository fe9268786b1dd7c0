"""Records: per problem and timed case the fastest kernel that was verified on a device, in ``<device>.json``.

A claim is a result of ``kgbench verify``. It becomes a record where it is faster than the one there by the lower end of
its interval. A file is read, changed and replaced under a lock of its own, so that two commands lose nothing of each
other. The kernels lie in ``kernels/`` beside the files, by their SHA-256.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from kgbench.core.files import write_atomically
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result, Timing
from kgbench.scores.samples import Selected
from kgbench.scores.speedups import case_key, timed_cases
from kgbench.store.encoding import json_text
from kgbench.store.errors import StoreError, WriteError, reason
from kgbench.store.layout import device_slug

FORMAT: Final = 1
"""Version of a file of records."""


@dataclass(frozen=True)
class Record:
    """The fastest verified kernel in one timed case."""

    candidate_us: float
    """Device time of a call in µs, as it was verified."""
    library_us: float
    ratio: float
    """Library / kernel, paired by window."""
    library: str
    by: str
    """The model of the run."""
    run: str
    """Id of the run."""
    at: str
    """When it was verified, UTC."""
    sha256: str
    """SHA-256 of the kernel's file, ``kernels/<sha256>.py``."""
    seed_sha256: str
    """SHA-256 of the seed that the verification's inputs came from."""
    busy_percent: tuple[float, float]
    """How busy the device was right before and right after the verification; 0 is quiet."""


@dataclass(frozen=True)
class OfProblem:
    problem_sha256: str
    """The file that the records were judged by; another file has other records."""
    cases: Mapping[str, Record]
    """Records by ``case_key``."""

    def times(self) -> dict[str, float]:
        return {case: record.candidate_us for case, record in self.cases.items()}


@dataclass(frozen=True)
class Records:
    device: str
    problems: Mapping[str, OfProblem]

    def of(self, problem: str, problem_sha256: str) -> OfProblem | None:
        found = self.problems.get(problem)
        return found if found is not None and found.problem_sha256 == problem_sha256 else None

    def to_json(self) -> dict[str, Any]:
        problems = {name: asdict(self.problems[name]) for name in sorted(self.problems)}
        for each in problems.values():
            each["cases"] = dict(sorted(each["cases"].items()))
        return {"format": FORMAT, "device": self.device, "problems": problems}


@dataclass(frozen=True)
class Claim:
    """A verified result, and what a record says of it beside its times."""

    result: Result
    text: str
    """The kernel's file."""
    run: str
    at: str
    seed_sha256: str
    busy_percent: tuple[float, float]


def path_of(folder: Path, device: str) -> Path:
    return folder / f"{device_slug(device)}.json"


def read_records(folder: Path, device: str) -> Records:
    """Those of a device, none where there is no file. Raises StoreError where it is broken or another device's."""
    path = path_of(folder, device)
    again = "restore it with git, or remove it and verify again"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] > FORMAT:
            raise StoreError("KGB436", f"{path}: written by a newer kgbench (format {data['format']}); update kgbench")
        problems = {name: _of_problem(each) for name, each in data["problems"].items()}
        found = Records(str(data["device"]), problems)
    except FileNotFoundError:
        return Records(device, {})
    except OSError as error:
        raise StoreError("KGB436", f"{path}: cannot read: {reason(error)}; {again}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else error
        raise StoreError("KGB436", f"{path}: not a file of records: {why}; {again}") from error
    if found.device != device:
        raise StoreError("KGB436", f"{path}: it has the records of {found.device}, not of {device}; {again}")
    return found


def _of_problem(data: Mapping[str, Any]) -> OfProblem:
    return OfProblem(str(data["problem_sha256"]), {case: _record(each) for case, each in data["cases"].items()})


def _record(data: Mapping[str, Any]) -> Record:
    values = {field.name: data[field.name] for field in dataclasses.fields(Record)}
    before, after = values["busy_percent"]
    found = Record(**{**values, "busy_percent": (float(before), float(after))})
    if not float(found.candidate_us) > 0:
        raise ValueError(f"a time of {found.candidate_us} µs")
    return found


def with_records(selected: Sequence[Selected], info: Mapping[str, Any], records: Records) -> tuple[Selected, ...]:
    """Each problem with its records' times, where they are of the file that the run goes by. ``info`` is run.json."""
    files = {each["id"]: str(each.get("sha256") or "") for each in info.get("problems", ())}
    known = {name: found.times() for name, sha256 in files.items() if (found := records.of(name, sha256))}
    return tuple(dataclasses.replace(each, record_us=known.get(each.id, {})) for each in selected)


def beaten(result: Result, records: Records) -> dict[str, Timing]:
    """The timed cases in which a result is faster than the record, or the first, by their key.

    Faster is: at the lower end of the interval of its speedup it still takes less time.
    """
    if result.outcome is not Outcome.PASSED or result.interpreted:
        return {}
    known = records.of(result.problem, result.problem_sha256)
    times = known.times() if known else {}
    found = {case_key(case.overload, case.id): case.timing for case in timed_cases(result)}
    return {
        case: timing
        for case, timing in found.items()
        if timing and timing.against == "library" and timing.candidate_us > 0
        and (case not in times or times[case] > timing.candidate_us * timing.ratio / max(timing.low, 1e-9))
    }  # fmt: skip


def enter(folder: Path, device: str, claims: Iterable[Claim]) -> dict[str, list[str]]:
    """The cases of each problem of which a claim is the record now. Raises StoreError, WriteError."""
    path, entered = path_of(folder, device), dict[str, list[str]]()
    try:
        (folder / "kernels").mkdir(parents=True, exist_ok=True)
        with _locked(folder / f".{path.name}.lock"):
            records = read_records(folder, device)
            for claim in claims:
                records, cases = _with(records, claim)
                if cases:
                    write_atomically(folder / "kernels" / f"{claim.result.candidate_sha256}.py", claim.text)
                    entered[claim.result.problem] = sorted({*entered.get(claim.result.problem, ()), *cases})
            if entered:
                write_atomically(path, json_text(records.to_json(), indent=1) + "\n")
    except OSError as error:
        raise WriteError("KGB435", f"{path}: cannot be written: {reason(error)}; the records are as before") from error
    return entered


def _with(records: Records, claim: Claim) -> tuple[Records, list[str]]:
    result = claim.result
    found = beaten(result, records)
    if not found:
        return records, []
    library = result.library.name if result.library else ""
    new = {
        case: Record(
            timing.candidate_us, timing.library_us, timing.ratio, library, result.model, claim.run, claim.at,
            result.candidate_sha256, claim.seed_sha256, claim.busy_percent,
        )
        for case, timing in found.items()
    }  # fmt: skip
    known = records.of(result.problem, result.problem_sha256)
    cases = {**(known.cases if known else {}), **new}
    problems = {**records.problems, result.problem: OfProblem(result.problem_sha256, cases)}
    return Records(records.device, problems), list(new)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Waits for whoever has it."""
    import fcntl  # not on Windows, where nothing is verified

    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
