"""A run as a person reads it: failures in words, a table per source, and what was true of the machine. Also as JSON.

Every figure comes from ``scores.py`` over stored results. Text that a candidate had a hand in (reasons, logs, values)
is printed without control characters and never as markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kgbench.core.errors import numbered, shown_path
from kgbench.core.figures import ABSENT, percent
from kgbench.core.figures import ratio_text as ratio_text
from kgbench.core.text import number_of, plain, shortened
from kgbench.core.types import CaseResult, Library, Mismatch, Outcome, Result, first_failure
from kgbench.policy.evidence import notes as evidence_notes
from kgbench.problem.problem_set import ProblemSet
from kgbench.problem.registry import categories
from kgbench.problem.suites import Suite, read_suite
from kgbench.reports import table as tabular
from kgbench.reports.generated import (
    AfterRounds,
    asked_lines,
    cost_table,
    round_by_round,
    rounds_table,
    samples_asked,
    samples_table,
)
from kgbench.reports.suite import SuiteRow, suite_lines, suite_rows, suite_table
from kgbench.scores import rows as scores
from kgbench.scores.costs import NOT_CONFINED, Cost, cost_of
from kgbench.scores.overall import overall
from kgbench.scores.per_problem import ProblemScores, problem_scores
from kgbench.scores.rows import THRESHOLDS, Row
from kgbench.scores.samples import Selected, latest, newest
from kgbench.scores.speedups import FLAG_ABOVE, Estimate, speedup
from kgbench.store import verification
from kgbench.store.encoding import json_text
from kgbench.store.reader import StoredRun

_LOG_LINES: Final = 4
MOST_LISTED: Final = 12
"""Problems in a line of a terminal; elsewhere a line has all, so that it can be searched."""
_LISTED_BY_OUTCOME: Final = (Outcome.NO_CODE, Outcome.SKIPPED)
"""Outcomes in which nothing ran: problems are listed by reason."""
LOG_SAYS_MORE: Final = (Outcome.COMPILE_ERROR, Outcome.RUNTIME_ERROR, Outcome.CRASHED, Outcome.HARNESS_ERROR)


@dataclass(frozen=True)
class Report:
    """What is printed: a run's facts, what it was asked for, and what was found."""

    info: dict[str, Any]
    where: str
    selected: tuple[Selected, ...]
    results: tuple[Result, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    attempts: tuple[Result, ...] = ()
    """Those of every round; ``results`` has each sample's best."""
    after_rounds: tuple[AfterRounds, ...] = ()
    cost: Cost | None = None
    suite: Suite | None = None
    suite_rows: tuple[SuiteRow, ...] = ()
    verified: tuple[verification.Verified, ...] = ()
    """Winners that were measured again."""
    overall: tuple[Row, ...] = ()
    """Over several sources: each problem weighing the same, and each source."""
    by: str | None = None
    """What was asked for in place of the rows by source, one of ``scores.BY``."""
    groups: tuple[Row, ...] = ()
    """The rows by that; those of a category, kind and model hold problems of several sources."""
    per_problem: tuple[ProblemScores, ...] = ()
    """In the order of the run; only with ``by``, since rooflines need every problem file."""


def report_of(run: StoredRun, thresholds: Sequence[float] = THRESHOLDS, *, by: str | None = None) -> Report:
    """Scores a stored run; ``by`` is one of ``scores.BY``, for rows beside those by source."""
    selected = selected_in(run.info)
    current = {each["id"]: each.get("sha256") for each in run.info.get("problems", ())}
    fresh = [result for result in run.results if not is_stale(result, current.get(result.problem))]
    attempts = tuple(newest(fresh))
    results = tuple(latest(attempts))
    shown = sorted({1.0, *thresholds})
    seed = seed_of(run)
    rows = tuple(scores.rows(selected, attempts, shown, seed=seed))
    stale = len(run.results) - len(fresh)
    notes = run.notes
    if stale:
        notes += (numbered("KGB610", f"{number_of(stale, 'result')} of older problem files left out."),)
    notes += evidence_notes(results)
    suite = read_suite(run.path)
    found = suite_rows(suite, results) if suite is not None else ()
    again, cut_off = verification.read(run.path)
    notes += cut_off
    return Report(
        info=run.info,
        where=str(run.path),
        selected=selected,
        results=results,
        rows=rows,
        notes=notes,
        attempts=attempts,
        after_rounds=round_by_round(run.info, selected, attempts, shown),
        cost=cost_of(attempts),
        suite=suite,
        suite_rows=found,
        verified=tuple(verification.verified(results, again)),
        overall=overall(selected, attempts, shown, seed=seed),
        by=by,
        groups=tuple(scores.rows(selected, attempts, shown, by=by, seed=seed)) if by else (),
        per_problem=problem_scores(run.info, selected, attempts) if by else (),
    )


def selected_in(info: Mapping[str, Any]) -> tuple[Selected, ...]:
    """What a run was asked for. Categories of old runs are looked up in the problem files that ship."""
    samples = samples_asked(info)
    problems = info.get("problems", ())
    shipped = {} if all("category" in each for each in problems) else categories()
    return tuple(
        Selected(
            each["id"],
            each.get("kind", "compute"),
            each.get("own", False),
            tuple(each.get("overloads", ())),
            samples,
            each.get("category") or shipped.get(each["id"], ""),
        )
        for each in problems
    )


def seed_of(run: StoredRun) -> str:
    """What bootstrap intervals are drawn from: always the same for a run, wherever its folder lies."""
    return str(run.info.get("id") or run.path.name)


def is_stale(result: Result, problem_sha256: str | None) -> bool:
    """It was judged by another version of its problem's file than the run goes by."""
    return bool(result.problem_sha256 and problem_sha256) and result.problem_sha256 != problem_sha256


def as_json(report: Report) -> dict[str, Any]:
    """The report as JSON-ready data; raw samples stay in the run's folder, which is named."""
    return {
        "run": {"path": report.where, **report.info},
        "problem_set": asdict(ProblemSet.of(report.info)),
        "scores": [row_json(row) for row in report.rows],
        "overall": [row_json(row) for row in report.overall],
        "by": report.by,
        "groups": [row_json(row) for row in report.groups],
        "per_problem": [asdict(each) for each in report.per_problem],
        "after_rounds": [each.to_json() for each in report.after_rounds],
        "cost": report.cost.to_json() if report.cost else None,
        "results": [result_json(result) for result in report.results],
        "notes": list(report.notes),
        "verification": verification.summary(report.verified) if report.verified else None,
        "suite": [asdict(row) for row in report.suite_rows] if report.suite is not None else None,
    }


def row_json(row: Row) -> dict[str, Any]:
    return {**asdict(row), "subset": row.is_subset(), "cost": row.cost.to_json() if row.cost else None}


def print_json(report: Report, stream: TextIO) -> None:
    print(json_text(as_json(report), indent=2), file=stream)


def print_table(report: Report, stream: TextIO) -> None:
    """For a terminal, in colours where it has them."""
    print_report(report, Console(file=stream, highlight=False))


def print_report(report: Report, console: Console) -> None:
    """Failures first, then the table, then the footnotes."""
    _print_failures(report, console)
    if report.suite is not None and report.suite.shares:
        console.print(suite_table(report.suite, report.suite_rows))
        console.print()
        for line in (*suite_lines(report.suite, report.suite_rows), *_footnotes(report)):
            print_line(console, Text(plain(line)), indent=0)
        return
    if report.rows:
        for table in tabular.terminal_tables(report):
            console.print(table)
            console.print()
        for table in _further_tables(report):
            console.print(table)
            console.print()
    for line in closing_lines(report):
        print_line(console, Text(plain(line)), indent=0)


def closing_lines(report: Report) -> tuple[str, ...]:
    """What is said below the tables: per source, then what was true of the run; an empty line between."""
    return (*_source_lines(report), *_footnotes(report))


def _further_tables(report: Report) -> Iterable[Table]:
    if any(row.speedup for row in report.rows):
        yield threshold_table(report.rows)
    if any(row.at_k for row in report.rows):
        yield samples_table(report.rows)
    if report.after_rounds:
        yield rounds_table(report.after_rounds)
    if report.cost:
        yield cost_table(report.rows, report.cost)


def result_line(result: Result) -> str:
    """Outcome and speed in a few words: ``passed 0.83x [0.82, 0.84]``, ``wrong value: …``."""
    if result.outcome is not Outcome.PASSED:
        return f"{result.outcome}: {first_words(result)}".removesuffix(": ")
    library, fallback = speedup(result), speedup(result, "fallback")
    if result.interpreted:
        return f"passed {ABSENT}"
    if library:
        return f"passed {estimate_text(library)}{' launch-bound' if library.launch_bound else ''}"
    return f"passed {estimate_text(fallback)} against the fallback" if fallback else "passed"


def first_words(result: Result) -> str:
    """Why a result is not right, in one line."""
    case = first_failure(result)
    if case and case.mismatch:
        wrong = case.mismatch
        where = f"{wrong.output}{list(wrong.index) if wrong.index else ''}"
        return plain(f"{case.id} {where}: got {wrong.got}, wanted {wrong.wanted}")
    reason = result.reason or (case.reason if case else "")
    return shortened(plain(reason.strip().partition("\n")[0]), 160)


def estimate_text(estimate: Estimate) -> str:
    """``0.83x [0.82, 0.84]``"""
    return f"{ratio_text(estimate.point)}x [{ratio_text(estimate.low)}, {ratio_text(estimate.high)}]"


def score_table(rows: Sequence[Row]) -> Table:
    """One line per row; the column for the fallback (its interval is in the JSON) only where a row has one."""
    with_fallback = any(row.fallback_speedup for row in rows)
    gap = 0 if with_fallback else 1  # 80 columns, all of them
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, gap, 0, 0), show_edge=False)
    table.add_column("source", no_wrap=True)
    table.add_column("problems", justify="right", no_wrap=True)
    for name in ("handed\nin", "right\n= fast_0", "fast_1", "fast_1\n(point)", "geometric\nmean"):
        table.add_column(name, justify="right", no_wrap=True)
    if with_fallback:
        table.add_column("against\nfallback", justify="right", no_wrap=True)
    for row in rows:
        fast = row.fast_at(1.0)
        cells = [
            _label(row),
            str(row.problems),
            str(row.handed_in),
            f"{_count(row.right)}\n{percent(row.share_right())}",
            percent(fast.interval if fast else None),
            percent(fast.point if fast else None),
            _estimate_cell(row.speedup),
        ]
        table.add_row(*cells, *([_point(row.fallback_speedup)] if with_fallback else []))
    return table


