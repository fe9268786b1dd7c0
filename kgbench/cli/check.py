"""``kgbench check``: judges one kernel and prints one screen. Nothing is stored."""

from __future__ import annotations

import ast
import re
import secrets
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kgbench.cli.completion import complete_problem
from kgbench.cli.options import (
    check_machine,
    deadline_option,
    deadline_overrides,
    deadlines_on,
    device_option,
    json_option,
    policy_option,
    problem_dir_option,
    timeout_option,
)
from kgbench.core import syntax, user_modules
from kgbench.core.errors import UsageError, shown_path
from kgbench.core.kinds import PolicyMode
from kgbench.core.outcomes import Outcome
from kgbench.core.text import plain
from kgbench.core.types import Result
from kgbench.reports.one_kernel import failure_lines, guess_of, speed_table
from kgbench.scores.roofline import achieved, cost_of, roofline_share
from kgbench.scores.speedups import timed_cases

if TYPE_CHECKING:
    from rich.console import Console

    from kgbench.harness.session.session import Job, Settings
    from kgbench.policy.hints import Hint
    from kgbench.problem.model import Problem
    from kgbench.problem.registry import Registry

MOST_HINTS: Final = 5
"""Most hints that are printed; a line counts the others."""
_DRAWN_FOR: Final = re.compile(r"(?P<model>.+)#(?P<sample>[0-9]+)(?:\.(?P<round>[0-9]+))?", re.DOTALL)
_TOP_LEVEL: Final = re.compile(r"^(?:def\s+(\w+)|(\w+)\s*=[^=])", re.MULTILINE)
EPILOG: Final = """
\b
Examples:
  which problem it is for is seen from the entry that it defines
    kgbench check softmax.py
  or is said
    kgbench check softmax.py aten/softmax
  for a program
    kgbench check softmax.py --json

Exit codes: 0 correct, 1 not correct, 2 wrong command line, 3 this machine cannot, 130 interrupted.
"""


@click.command(epilog=EPILOG, short_help="Judge one file on one screen.", context_settings={"max_content_width": 110})
@click.argument("kernel", metavar="KERNEL.py", type=click.Path(path_type=Path))
@click.argument("problem", metavar="[ID]", required=False, shell_complete=complete_problem)
@problem_dir_option
@device_option
@timeout_option
@deadline_option
@click.option("--seed", metavar="TEXT", help="Draw the inputs of a run with this seed.  [default: new ones]")
@click.option(
    "--drawn-for",
    metavar="MODEL#SAMPLE[.ROUND]",
    help="With --seed: which candidate of that run it was; each has its own inputs.",
)
@policy_option
@json_option
def check(
    kernel: Path,
    problem: str | None,
    problem_dirs: tuple[Path, ...],
    device: str,
    timeout_s: float | None,
    deadlines: tuple[str, ...],
    seed: str | None,
    drawn_for: str | None,
    policy: str,
    as_json: bool,
) -> None:
    """Judge one kernel: is it correct, where is it wrong, how fast is each bench case?

    KERNEL.py is one Python file that defines a problem's entry. It is judged as by `kgbench run`, in a process of its
    own, and nothing is stored.
    """
    from kgbench.harness.session.session import Job, Settings
    from kgbench.policy.hints import hints
    from kgbench.problem.registry import Registry, load_problem, problem_folders
    from kgbench.store.encoding import json_text

    overrides = deadline_overrides(deadlines, timeout_s)
    model, sample, number = _drawn_for(drawn_for, seed, f"check:{shown_path(kernel)}")
    text = _source(kernel)
    registry = Registry(problem_folders(problem_dirs))
    chosen = registry.resolve(problem).id if problem else problem_of(kernel, text, registry)
    check_machine()
    user_modules.offer(problem_dirs)
    loaded = load_problem(registry.paths[chosen])
    shown = shown_path(kernel)
    job = Job(loaded, model, sample, text, round=number)
    settings = Settings(
        device=device,
        jobs=1,
        seed=secrets.token_hex(16) if seed is None else seed,
        deadlines=deadlines_on(device, overrides),
        hidden=_hidden(loaded, problem_dirs),
        policy=PolicyMode(policy),
    )
    result, facts = _judge(job, shown, settings)
    found = hints(loaded, text)
    if as_json:
        data = {**as_data(result, loaded, facts), "hints": [asdict(hint) for hint in found]}
        click.echo(json_text(data, indent=2))
    else:
        _print(result, loaded, facts, shown, found)
    sys.exit(int(result.outcome is not Outcome.PASSED))


