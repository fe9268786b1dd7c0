"""Progress of a run on stderr: lines without a terminal, a live display with one.

``reports/terminal.py`` prints the final table on stdout.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from kgbench.core.outcomes import Listed, Outcome
from kgbench.core.text import plain, shortened
from kgbench.core.types import Result
from kgbench.reports.words import no_candidate_words, numbered_as, result_line
from kgbench.scores.samples import is_fast

TALLY_EVERY_S: Final = 20.0
"""Seconds between two lines about each source's progress, where no terminal shows it all the time."""


class Display(Protocol):
    """Receives events and displays them."""

    def started(self, problem: str) -> None: ...

    def phase(self, problem: str, phase: str, detail: str) -> None: ...

    def finished(self, result: Result) -> None: ...

    def note(self, text: str) -> None: ...

    def asked(self, problem: str) -> None: ...

    def answered(self, problem: str, sample: int, round: int, words: str, usd: float | None) -> None: ...


@dataclass
class Tally:
    """Progress of one source in a run that asks a model."""

    questions: int
    asked: int = 0
    answered: int = 0
    evaluated: int = 0
    correct: int = 0
    fast: int = 0
    """Number of candidates that are correct and faster than the library by the interval."""
    usd: float = 0.0
    unknown_usd: bool = False

    def words(self, source: str) -> str:
        """``cublas: 12 of 50 asked, 8 answered, $0.31 spent; 7 of 50 evaluated, 5 correct, 3 fast``

        Each half only where something of it happens: `kgbench generate` judges nothing, `kgbench evaluate` asks nobody.
        """
        halves = []
        if self.asked:
            spent = "spent unknown" if self.unknown_usd else f"${self.usd:.2f} spent"
            halves.append(f"{self.asked} of {self.questions} asked, {self.answered} answered, {spent}")
        if self.evaluated or not self.asked:
            halves.append(f"{self.evaluated} of {self.questions} evaluated, {self.correct} correct, {self.fast} fast")
        return f"{source}: {'; '.join(halves)}"


class Tallies:
    """One tally per source. May be updated from several threads."""

    def __init__(self, questions: Mapping[str, int]) -> None:
        """``questions``: how many there are by source; none where no model is asked."""
        self._by_source = {source: Tally(count) for source, count in questions.items()}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._by_source)

    def asked(self, problem: str) -> None:
        with self._lock:
            self._of(problem).asked += 1

    def answered(self, problem: str, usd: float | None) -> None:
        with self._lock:
            tally = self._of(problem)
            tally.answered += 1
            tally.usd += usd or 0.0
            tally.unknown_usd |= usd is None

    def finished(self, result: Result) -> None:
        if not self._by_source:
            return
        with self._lock:
            tally = self._of(result.problem)
            tally.evaluated += 1
            tally.correct += result.outcome is Outcome.PASSED
            tally.fast += is_fast(result, 1.0)

    def lines(self) -> list[str]:
        with self._lock:
            return [tally.words(source) for source, tally in self._by_source.items()]

    def _of(self, problem: str) -> Tally:
        return self._by_source[problem.partition("/")[0]]


