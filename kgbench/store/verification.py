"""Winners of a run, measured once more with new seeds: which hold, and by how much. Torch-free.

``kgbench verify`` appends to ``verification.jsonl`` in the run's folder, so that the run's own results and its scores
stay as they are; ``kgbench report`` shows both.
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


@dataclass(frozen=True)
class Verified:
    """A winner and what it did when it was measured again, the last time."""

    winner: Result
    again: Result
    times: int
    """How often it was measured again."""

    @property
    def before(self) -> Estimate:
        estimate = speedup(self.winner)
        assert estimate is not None  # it was fast
        return estimate

    @property
    def after(self) -> Estimate | None:
        return speedup(self.again)

    @property
    def right(self) -> bool:
        return self.again.outcome is Outcome.PASSED

    @property
    def fast(self) -> bool:
        return is_fast(self.again, 1.0)

    @property
    def outside(self) -> bool:
        """The speedup now is not in the interval that the run gave it."""
        return self.after is not None and not self.before.low <= self.after.point <= self.before.high


def winners(results: Iterable[Result], top: int | None = None) -> list[Result]:
    """Results that are correct and faster than the library by their intervals, the fastest first."""
    found = [(estimate.point, r) for r in results if is_fast(r, 1.0) and (estimate := speedup(r))]
    return [result for _, result in sorted(found, key=lambda each: -each[0])][:top]


def read(run: Path, file: str = FILE) -> tuple[tuple[Result, ...], tuple[str, ...]]:
    """(results, notes) of all verifications of a run; a line that was cut off by a kill is left out and noted."""
    if not (run / file).exists():
        return (), ()
    return read_results(run / file, again="verify" if file == FILE else "reproduce")


def verified(results: Iterable[Result], again: Iterable[Result]) -> list[Verified]:
    """Every winner that was measured again, with its last measurement."""
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
    """One line, on disk when this returns; a half line that a kill left is taken away first. Raises OSError."""
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
    """Bytes up to the end of the last whole line."""
    size = os.fstat(fd).st_size
    return os.pread(fd, size, 0).rfind(b"\n") + 1


def summary(found: Sequence[Verified]) -> dict[str, Any]:
    """JSON-ready: counts, and per winner both speedups."""
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
    """For a report: how many hold, what left its interval, whose outcome changed. ``of``: winners of the run."""
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