def _print(result: Result, problem: Problem, facts: Mapping[str, Any], file: str, found: Sequence[Hint]) -> None:
    from rich.console import Console

    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a dash must not end it in an ASCII locale
    print_screen(result, problem, facts, file, Console(highlight=False))
    for line in (*policy_lines(result), *hint_lines(found)):
        click.echo(line)


def problem_of(kernel: Path, text: str, registry: Registry) -> str:
    """Id of the problem whose entry the file defines at its top level. UsageError when none or several fit.

    Where several problems share an entry's name, a path ``<source>/<name>.py`` decides.
    """
    from kgbench.problem.registry import load_problem

    defined = defined_names(text)
    # Reading a problem takes a while; only those whose text has one of the names are read.
    mentioned = [
        each
        for each, path in registry.paths.items()
        if any(f"{name}(" in path.read_text(encoding="utf-8", errors="replace") for name in defined)
    ]
    entries = {
        each: {overload.signature.name for overload in load_problem(registry.paths[each]).overloads}
        for each in mentioned
    }
    found = [each for each in mentioned if entries[each] & set(defined)]
    if len(found) == 1:
        return found[0]
    named = f"{kernel.absolute().parent.name}/{kernel.stem}"
    if named in found:
        return named
    where = shown_path(kernel)
    if found:
        lines = "\n".join(f"  {each}: {', '.join(sorted(entries[each] & set(defined)))}" for each in found)
        raise UsageError(
            "KGB128",
            f"{where} defines entries of {len(found)} problems:\n{lines}\nSay which: kgbench check {where} {found[0]}",
        )
    raise UsageError("KGB129", _no_entry(where, defined, registry.ids(), kernel.stem))


def defined_names(text: str) -> list[str]:
    """Functions and other names that a file defines at its top level, also of one that Python cannot parse."""
    try:
        body = syntax.parse(text).body
    except (SyntaxError, ValueError):
        return [first or second for first, second in _TOP_LEVEL.findall(text)]
    names = []
    for node in body:
        match node:
            case ast.FunctionDef(name=name):
                names.append(name)
            case ast.Assign(targets=targets):
                names += [target.id for target in targets if isinstance(target, ast.Name)]
    return names


def policy_lines(result: Result) -> Iterable[str]:
    """What a kernel that counts as correct was seen to leave to others."""
    from kgbench.core.details.sentences import evidence_words
    from kgbench.core.text import plain

    if result.outcome is Outcome.PASSED:
        yield from (plain(f"policy: {evidence_words(each)}") for each in result.evidence if not each.allowed)


def hint_lines(found: Sequence[Hint]) -> Iterable[str]:
    """Hints at what the text may leave to a library; they may be wrong and decide nothing."""
    from kgbench.core.text import plain

    yield from (plain(f"hint: {hint}") for hint in found[:MOST_HINTS])
    if len(found) > MOST_HINTS:
        yield f"hint: {len(found) - MOST_HINTS} more such lines; see docs/policy.md"