class LineDisplay:
    """One line per finished candidate: ``[7/50] cublas/cublasSgemm_v2 passed 0.83x [0.82, 0.84] 1.4 s``."""

    def __init__(self, console: Console, total: int, tallies: Tallies, *, tells_tallies: bool = True) -> None:
        """``tells_tallies``: now and then a line for each source says how far the asking is."""
        self._console = console
        self._total = total
        self._done = 0
        self._without: list[Result] = []
        self._tallies = tallies
        self._tells_tallies = tells_tallies
        self._told = time.monotonic()

    def started(self, problem: str) -> None:
        pass

    def phase(self, problem: str, phase: str, detail: str) -> None:
        pass

    def finished(self, result: Result) -> None:
        self._done += 1
        if result.outcome.facts.listed is Listed.COUNTED:
            self._without.append(result)
        else:
            self._console.print(finished_line(result, self._done, self._total), soft_wrap=True)
        self._tallies.finished(result)
        self._tell()

    def closed(self) -> None:
        """Called once, after the last result: one line about the problems without a candidate."""
        words = no_candidate_words(self._without)
        if words:
            self.note(words)

    def note(self, text: str) -> None:
        self._console.print(Text(plain(text)), soft_wrap=True)

    def asked(self, problem: str) -> None:
        self._tallies.asked(problem)

    def answered(self, problem: str, sample: int, round: int, words: str, usd: float | None) -> None:
        self._console.print(Text(plain(f"{problem}{numbered_as(sample, round)} answered: {words}")), soft_wrap=True)
        self._tallies.answered(problem, usd)
        self._tell()

    def _tell(self) -> None:
        if self._tells_tallies and time.monotonic() - self._told >= TALLY_EVERY_S:
            self._told = time.monotonic()
            for line in self._tallies.lines():
                self.note(line)


class LiveDisplay:
    """The same lines, and below them what is being done now. May be updated from several threads."""

    def __init__(self, console: Console, progress: Progress, total: int, tallies: Tallies) -> None:
        self._lines = LineDisplay(console, total, tallies, tells_tallies=False)
        self._progress = progress
        self._tallies = tallies
        self._sources = [progress.add_task("", total=None, now=line) for line in tallies.lines()]
        self._task = progress.add_task("", total=total, now="")
        self._at_work = 0

    def started(self, problem: str) -> None:
        self._at_work += 1
        self._show(problem)

    def phase(self, problem: str, phase: str, detail: str) -> None:
        self._show(f"{problem} {phase} {detail}".rstrip())

    def finished(self, result: Result) -> None:
        self._at_work -= 1
        self._lines.finished(result)
        self._progress.advance(self._task)
        self._show("")
        self._show_tallies()

    def closed(self) -> None:
        self._lines.closed()

    def note(self, text: str) -> None:
        self._lines.note(text)

    def asked(self, problem: str) -> None:
        self._lines.asked(problem)
        self._show_tallies()

    def answered(self, problem: str, sample: int, round: int, words: str, usd: float | None) -> None:
        self._lines.answered(problem, sample, round, words, usd)
        self._show_tallies()

    def _show_tallies(self) -> None:
        for task, line in zip(self._sources, self._tallies.lines(), strict=True):
            self._progress.update(task, now=line)

    def _show(self, now: str) -> None:
        others = f"{self._at_work} at work: " if self._at_work > 1 else ""
        self._progress.update(self._task, now=shortened(plain(others + now), 60))


def finished_line(result: Result, done: int, total: int) -> Text:
    """One line; text from the candidate carries no control characters and is never markup."""
    seconds = result.seconds.get("total")
    line = Text(f"[{done}/{total}] {plain(result.problem)}{numbered_as(result.sample, result.round)} ")
    line.append(result_line(result), style=result.outcome.facts.group.style)
    return line.append(f" {seconds:.1f} s") if seconds is not None else line


@contextlib.contextmanager
def display(console: Console, total: int, questions: Mapping[str, int] | None = None) -> Iterator[Display]:
    """The display that fits the console, which writes to stderr. ``questions`` to a model, by source."""
    tallies = Tallies(questions or {})
    if not console.is_terminal:
        lines = LineDisplay(console, total, tallies)
        yield lines
        lines.closed()
        return
    columns = (
        SpinnerColumn(),
        MofNCompleteColumn(),
        BarColumn(bar_width=16),
        TimeElapsedColumn(),
        TextColumn("{task.fields[now]}", markup=False),
    )
    # Twice a second: more would take time from a candidate that is being measured on the same cores.
    with Progress(*columns, console=console, refresh_per_second=2, transient=True) as progress:
        live = LiveDisplay(console, progress, total, tallies)
        yield live
        live.closed()