def threshold_table(rows: Sequence[Row]) -> Table:
    """fast_p over p, by interval and by point."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("fast_p at p =", no_wrap=True)
    for fast in rows[0].fast:
        table.add_column(f"{fast.p:g}", justify="right", no_wrap=True)
    for row in rows:
        if not row.speedup:
            continue
        name = f"{row.source} {row.kinds}"
        table.add_row(name, *(percent(fast.interval) for fast in row.fast))
        table.add_row(f"{name} (point)", *(percent(fast.point) for fast in row.fast))
    return table


def _label(row: Row) -> str:
    lines = [f"{row.source} {row.kinds}"]
    lines += [f"subset {row.selected} of {row.declared}"] * row.is_subset()
    lines += [NOT_CONFINED] * bool(row.unconfined)
    return "\n".join(lines)


def _estimate_cell(estimate: Estimate | None) -> str:
    if estimate is None:
        return ABSENT
    return f"{ratio_text(estimate.point)}x\n[{ratio_text(estimate.low)}, {ratio_text(estimate.high)}]"


def _point(estimate: Estimate | None) -> str:
    return f"{ratio_text(estimate.point)}x" if estimate else ABSENT


def _count(number: float) -> str:
    return f"{number:.0f}" if number == int(number) else f"{number:.1f}"


def _print_failures(report: Report, console: Console) -> None:
    results = report.results
    untold = (Outcome.PASSED, Outcome.HARNESS_ERROR, Outcome.NO_CANDIDATE, *_LISTED_BY_OUTCOME)
    failures = [result for result in results if result.outcome not in untold]
    if failures:
        console.print("Not right", style="bold")
    for result in failures:
        _print_failure(result, console)
    for outcome in _LISTED_BY_OUTCOME:
        _print_listed(outcome, [result for result in results if result.outcome is outcome], console)
    none = no_candidate_words(results)
    if none:
        lists = f"kgbench report {shown_path(report.where)} --by problem lists them"
        print_line(console, Text(f"{none} ({lists})", style="yellow"), indent=2)
    errors = [result for result in results if result.outcome is Outcome.HARNESS_ERROR]
    if errors:
        console.print("Harness errors: kgbench failed here, not the candidate. Please report them.", style="bold")
    for result in errors:
        _print_failure(result, console)
    if failures or errors or none or any(result.outcome in _LISTED_BY_OUTCOME for result in results):
        console.print()


def no_candidate_words(results: Iterable[Result]) -> str:
    """``no candidate: 166 problems``; empty where every problem has one. Names are in JSON and ``--by problem``."""
    problems = {result.problem for result in results if result.outcome is Outcome.NO_CANDIDATE}
    return f"{Outcome.NO_CANDIDATE}: {number_of(len(problems), 'problem')}" if problems else ""


def _print_failure(result: Result, console: Console) -> None:
    head = Text(f"{plain(result.problem)}{numbered_as(result.sample, result.round)}  ").append(
        str(result.outcome), style="red"
    )
    print_line(console, head, indent=2)
    for line in failure_words(result):
        print_line(console, Text(plain(line)), indent=6)
    if result.outcome in LOG_SAYS_MORE:
        for line in last_words(result.log_tail):
            print_line(console, Text(f"| {shortened(plain(line), 200)}", style="dim"), indent=6)


def numbered_as(sample: int, round: int) -> str:
    """`` sample 2 round 1``, both from 0; nothing of the first round of a first sample."""
    return (f" sample {sample}" if sample or round else "") + (f" round {round}" if round else "")


def failure_words(result: Result) -> Iterable[str]:
    """The case, then what was wrong in it: the first wrong element, or else the reason."""
    case = first_failure(result)
    if case:
        yield case_words(case)
    if case and case.mismatch:
        yield from _mismatch_words(case.mismatch)
        return
    reasons = (result.reason.strip(), case.reason.strip() if case else "")
    prefix = f"case {case.id}: " if case else ""
    yield from dict.fromkeys(reason.removeprefix(prefix) for reason in reasons if reason)


def last_words(log: str) -> Sequence[str]:
    """The end of a log; of a crash's, the top of the stack, which Python prints first."""
    lines = [line for line in log.splitlines() if line.strip() and not line.startswith("Extension modules:")]
    fatal = next((number for number, line in enumerate(lines) if line.startswith("Fatal Python error")), None)
    return lines[-_LOG_LINES:] if fatal is None else lines[fatal : fatal + _LOG_LINES]