def as_data(result: Result, problem: Problem, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Everything on the screen, JSON-ready."""
    from kgbench.reports.json_data import result_json

    bench = [
        {
            "id": case.id,
            "overload": case.overload,
            "dtype": case.dtype,
            "variables": case.variables,
            "timing": {name: value for name, value in asdict(case.timing).items() if name != "windows"},
            "achieved": achieved(case, cost_of(problem, case)),
            "roofline_share": roofline_share(case, cost_of(problem, case), facts.get("peaks")),
        }
        for case in timed_cases(result)
        if case.timing is not None
    ]
    return {
        **result_json(result),
        "correct": result.outcome is Outcome.PASSED,
        "guess": guess_of(result, problem),
        "cases_correct": _count_correct(result),
        "bench": bench,
        "device": dict(facts),
    }


def print_screen(result: Result, problem: Problem, facts: Mapping[str, Any], file: str, console: Console) -> None:
    """Print outcome, errors and speed, and below them the device and versions."""
    from rich.text import Text

    from kgbench.reports.terminal import print_line

    right = result.outcome is Outcome.PASSED
    head = Text(f"{plain(file)} as {problem.id}: ")
    print_line(console, head.append(str(result.outcome), style="green" if right else "red"), indent=0)
    for line in () if right else failure_lines(result, problem):
        print_line(console, Text(plain(line)), indent=2)
    print_line(console, Text(_count_correct(result)), indent=2)
    if timed_cases(result):
        console.print()
        console.print(speed_table(result, problem, facts.get("peaks")))
    console.print()
    for line in _footnotes(result, facts):
        print_line(console, Text(plain(line)), indent=0)


def _source(kernel: Path) -> str:
    from kgbench.models.provider import candidate_from_file

    found = candidate_from_file("", "", kernel)
    if found.source_text is None:
        raise UsageError(
            "KGB127", f"{shown_path(kernel)}: {found.reason}; give one Python file that defines a problem's entry"
        )
    return found.source_text


def _no_entry(where: str, defined: Sequence[str], ids: Sequence[str], stem: str) -> str:
    from kgbench.core.names import hint

    has = f"defines {', '.join(defined[:8])}" if defined else "defines no function at its top level"
    return (
        f"{where} {has}, and none is the entry of a problem; name the problem: kgbench check {where} ID "
        f"({hint(defined[0] if defined else stem, ids)}). kgbench show ID prints the entry's signature"
    )


def _drawn_for(text: str | None, seed: str | None, own: str) -> tuple[str, int, int]:
    """Model, sample and round of ``--drawn-for``, or this file's own. Raises UsageError."""
    if text is None:
        return own, 0, 0
    match = _DRAWN_FOR.fullmatch(text)
    if match is None or seed is None:
        raise UsageError(
            "KGB109",
            f"--drawn-for {text}: expected MODEL#SAMPLE, for example 'dir:my_kernels#0', and --seed beside it; "
            "`kgbench show RUN/ID` prints both",
        )
    return match["model"], int(match["sample"]), int(match["round"] or 0)


def _hidden(problem: Problem, problem_dirs: Sequence[Path]) -> tuple[Path, ...]:
    from kgbench.core.paths import hidden_dirs

    return hidden_dirs(problem.path.parent, *problem_dirs, "runs")


def _judge(job: Job, shown: str, settings: Settings) -> tuple[Result, Mapping[str, Any]]:
    """The result and the session's facts. SIGTERM and SIGHUP end it like Ctrl-C: no process is left."""
    from rich.console import Console

    from kgbench.core.interruption import ended_by_signals
    from kgbench.evaluation.coordinator import opened
    from kgbench.evaluation.progress import display
    from kgbench.harness.session.session import Session

    console = Console(stderr=True, highlight=False)
    with ended_by_signals(), opened(Session(settings), console) as session, display(console, 1) as progress:
        progress.note(f"judging {shown} as {job.problem_id}")
        progress.started(job.problem_id)
        result = session.evaluate(job, on_event=lambda phase, detail: progress.phase(job.problem_id, phase, detail))
        return result, session.facts


def _count_correct(result: Result) -> str:
    right, judged = sum(case.outcome is Outcome.PASSED for case in result.cases), len(result.cases)
    return f"cases judged: {judged}, " + ("all correct" if right == judged else f"{right} of them correct")


def _footnotes(result: Result, facts: Mapping[str, Any]) -> Iterable[str]:
    from kgbench.core import figures
    from kgbench.reports.words import device_words, estimate_text
    from kgbench.scores.speedups import speedup

    estimates = [(name, speedup(result, name)) for name in ("library", "fallback")]
    for name, estimate in () if result.interpreted else estimates:
        if estimate:
            launch_bound = ", launch-bound (library under 10 µs)" if estimate.launch_bound else ""
            yield f"speedup against the {name}: {estimate_text(estimate)}{launch_bound}"
    if any(case.timing and case.timing.against == "fallback" for case in result.cases):
        yield "* beside a plain torch expression: the library does not run here"
    if result.interpreted:
        yield f"{figures.ABSENT} It ran in Triton's interpreter: only correctness is judged; its speed means nothing."
    if result.deterministic is False:
        yield "two calls with the same input differed in their bits; both are within the limit"
    if result.library and (result.library.name or result.library.reason):
        yield f"library: {result.library.name or f'none ({result.library.reason})'}"
    yield f"device: {device_words(facts)}"
    seconds = result.seconds.get("total")
    if seconds is not None:
        yield f"judged in {seconds:.1f} s; `kgbench doctor` says what this machine allows"
