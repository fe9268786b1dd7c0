"""Lines below the tables: per source, then about the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kgbench.core.figures import ABSENT, count_text, percent, ratio_text
from kgbench.core.outcomes import Outcome
from kgbench.core.text import number_of
from kgbench.core.types import WEAK, Library
from kgbench.reports.generated import asked_lines
from kgbench.reports.model import Report
from kgbench.reports.package_calls import package_lines
from kgbench.reports.slow_libraries import Slow, slow_libraries
from kgbench.reports.wall_time import wall_time_line
from kgbench.reports.words import device_words, problem_set_words, versions_words
from kgbench.scores.costs import NOT_CONFINED
from kgbench.scores.rows import Row
from kgbench.scores.speedups import FLAG_ABOVE
from kgbench.scores.table import BEST_FAST, BEST_SPEEDUP, SCORES, SOL, library_sol, sol
from kgbench.scores.wall_time import wall_time
from kgbench.store import verification


def closing_lines(report: Report) -> tuple[str, ...]:
    """What is said below the tables: per source, then what was true of the run; an empty line between."""
    return (*_source_lines(report), *run_lines(report))


def _source_lines(report: Report) -> Iterable[str]:
    """Per source: how many problems had the library beside them, how the candidates failed, overloads."""
    last_rows = {row.source: row for row in report.rows}  # the row of all kinds comes after the one of kind compute
    slow = slow_libraries(report.results)
    for row in last_rows.values():
        first = next(each for each in report.rows if each.source == row.source)
        against = f"{row.against_library} against the library{_not_compared(row)}"
        yield f"{row.source}: {number_of(row.problems, 'problem')}, {against}{_own(row)}"
        bad = {name: count for name, count in row.outcomes.items() if name != Outcome.PASSED}
        failed = {name: count for name, count in bad.items() if Outcome(name).facts.counts}
        if row.missing_samples:
            failed["not evaluated"] = row.missing_samples
        if failed:
            yield f"  not correct: {', '.join(f'{count} {name}' for name, count in failed.items())}"
        for name, count in bad.items():
            if not Outcome(name).facts.counts:
                yield f"  in no denominator: {count} {name}, since {Outcome(name).facts.meaning}"
        for reason, problems in _by_value(row.no_library).items():
            yield f"  no library for {', '.join(problems)}: {reason}"
        yield from _slow(slow, row.source)
        for weakness, problems in _weak(report, row.source).items():
            yield f"  weak, wrong answers pass: {', '.join(problems)}: {weakness}"
        if row.overloads:
            yield f"  overloads correct {count_text(row.overloads_correct)} of {row.overloads}"
        yield from _light(first)
        yield from _best_library(first)
        yield from _cautions(row)


def _best_library(row: Row) -> Iterable[str]:
    """Beside the fastest of the library and of packages; ``row`` is that of kind compute, where the source has one."""
    share, ratio = (row.values.get(score.name) for score in (BEST_FAST, BEST_SPEEDUP))
    if share is not None:
        speedup = f", speedup {ratio_text(ratio)}x" if ratio else ""
        yield f"  beside the best library: fast_1 {percent(share)}{speedup}"


def _light(row: Row) -> Iterable[str]:
    """The share of the speed of light; ``row`` is that of kind compute, where the source has one."""
    shares = [f"{score.name} {percent(row.values[score.name])}" for score in map(sol, SOL) if score.name in row.values]
    if shares:
        apart = row.problems - row.bounded
        yield f"  speed of light: {', '.join(shares)} of {number_of(row.bounded, 'problem')}; {apart} apart, whose work"
        yield "    takes less than an empty launch, or has no known bound"
    of_library = [(sol(p).name, row.values.get(library_sol(p).name)) for p in SOL]
    if any(value is not None for _, value in of_library):
        words = ", ".join(f"{name} {percent(value)}" for name, value in of_library if value is not None)
        yield f"  the library's own, of the problems of which it was timed: {words}"


def _slow(libraries: Iterable[Slow], source: str) -> Iterable[str]:
    """Libraries that a kernel beats many times, with the reason where it is known."""
    for each in libraries:
        if each.problem.startswith(f"{source}/"):
            why = f": {each.why}" if each.why else ""
            yield f"  slow library: {each.problem}, {ratio_text(each.speedup.point)}x{why}"


def _weak(report: Report, source: str) -> dict[str, list[str]]:
    """Problems of a source whose outputs let wrong answers pass, by which."""
    found = {r.problem: r.library.notes[WEAK] for r in report.results if r.library and WEAK in r.library.notes}
    return _by_value({problem: words for problem, words in found.items() if problem.startswith(f"{source}/")})


def _not_compared(row: Row) -> str:
    """Problems whose library is unknown, since none of their candidates was timed."""
    rest = row.problems - row.against_library - len(row.no_library)
    return f", {rest} not timed" if rest else ""


def _own(row: Row) -> str:
    return f", {row.own} of them your own" if row.own else ""


def _cautions(row: Row) -> Iterable[str]:
    if row.launch_bound:
        yield f"  launch-bound (library under 10 µs in every bench case): {number_of(row.launch_bound, 'problem')}"
    if row.flagged:
        yield f"  more than {FLAG_ABOVE:g} times as fast as the library, to be checked: {', '.join(row.flagged)}"
    if row.clamped:
        yield f"  a ratio outside [1/1000, 100] was clamped: {', '.join(row.clamped)}"
    for reason, count in row.unconfined.items():
        yield f"  {NOT_CONFINED} ({number_of(count, 'result')}): {reason}"
    for problem, count in row.untimed.items():
        yield f"  {problem}: {number_of(count, 'bench case')} without a time, not part of its speedup"


def run_lines(report: Report) -> Iterable[str]:
    info = report.info
    yield ""
    yield from package_lines(report.package_calls)
    if info.get("timed") is False:
        what = "a suite" if report.suite is not None else "this provider"
        yield f"Nothing was timed: {what} is judged for correctness only."
    if any(row.interpreted for row in report.rows):
        yield f"{ABSENT} Candidates ran in Triton's interpreter: only correctness is judged; their speed means nothing."
    if any(row.kinds == "all kinds" for row in report.rows):
        yield "All kinds: problems that are not kind compute (views, creation, sync) may be judged without being timed."
    if report.by != "problem" and any(row.intervals for row in (*report.rows, *report.groups)):
        yield "95 % over problems: bootstrap over problems and samples. Other brackets: the clock's noise."
    if report.by != "problem":
        known = {name for row in report.rows for name in row.values}
        yield from (score.footnote for score in SCORES if score.footnote and score.name in known)
    if any(row.is_subset() for row in report.rows):
        yield "A subset's shares are of the problems selected; do not rank them beside a full run."
    samples = max((row.samples for row in report.rows), default=1)
    if samples > 1:
        yield f"Correct, fast_p and overloads are means over samples, up to {samples} of a problem."
    if any(row.missing_samples for row in report.rows):
        yield f"{'Samples' if samples > 1 else 'Problems'} that were not evaluated count as not correct."
    if report.after_rounds:
        yield "Of a sample's rounds the best one counts: correct before not correct, then the fastest by its interval."
    if any(case.timing and case.timing.noise_source == "measured" for r in report.results for case in r.cases):
        yield "Intervals are as wide as the noise that `kgbench selftest null` measured on this device."
    changing = sorted({r.problem for r in report.results if r.deterministic is False})
    if changing:
        yield f"Correct, but not the same bits in two calls with the same input: {', '.join(changing)}."
    yield from verification.lines(report.verified, len(verification.winners(report.results)))
    yield from report.notes
    libraries = sorted({_library_words(result.library) for result in report.results if result.library})
    libraries = [words for words in libraries if words]
    yield from asked_lines(report.attempts, report.cost)
    yield f"device: {device_words(info.get('device') or {})}"
    if info.get("wall_s"):
        yield f"evaluation: {wall_time_line(wall_time(info, report.attempts))}"
    yield f"versions: {versions_words(info) or 'unknown'}"
    yield problem_set_words(report.info)
    if libraries:
        yield f"libraries: {', '.join(libraries)}"
    yield f"sandbox: {_sandbox(report)}"
    if parts := info.get("parts"):
        yield f"merged of {len(parts)} parts: {', '.join(str(part['id']) for part in parts)}"
    yield f"results: {report.where}"


def _library_words(library: Library) -> str:
    """The library's name and, if it has one, its math mode."""
    mode = library.notes.get("math_mode")
    return f"{library.name} ({mode})" if library.name and mode else library.name


def _sandbox(report: Report) -> str:
    """The sandbox that was in effect: the machine's or, where results differ from it, the results'."""
    stated = (report.info.get("device") or {}).get("sandbox") or next(
        (result.sandbox for result in report.results if result.sandbox), {}
    )
    return "; ".join(f"{name} {state}" for name, state in stated.items()) or "nothing is known about it"


def _by_value(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    problems: dict[str, list[str]] = {}
    for problem, reason in reasons.items():
        problems.setdefault(reason, []).append(problem)
    return problems