def _print_listed(outcome: Outcome, results: Sequence[Result], console: Console) -> None:
    """Outcomes in which nothing ran: the problems by reason, each with how many of its samples."""
    by_reason: dict[str, Counter[str]] = {}
    for result in results:
        by_reason.setdefault(plain(result.reason), Counter())[result.problem] += 1
    for reason, counts in by_reason.items():
        problems = [f"{problem} ({count} times)" if count > 1 else problem for problem, count in counts.items()]
        if console.is_terminal and len(problems) > MOST_LISTED:
            problems[MOST_LISTED:] = [f"and {len(problems) - MOST_LISTED} more; --by problem has all"]
        head = Text(str(outcome), style="yellow").append(f"{f' ({reason})' if reason else ''}: ", style="default")
        print_line(console, head.append(plain(", ".join(problems)), style="default"), indent=2)


def print_line(console: Console, text: Text, *, indent: int) -> None:
    """Wrapped on a terminal; whole lines elsewhere, so that they can be searched."""
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, indent)))
    else:
        console.print(Text(" " * indent).append_text(text), soft_wrap=True)


def case_words(case: CaseResult) -> str:
    # What a case leaves as it is by default says nothing about it.
    told = {name: value for name, value in case.variables.items() if name not in ("dtype", "itemsize")}
    variables = ", ".join(
        f"{name}={value}"
        for name, value in told.items()
        if value is not None and value is not False and value != "default"
    )
    overload = f" overload {case.overload}" if case.overload else ""
    return f"case {case.id}{overload} ({case.phase}, {case.dtype}): {shortened(variables, 200)}".removesuffix(": ")


