"""Records: the fastest verified kernel of each problem and timed case on a device, in ``<device>.json``.

A claim is a result of ``kgbench verify``. It replaces a record when it takes less time even at the lower end of its
speedup's interval. Each file has its own lock, which is held from reading to replacing, so that two commands do not
overwrite each other's records. The kernels are in ``kernels/`` beside the files, named by their SHA-256.
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
"""Version of the format of a file of records."""


@dataclass(frozen=True)
class Record:
    """The fastest verified kernel in one timed case."""

    candidate_us: float
    """Verified device time of one call of the kernel, in µs."""
    library_us: float
    """Device time of one call of the library, in µs."""
    ratio: float
    """Speedup: library time / kernel time, paired by window."""
    library: str
    by: str
    """The model of the run."""
    run: str
    """Id of the run."""
    at: str
    """Time of the verification, UTC."""
    sha256: str
    """SHA-256 of the kernel's file, ``kernels/<sha256>.py``."""
    seed_sha256: str
    """SHA-256 of the seed of the verification's inputs."""
    busy_percent: tuple[float, float]
    """Utilization of the device right before and right after the verification, in percent; 0 is idle."""


@dataclass(frozen=True)
class OfProblem:
    """The records of one problem."""

    problem_sha256: str
    """SHA-256 of the problem file that the kernels were judged by. A changed file starts with no records."""
    cases: Mapping[str, Record]
    """Records by ``case_key``."""

    def times(self) -> dict[str, float]:
        """Device time of each record in µs, by ``case_key``."""
        return {case: record.candidate_us for case, record in self.cases.items()}


@dataclass(frozen=True)
class Records:
    """All records of one device."""

    device: str
    problems: Mapping[str, OfProblem]

    def of(self, problem: str, problem_sha256: str) -> OfProblem | None:
        """The records of a problem; None when it has none for this problem file."""
        found = self.problems.get(problem)
        return found if found is not None and found.problem_sha256 == problem_sha256 else None

    def to_json(self) -> dict[str, Any]:
        problems = {name: asdict(self.problems[name]) for name in sorted(self.problems)}
        for each in problems.values():
            each["cases"] = dict(sorted(each["cases"].items()))
        return {"format": FORMAT, "device": self.device, "problems": problems}


@dataclass(frozen=True)
class Claim:
    """A verified result, with the facts that a record of it needs."""

    result: Result
    text: str
    """Source of the kernel."""
    run: str
    at: str
    seed_sha256: str
    busy_percent: tuple[float, float]


def path_of(folder: Path, device: str) -> Path:
    """The file of a device's records."""
    return folder / f"{device_slug(device)}.json"


def read_records(folder: Path, device: str) -> Records:
    """The records of a device; no records when there is no file.

    Raises StoreError when the file is damaged, when a newer kgbench wrote it, or when it is another device's.
    """
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
    """Each problem with the times of its records, if they are of the run's problem file. ``info`` is run.json."""
    files = {each["id"]: str(each.get("sha256") or "") for each in info.get("problems", ())}
    known = {name: found.times() for name, sha256 in files.items() if (found := records.of(name, sha256))}
    return tuple(dataclasses.replace(each, record_us=known.get(each.id, {})) for each in selected)


def beaten(result: Result, records: Records) -> dict[str, Timing]:
    """The timings in which a result beats the record, or is the first, by ``case_key``.

    It beats the record when it takes less time even at the lower end of its speedup's interval.
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
    """Stores the claims that are records now, and returns their cases by problem.

    Raises StoreError when the file of records is damaged, WriteError when it cannot be written.
    """
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
    """Holds a file lock; waits while another process holds it."""
    import fcntl  # not on Windows, where nothing is verified

    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
