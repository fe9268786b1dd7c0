"""Winners of a run, measured again with new seeds. Imports no torch.

A winner is a correct result that is faster than the library. ``kgbench verify`` appends to ``verification.jsonl`` in
the run's folder; in a published run's, earlier ones are in ``verification.jsonl.gz``. The run's own results and scores
do not change. ``kgbench report`` shows both.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kgbench.core.outcomes import Outcome
from kgbench.core.types import Key, Result
from kgbench.scores.samples import is_fast
from kgbench.scores.speedups import Estimate, speedup
from kgbench.store.encoding import json_text
from kgbench.store.reader import read_results

FILE: Final = "verification.jsonl"
PACKED_FILE: Final = f"{FILE}.gz"


@dataclass(frozen=True)
class Verified:
    """A winner with its last repeated measurement."""

    winner: Result
    again: Result
    times: int
    """Number of repeated measurements."""

    @property
    def before(self) -> Estimate:
        estimate = speedup(self.winner)
        assert estimate is not None  # a winner has a speedup
        return estimate

    @property
    def after(self) -> Estimate | None:
        return speedup(self.again)

    @property
    def right(self) -> bool:
        """Whether it was correct again."""
        return self.again.outcome is Outcome.PASSED

    @property
    def fast(self) -> bool:
        """Whether it was faster than the library again."""
        return is_fast(self.again, 1.0)

    @property
    def outside(self) -> bool:
        """Whether the new speedup is outside the interval of the run's speedup."""
        return self.after is not None and not self.before.low <= self.after.point <= self.before.high


def winners(results: Iterable[Result], top: int | None = None) -> list[Result]:
    """Correct results whose interval says faster than the library, by falling speedup; at most ``top``."""
    found = [(estimate.point, r) for r in results if is_fast(r, 1.0) and (estimate := speedup(r))]
    return [result for _, result in sorted(found, key=lambda each: -each[0])][:top]


def read(run: Path, file: str = FILE) -> tuple[tuple[Result, ...], tuple[str, ...]]:
    """(results, notes) of all verifications of a run. An incomplete last line is left out and noted.

    Raises StoreError when the file cannot be read.
    """
    there = [path for path in (run / f"{file}.gz", run / file) if path.exists()]
    parts = [read_results(path, again="verify" if file == FILE else "reproduce") for path in there]
    return tuple(each for part, _ in parts for each in part), tuple(note for _, notes in parts for note in notes)


def verified(results: Iterable[Result], again: Iterable[Result]) -> list[Verified]:
    """Every winner that was measured again with the same source, with its last measurement."""
    by_key: dict[Key, list[Result]] = {}
    for each in again:
        by_key.setdefault(each.key, []).append(each)
    found = [(winner, by_key[winner.key]) for winner in winners(results) if winner.key in by_key]
    return [
        Verified(winner, measured[-1], len(measured))
        for winner, measured in found
        if measured[-1].candidate_sha256 == winner.candidate_sha256
    ]


def append(run: Path, result: Result, seed_sha256: str, where: dict[str, Any], file: str = FILE) -> None:
    """Appends one line, which is on disk on return. First removes an incomplete last line. Raises OSError."""
    line = json_text({**result.to_json(), "seed": seed_sha256, "verified_on": where}) + "\n"
    fd = os.open(run / file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        end = _whole(fd)
        os.ftruncate(fd, end)
        data = line.encode()
        if os.pwrite(fd, data, end) < len(data):
            os.ftruncate(fd, end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(fd)
    finally:
        os.close(fd)


def _whole(fd: int) -> int:
    """Length of the file in bytes up to and including its last newline."""
    size = os.fstat(fd).st_size
    return os.pread(fd, size, 0).rfind(b"\n") + 1


def summary(found: Sequence[Verified]) -> dict[str, Any]:
    """Counts, and both speedups of each winner, as JSON types."""
    return {
        "winners": len(found),
        "still_correct": sum(each.right for each in found),
        "still_fast": sum(each.fast for each in found),
        "outside_interval": [each.winner.problem for each in found if each.outside],
        "outcome_changed": [each.winner.problem for each in found if not each.right],
        "each": [
            {
                "problem": each.winner.problem, "model": each.winner.model, "sample": each.winner.sample,
                "before": _ends(each.before), "after": _ends(each.after), "outcome": str(each.again.outcome),
                "measured_again": each.times,
            }
            for each in found
        ],
    }  # fmt: skip


def lines(found: Sequence[Verified], of: int) -> Iterable[str]:
    """Lines of a report: how many are faster again, which left their interval, whose outcome changed.

    of: number of winners of the run.
    """
    if not found:
        return
    fast = sum(each.fast for each in found)
    yield f"verified with new seeds: {fast} of {len(found)} winners are faster again ({of} in the run)"
    for each in found:
        name = each.winner.problem + (f" sample {each.winner.sample}" if each.winner.sample else "")
        if not each.right:
            yield f"  {name}: was correct, now {each.again.outcome}"
        elif each.after is None:
            yield f"  {name}: has no time any more"
        elif each.outside or not each.fast:
            was, now = (f"{e.point:.2f}x [{e.low:.2f}, {e.high:.2f}]" for e in (each.before, each.after))
            yield f"  {name}: was {was}, now {now}{'' if each.fast else ', not faster'}"


def _ends(estimate: Estimate | None) -> list[float] | None:
    return None if estimate is None else [estimate.point, estimate.low, estimate.high]