def _mismatch_words(wrong: Mismatch) -> Iterable[str]:
    yield f"{wrong.output}, shape {list(wrong.shape)}, {wrong.dtype}, at {list(wrong.index)}:"
    share = f"{_share(wrong.wrong_share)} of the elements are wrong"
    yield f"got {wrong.got}, wanted {wrong.wanted}, limit {wrong.limit}; {share}"


def _share(share: float) -> str:
    return f"{100 * share:.3g} %" if share == 0 or share >= 1e-5 else f"{share:.1e}"


def _source_lines(report: Report) -> Iterable[str]:
    """Per source: how many problems had the library beside them, how the candidates failed, overloads."""
    last_rows = {row.source: row for row in report.rows}  # the row of all kinds comes after the one of kind compute
    for row in last_rows.values():
        against = f"{row.against_library} against the library{_not_compared(row)}"
        yield f"{row.source}: {number_of(row.problems, 'problem')}, {against}{_own(row)}"
        failed = {name: count for name, count in row.outcomes.items() if name != Outcome.PASSED}
        if row.missing_samples:
            failed["not evaluated"] = row.missing_samples
        if failed:
            yield f"  not right: {', '.join(f'{count} {name}' for name, count in failed.items())}"
        for reason, problems in _by_value(row.no_library).items():
            yield f"  no library for {', '.join(problems)}: {reason}"
        if row.overloads:
            yield f"  overloads right {_count(row.overloads_right)} of {row.overloads}"
        yield from _cautions(row)


