"""``kgbench show RUN/ID``: prints everything that a run found about one candidate, and the command that repeats it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kgbench.core.errors import KgbenchError, UsageError
from kgbench.core.names import resolve
from kgbench.core.outcomes import Outcome
from kgbench.core.text import plain
from kgbench.core.types import CaseResult, Generation, Result
from kgbench.llm.conversation import Stop
from kgbench.store.encoding import json_text
from kgbench.store.find import find_run
from kgbench.store.layout import RUN_FILE
from kgbench.store.reader import StoredRun, read_run
from kgbench.store.repeat import candidate_file, repeat_command, sample_label

if TYPE_CHECKING:
    from rich.console import Console

    from kgbench.problem.model import Problem

LOG_LINES: Final = 60
"""Lines of a log's end that are printed."""
_SAMPLE: Final = re.compile(r"(?P<id>.+)#(?P<sample>[0-9]+)(?:\.(?P<round>[0-9]+))?")


def split_run(spelling: str, out: Path) -> tuple[Path | None, str]:
    """The run's folder and the rest of ``RUN/ID``; (None, spelling) where it names no run.

    Raises StoreError where it begins like a run, and there is none or more than one.
    """
    head, _, name = spelling.rpartition("/")
    before, _, source = head.rpartition("/")
    refusals = []
    for run, rest in ((before, f"{source}/{name}"), (head, name)):
        try:
            path = find_run(run, out) if run else None
            if path is not None and (path / RUN_FILE).is_file():
                return path, rest
        except UsageError as error:
            refusals.append(error)
    if refusals and (before or head == "last" or head[:1].isdecimal()):
        raise refusals[0]
    return None, spelling


def show_verdict(run: Path, spelling: str, problem_dirs: Sequence[Path], *, as_json: bool) -> None:
    """Print one result of a stored run. Raises UsageError."""
    from rich.console import Console

    stored = read_run(run)
    result = find_result(stored, spelling)
    problem = problem_now(stored, result, problem_dirs)
    if as_json:
        click.echo(json_text(as_data(stored, result, problem), indent=2))
        return
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a dash must not end it in an ASCII locale
    print_verdict(stored, result, problem, Console(highlight=False))


def find_result(stored: StoredRun, spelling: str) -> Result:
    """Of ``ID`` the first sample, of ``ID#SAMPLE`` its best round, of ``ID#SAMPLE.ROUND`` that. Raises UsageError."""
    from kgbench.scores.samples import latest, newest

    match = _SAMPLE.fullmatch(spelling)
    sample = int(match["sample"]) if match else None
    number = int(match["round"]) if match and match["round"] else None
    attempts = newest(stored.results)
    asked = [each["id"] for each in stored.info.get("problems", ())]
    problem = resolve(match["id"] if match else spelling, asked or [result.problem for result in attempts]).id
    found = [result for result in attempts if result.problem == problem]
    if not found:
        raise UsageError("KGB414", f"{problem} was not evaluated in {stored.path.name}: the run ended before it")
    of_sample = [result for result in found if sample in (None, result.sample)]
    chosen = latest(result for result in of_sample if number in (None, result.round))
    if not chosen:
        wanted = f"round {number} of sample {sample}" if of_sample else f"sample {sample}"
        there = _samples(of_sample or found, rounds=bool(of_sample))
        raise UsageError("KGB415", f"{problem} has no {wanted} in {stored.path.name}; there are {there}")
    return chosen[0]


def as_data(stored: StoredRun, result: Result, problem: Problem | None) -> dict[str, Any]:
    """Everything on the screen and the result as stored, JSON-ready; raw samples stay in the run's folder."""
    from kgbench.reports.json_data import result_json
    from kgbench.reports.one_kernel import guess_of

    file = candidate_file(stored, result)
    return {
        "run": str(stored.path),
        "candidate": str(file) if file else None,
        "repeat": repeat_command(stored, result) or None,
        "problem_changed": _changed(result, problem),
        "guess": guess_of(result, problem),
        **result.to_json(),
        "speedup": result_json(result)["speedup"],
        "fallback_speedup": result_json(result)["fallback_speedup"],
    }


def print_verdict(stored: StoredRun, result: Result, problem: Problem | None, console: Console) -> None:
    """Print outcome and error, every case, speed, and below them the device and versions."""
    from rich.text import Text

    from kgbench.policy import evidence
    from kgbench.reports.one_kernel import failure_lines, speed_table
    from kgbench.reports.terminal import print_line
    from kgbench.scores.speedups import timed_cases

    def say(lines: Iterable[str], indent: int = 0) -> None:
        for line in lines:
            print_line(console, Text(plain(line)), indent=indent)

    right = result.outcome is Outcome.PASSED
    head = Text(plain(f"{stored.path.name}  {result.problem} {sample_label(result)} by {result.model}: "))
    print_line(console, head.append(str(result.outcome), style="green" if right else "red"), indent=0)
    say(() if right else failure_lines(result, problem), 2)
    if result.cases:
        say(("", f"cases ({len(result.cases)})"))
        say(_case_lines(result.cases), 2)
    if timed_cases(result):
        console.print()
        console.print(speed_table(result, problem, (stored.info.get("device") or {}).get("peaks")))
    seen = list(evidence.lines(result))
    if seen:
        say(("", f"what it was seen to do ({result.policy} policy)"))
        say(seen, 2)
    say(("", *_facts(stored, result, problem)))
    log = result.log_tail.splitlines()[-LOG_LINES:]
    if log:
        say(("", "end of the log"))
        say((f"| {line}" for line in log), 2)


