"""A stored run in a notebook: ``kgbench.load_run(path)``. Reads only; every score is computed from the results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgbench.core.types import Result
from kgbench.problem.problem_set import ProblemSet
from kgbench.reports.formats import frame_of
from kgbench.reports.model import Report, report_of
from kgbench.scores import rows as scores
from kgbench.store.by_device import on_device
from kgbench.store.find import find_run
from kgbench.store.reader import StoredRun, read_run

if TYPE_CHECKING:
    import pandas as pd


def load_run(path: str | Path, out: str | Path = "runs", *, on: str = "") -> Run:
    """The run in a folder.

    Args:
        path: the folder; or, as on the command line, a prefix of its id, or ``last``.
        out: where runs lie that are named by an id.
        on: the model of device whose part is meant, of a run that several judged.

    Raises:
        kgbench.core.errors.UsageError: there is no such run, or it cannot be read; the words say what to do.
    """
    return Run(on_device(read_run(find_run(str(path), Path(out))), on))


@dataclass(frozen=True)
class Run:
    """A stored run. ``run.table()`` is what ``kgbench report`` prints, with nothing rounded."""

    stored: StoredRun

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.stored.path

    @property
    def info(self) -> dict[str, Any]:
        """run.json: command, machine, versions, the problems that were asked for."""
        return self.stored.info

    @property
    def problem_set(self) -> ProblemSet:
        """Version, size and hash of the problems that it was asked for: two runs' numbers compare where they agree."""
        return ProblemSet.of(self.info)

    @property
    def results(self) -> tuple[Result, ...]:
        """Results, one per problem and sample: the best of several rounds."""
        return self.report.results

    @property
    def attempts(self) -> tuple[Result, ...]:
        """The results of every round."""
        return self.report.attempts

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about what was damaged or left out while reading."""
        return self.report.notes

    @cached_property
    def report(self) -> Report:
        """All that ``kgbench report`` prints, as data."""
        return report_of(self.stored)

    def table(self, by: str = "source") -> pd.DataFrame:
        """The score table: a row per group, columns as in docs/scores.md, and the ends of bootstrap intervals beside.

        Args:
            by: ``source`` (with the rows over all sources below), ``category``, ``problem``, ``kind`` or ``model``.
        """
        return frame_of(report_of(self.stored, by=_checked(by)))

    def fast_p(self, p: float = 1.0, by: str | None = None) -> float | pd.Series[float]:
        """Share, 0 to 1, of the problems that are correct and more than ``p`` times as fast as the library by the
        interval's lower end.

        Over problems of kind compute; with ``p`` 0, which asks for right alone, over those of every kind. NaN where
        speed means nothing: the kernels ran in Triton's interpreter.

        Args:
            p: any number from 0; for the whole curve call it for each.
            by: None for one number over all problems; else as for ``table``, and a series by group.
        """
        import pandas as pd

        rows = scores.rows(self.report.selected, self.attempts, (p,), by=_checked(by) if by else "all")
        shares = {}
        for row in rows:
            if p == 0 or row.kinds == "compute":  # the row of all kinds, where there is one, comes second
                fast = row.fast_at(p)
                shares[row.source] = row.share_correct() if p == 0 else fast.interval if fast else None
        if by is None:
            share = next(iter(shares.values()), None)
            return float("nan") if share is None else share
        return pd.Series(shares, dtype="float64", name=f"fast_{p:g}").rename_axis(by)


def _checked(by: str) -> str:
    if by not in scores.BY:
        raise ValueError(f"by={by!r}: expected one of {', '.join(scores.BY)}")
    return by