def _not_compared(row: Row) -> str:
    """Problems about whose library nothing is known, since no candidate of theirs came as far as the clock."""
    rest = row.problems - row.against_library - len(row.no_library)
    return f", {rest} not timed" if rest else ""


def _own(row: Row) -> str:
    return f", {row.own} of them your own" if row.own else ""


def _cautions(row: Row) -> Iterable[str]:
    if row.launch_bound:
        yield f"  launch-bound (library under 10 µs in every bench case): {number_of(row.launch_bound, 'problem')}"
    if row.flagged:
        yield f"  more than {FLAG_ABOVE:g} times as fast as the library, look twice: {', '.join(row.flagged)}"
    if row.clamped:
        yield f"  a ratio outside [1/1000, 100] was clamped: {', '.join(row.clamped)}"
    for reason, count in row.unconfined.items():
        yield f"  {NOT_CONFINED} ({number_of(count, 'result')}): {reason}"
    for problem, count in row.untimed.items():
        yield f"  {problem}: {number_of(count, 'bench case')} without a time, not part of its speedup"


def _footnotes(report: Report) -> Iterable[str]:
    info = report.info
    yield ""
    if info.get("timed") is False:
        what = "a suite" if report.suite is not None else "this provider"
        yield f"Nothing was timed: {what} is judged right or wrong only."
    if any(row.interpreted for row in report.rows):
        yield f"{ABSENT} Candidates ran in Triton's interpreter: right or wrong is judged, their speed means nothing."
    if any(row.kinds == "all kinds" for row in report.rows):
        yield "All kinds: problems that are not kind compute (views, creation, sync) may be judged without being timed."
    if report.by != "problem" and any(row.intervals for row in (*report.rows, *report.groups)):
        yield "95 % over problems: bootstrap over problems and samples. Other brackets: the clock's noise."
    if report.by != "problem" and any(row.speedup_over_all is not None for row in report.rows):
        yield "Over all: the geometric mean where a failure counts as 1/1000."
    if any(row.is_subset() for row in report.rows):
        yield "A subset's shares are of the problems selected; do not rank them beside a full run."
    samples = max((row.samples for row in report.rows), default=1)
    if samples > 1:
        yield f"Right, fast_p and overloads are means over samples, up to {samples} of a problem."
    if any(row.missing_samples for row in report.rows):
        yield f"{'Samples' if samples > 1 else 'Problems'} that were not evaluated count as not right."
    if report.after_rounds:
        yield "Of a sample's rounds the best one counts: right before not right, then the fastest by its interval."
    if any(case.timing and case.timing.noise_source == "measured" for r in report.results for case in r.cases):
        yield "Intervals are as wide as the noise that `kgbench selftest null` measured on this device."
    changing = sorted({r.problem for r in report.results if r.deterministic is False})
    if changing:
        yield f"Right, but not the same bits in two calls with the same input: {', '.join(changing)}."
    yield from verification.lines(report.verified, len(verification.winners(report.results)))
    yield from report.notes
    libraries = sorted({_library_words(result.library) for result in report.results if result.library})
    libraries = [words for words in libraries if words]
    yield from asked_lines(report.attempts, report.cost)
    yield f"device: {device_words(info.get('device') or {})}"
    if info.get("wall_s"):
        yield f"evaluation: {_share_timed(info)}"
    yield f"versions: {versions_words(info) or 'unknown'}"
    yield problem_set_words(report)
    if libraries:
        yield f"libraries: {', '.join(libraries)}"
    yield f"sandbox: {_sandbox(report)}"
    yield f"results: {report.where}"


