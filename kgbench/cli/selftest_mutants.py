"""``kgbench selftest mutants``: do the problems' cases tell the standard wrong kernels from correct ones?"""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kgbench.cli.completion import complete_problem
from kgbench.cli.options import check_machine, device_option, json_option, problem_dir_option, source_option
from kgbench.cli.selftest_parts import Gathered, Part, PartCommand, gathered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kgbench.harness.session.session import Session
    from kgbench.problem.registry import Registry
    from kgbench.selftest.mutants import Row

EPILOG: Final = """
\b
Examples:
  a problem that you wrote: every mutant, and the case that caught it
    kgbench selftest mutants aten/softmax
  a tenth of everything
    kgbench selftest mutants --sample 0.1

Exit codes: 0 every mutant is caught or rightly declared equivalent, 1 not, 2 wrong command line, 3 this machine cannot,
130 interrupted.
"""


@click.command(
    "mutants",
    cls=PartCommand,
    epilog=EPILOG,
    short_help="Do the problems' cases catch the standard wrong kernels?",
    context_settings={"max_content_width": 110},
)
@click.argument("globs", metavar="[ID|GLOB]...", nargs=-1, shell_complete=complete_problem)
@source_option
@click.option("--mutant", "names", multiple=True, metavar="NAME", help="Only this mutant. Repeatable.")
@click.option("--sample", "share", type=click.FloatRange(0, 1, min_open=True), default=1.0, metavar="SHARE",
              help="Only this share of all pairs of problem and mutant, drawn by --seed.")  # fmt: skip
@click.option("--seed", default="", help="Draws the same sample again, and the same inputs.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N",
              help="Mutants that are run at once.  [default: as many as cores and memory allow]")  # fmt: skip
@problem_dir_option
@device_option
@json_option
def mutants(
    globs: tuple[str, ...],
    sources: tuple[str, ...],
    names: tuple[str, ...],
    share: float,
    seed: str,
    jobs: int | None,
    problem_dirs: tuple[Path, ...],
    device: str,
    as_json: bool,
) -> Part:
    """Run standard wrong kernels: does a case catch each?

    They are made from each problem's own reference: zeros, half the work, inputs rounded to TF32, the last row left out
    and so on. One that survives is a gap in the problem's cases; docs/problem-format.md, "mutants", says more.

    Of a single problem every mutant is printed; of several the counts by source, the reasons for mutants that are
    declared equivalent, and failures.
    """
    from kgbench.problem.registry import Registry, problem_folders
    from kgbench.selftest.mutants import BAD, as_data, chosen

    _check_names(names)
    registry = Registry(problem_folders(problem_dirs))
    seed = seed or secrets.token_hex(16)
    pairs = chosen(registry.select(sources, globs), names, share, seed)
    check_machine()
    by_pair = _run(registry, pairs, device, jobs or 0, seed)
    found = [row for rows in by_pair for row in rows]
    holds = not any(row.state in BAD for row in found)
    return Part(words(found), holds, list(lines(found)), {"seed": seed, **as_data(found)}, by_pair.cut_short)


def words(found: Sequence[Row]) -> str:
    """The part's share of the line that can be quoted."""
    from kgbench.selftest.mutants import counts

    by_state = counts(found)
    wrong = sum(count for state, count in by_state.items() if state not in ("equivalent", "not applicable"))
    return f"{by_state['caught']} of {wrong} mutants caught ({by_state['equivalent']} declared equivalent)"


def lines(found: Sequence[Row]) -> Iterator[str]:
    """Every mutant of a single problem; of several the counts by source, and each failure."""
    from kgbench.selftest.mutants import BAD, counts

    if len({row.problem for row in found}) == 1:
        yield from map(_line_of, found)
        yield ""
        yield f"{found[0].problem}: {_counted(counts(found))}"
        return
    yield from _by_source(found)
    for row in found:
        if row.state in BAD:
            yield f"{row.problem} {_line_of(row)}"


def _by_source(found: Sequence[Row]) -> Iterator[str]:
    from kgbench.core.text import number_of
    from kgbench.selftest.mutants import EQUIVALENT, counts

    for source in dict.fromkeys(row.problem.partition("/")[0] for row in found):
        own = [row for row in found if row.problem.startswith(f"{source}/")]
        problems, names = len({row.problem for row in own}), len({row.mutant for row in own})
        yield f"{source}: {number_of(problems, 'problem')} x {number_of(names, 'mutant')}: {_counted(counts(own))}"
        reasons = Counter((row.mutant, row.words) for row in own if row.state == EQUIVALENT)
        for (mutant, reason), count in reasons.most_common():
            yield f"  equivalent {count:>3} x {mutant}: {reason}"


def _line_of(row: Row) -> str:
    where = f" ({row.overload})" if row.overload else ""
    by = f" by {row.case}" if row.case and row.state == "caught" else ""
    words = f": {row.words}" if row.words and row.state != "caught" else ""
    return f"{row.mutant + where:<28} {row.state}{by}{words}"


def _counted(by_state: dict[str, int]) -> str:
    always = ("caught", "survived")
    return ", ".join(f"{count} {state}" for state, count in by_state.items() if count or state in always)


def _check_names(names: Sequence[str]) -> None:
    from kgbench.core.errors import UsageError
    from kgbench.core.names import did_you_mean
    from kgbench.problem.mutants import MUTANTS

    for name in names:
        if name not in MUTANTS:
            raise UsageError("KGB110", f"--mutant {name}: there is no such mutant; {did_you_mean(name, MUTANTS)}")


def _run(
    registry: Registry, pairs: Sequence[tuple[str, str]], device: str, jobs: int, seed: str
) -> Gathered[list[Row]]:
    """Every pair's rows, from a session of their own; progress goes to stderr."""
    from kgbench.core.paths import answer_dirs
    from kgbench.harness.session.session import Settings
    from kgbench.selftest.mutants import rows

    def run_one(session: Session, pair: tuple[str, str]) -> list[Row]:
        problem, mutant = pair
        return list(rows(session.evaluate, registry.paths[problem], problem, mutant))

    settings = Settings(device=device, seed=seed, timing=False, jobs=jobs, hidden=answer_dirs())
    return gathered(settings, pairs, run_one, _Notes(pairs))


class _Notes:
    """A line for each of several problems, as soon as its last mutant is ready."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self.left = Counter(problem for problem, _ in pairs)
        self.found: defaultdict[str, list[Row]] = defaultdict(list)

    def __call__(self, number: int, pair: tuple[str, str], own: list[Row]) -> str:
        from kgbench.selftest.mutants import counts

        problem, _ = pair
        self.found[problem] += own
        self.left[problem] -= 1
        if self.left[problem] or len(self.left) == 1:
            return ""
        ready = sum(not count for count in self.left.values())
        return f"[{ready}/{len(self.left)}] {problem}: {_counted(counts(self.found[problem]))}"