def _case_lines(cases: Sequence[CaseResult]) -> Iterator[str]:
    from kgbench.reports.words import variables_words

    names = [f"{case.overload} {case.id}".strip() for case in cases]
    width, outcomes = max(map(len, names)), max(len(case.outcome) for case in cases)
    for name, case in zip(names, cases, strict=True):
        variables = variables_words(case)
        timed = case.timing
        times = f"  library {timed.library_us:.4g} µs, candidate {timed.candidate_us:.4g} µs" if timed else ""
        times += f" ({timed.note})" if timed and timed.note else ""
        yield f"{name:{width}}  {case.outcome:{outcomes}}  {case.seconds:7.3f} s  {variables}{times}".rstrip()


def _facts(stored: StoredRun, result: Result, problem: Problem | None) -> Iterator[str]:
    from kgbench.reports.words import device_words, result_line

    estimate = result_line(result)
    if result.outcome is Outcome.PASSED:
        yield f"verdict: {estimate}"
    for name, outcome in result.overloads.items():
        if name:
            yield f"overload {name}: {outcome}"
    if result.library and (result.library.name or result.library.reason):
        notes = "".join(f"; {key}: {text}" for key, text in result.library.notes.items())
        yield f"library: {result.library.name or f'none ({result.library.reason})'}{notes}"
    yield f"device: {device_words(stored.info.get('device') or {})}"
    named = (
        ("bench cases for", result.preset),
        ("sandbox", "; ".join(f"{name} {state}" for name, state in result.sandbox.items())),
        ("seconds", ", ".join(f"{name} {value:.3g}" for name, value in result.seconds.items())),
        ("peak memory in MB", ", ".join(f"{name} {value:.0f}" for name, value in result.memory_mb.items())),
    )
    yield from (f"{name}: {text}" for name, text in named if text)
    if _changed(result, problem):
        yield f"problem: its file has changed since; this verdict is of version {result.problem_sha256[:12]}"
    of_problem = [each for each in stored.results if each.problem == result.problem]
    rounds = any(each.round for each in of_problem)
    if rounds or any(each.sample != result.sample for each in of_problem):
        spelling = f"RUN/{result.problem}#N{'.R' if rounds else ''}"
        what = "samples and rounds" if rounds else "samples"
        yield f"{what}: {_samples(of_problem, rounds)}; `kgbench show {spelling}` has each"
    if result.generation:
        yield from _written(result.generation)
    command = repeat_command(stored, result)
    if command:
        yield f"again: {command}"


def _samples(results: Iterable[Result], rounds: bool = False) -> str:
    """``#0, #1``, and with rounds ``#0.0, #0.1, #1.0``."""
    numbers = sorted({(result.sample, result.round if rounds else 0) for result in results})
    return ", ".join(f"#{sample}.{number}" if rounds else f"#{sample}" for sample, number in numbers)


def _written(generation: Generation) -> Iterator[str]:
    """The model that wrote the candidate, and its tokens, time and cost."""
    from kgbench.core.figures import dollars, duration, tokens

    kinds = (generation.input_tokens, generation.cache_read_tokens, generation.cache_write_tokens)
    sent = None if kinds[0] is None else sum(count or 0 for count in kinds)
    parts = (
        f"{tokens(sent)} tokens in, {tokens(generation.output_tokens)} out",
        f"{duration(generation.seconds)}{' in a batch' if generation.batch else ''}",
        f"cost {dollars(generation.usd)}",
        f"{generation.checks} checks" if generation.checks is not None else "",
        f"stopped at: {generation.stop}" if generation.stop not in ("", Stop.END) else "",
    )
    yield f"written by: {generation.model_id or 'a model that did not say its id'}; {', '.join(filter(None, parts))}"
    if generation.confined:
        yield generation.confined


def _changed(result: Result, problem: Problem | None) -> bool:
    return problem is not None and bool(result.problem_sha256) and problem.sha256 != result.problem_sha256


def problem_now(stored: StoredRun, result: Result, problem_dirs: Sequence[Path]) -> Problem | None:
    """The problem's file as it is now; None where it is gone or cannot be read any more."""
    from kgbench.problem.registry import Registry, load_problem, problem_folders

    known = [Path(folder) for folder in (stored.info.get("asked") or {}).get("problem_dirs", ())]
    try:
        registry = Registry(problem_folders(problem_dirs or known))
        return load_problem(registry.paths[result.problem])
    except (KgbenchError, KeyError):
        return None