def _library_words(library: Library) -> str:
    """Its name, and the math mode that it ran in where it has one."""
    mode = library.notes.get("math_mode")
    return f"{library.name} ({mode})" if library.name and mode else library.name


def _share_timed(info: Mapping[str, Any]) -> str:
    """How long it took, and how much of that some device spent timing."""
    device = info.get("device") or {}
    devices = max(1, len(device.get("devices") or ()))
    share = info["timed_s"] / (info["wall_s"] * devices)
    at_once = f", {device['jobs']} candidates at once" if device.get("jobs", 1) > 1 else ""
    on_each = " on each device" if at_once and devices > 1 else ""
    return f"{info['wall_s']:.0f} s{at_once}{on_each}, {share:.0%} of the time spent timing"


def device_words(facts: Mapping[str, Any]) -> str:
    """``NVIDIA H200, cuda, 151 GB`` from a session's facts."""
    memory = facts.get("memory_gb")
    parts = (facts.get("name"), facts.get("kind"), f"{memory:.0f} GB" if isinstance(memory, int | float) else None)
    return ", ".join(str(part) for part in parts if part) or "unknown (the run did not get so far)"


def versions_words(info: Mapping[str, Any]) -> str:
    facts = info.get("device") or {}
    named = {"kgbench": info.get("kgbench"), **facts.get("versions", {}), "driver": facts.get("driver")}
    return ", ".join(f"{name} {version}" for name, version in named.items() if version)


def problem_set_words(report: Report) -> str:
    return plain(str(ProblemSet.of(report.info)))


def _sandbox(report: Report) -> str:
    """What was really had: of the machine, or where results differ from it, of the results."""
    stated = (report.info.get("device") or {}).get("sandbox") or next(
        (result.sandbox for result in report.results if result.sandbox), {}
    )
    return "; ".join(f"{name} {state}" for name, state in stated.items()) or "nothing is known about it"


def _by_value(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    problems: dict[str, list[str]] = {}
    for problem, reason in reasons.items():
        problems.setdefault(reason, []).append(problem)
    return problems


def result_json(result: Result) -> dict[str, Any]:
    """A result as JSON-ready data, without its raw samples and without the cases that passed."""
    case = first_failure(result)
    against = {name: speedup(result, name) for name in ("library", "fallback")}
    return {
        "problem": result.problem,
        "model": result.model,
        "sample": result.sample,
        "round": result.round,
        "outcome": str(result.outcome),
        "reason": result.reason,
        "interpreted": result.interpreted,
        "speedup": None if result.interpreted else estimate_json(against["library"]),
        "fallback_speedup": None if result.interpreted else estimate_json(against["fallback"]),
        "overloads": result.overloads,
        "policy": result.policy,
        "not_allowed": [asdict(each) for each in result.evidence if not each.allowed],
        "library": asdict(result.library) if result.library else None,
        "first_failure": asdict(case) if case else None,
        "generation": asdict(result.generation) if result.generation else None,
        "log_tail": result.log_tail,
        "seconds": result.seconds,
        "memory_mb": result.memory_mb,
        "sandbox": result.sandbox,
    }


def estimate_json(estimate: Estimate | None) -> dict[str, Any] | None:
    return asdict(estimate) if estimate else None
