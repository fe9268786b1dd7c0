"""``kgbench selftest null``: each library against itself. How often would noise alone say "faster"?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgbench.cli.completion import complete_problem
from kgbench.cli.options import check_machine, device_option, json_option, problem_dir_option
from kgbench.cli.selftest_parts import Gathered, Part, PartCommand, gathered

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kgbench.core.types import Result
    from kgbench.harness.machine.settings import Job
    from kgbench.harness.session.session import Session
    from kgbench.selftest.null_test import NullTest


@click.command("null", cls=PartCommand, short_help="How often would noise alone call a kernel faster?")
@click.argument("globs", metavar="[ID|GLOB]...", nargs=-1, shell_complete=complete_problem)
@click.option("--source", "sources", multiple=True, metavar="NAME", help="aten, vllm, cublas, a comma list, or all.")
@click.option("--runs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="How often.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N",
              help="Libraries prepared at once; one at a time is timed.  [default: as many as fit]")  # fmt: skip
@click.option("--keep/--no-keep", default=True, show_default=True, help="Keep the noise for later sessions.")
@problem_dir_option
@device_option
@json_option
def null(
    globs: tuple[str, ...],
    sources: tuple[str, ...],
    runs: int,
    jobs: int | None,
    keep: bool,
    problem_dirs: tuple[Path, ...],
    device: str,
    as_json: bool,
) -> Part:
    """Time every library against itself.

    Prints each problem's ratio with its interval, and how often noise alone would have called it faster at p = 1, by
    the interval and by the point estimate. The noise is stored for this device: later intervals are at least as wide.
    """
    from kgbench.harness.machine.devices import find_devices
    from kgbench.problem.model import SOURCES
    from kgbench.problem.registry import Registry, declared_sizes, load_problem, problem_folders
    from kgbench.selftest.null_test import job_of, keep_noise, of_results

    registry = Registry(problem_folders(problem_dirs))
    chosen = registry.select(sources, globs)
    check_machine()
    problems = [load_problem(registry.paths[each]) for each in chosen]
    wanted = [job_of(problem, run) for run in range(runs) for problem in problems]
    results = _run(wanted, device, jobs or 0)
    sizes = declared_sizes()
    found = of_results(results, sum(sizes[source] for source in SOURCES))
    kept = keep_noise(find_devices(device)[0], found) if keep else None
    # Of a machine that was busy it is wide, and it stays.
    told = f"noise kept in {kept}: later intervals here are at least as wide; without the file they are not"
    note = [told] if kept is not None else []
    data = {**found.to_json(), "kept": kept and str(kept)}
    return Part(words(found), found.holds(), [*lines(found), *note], data, results.cut_short)


def lines(found: NullTest) -> Iterable[str]:
    """A line per problem, then what was not timed by its reason, then the noise by range of time."""
    from kgbench.core.text import number_of
    from kgbench.selftest.null_test import MOST_KEPT, range_words

    for problem in dict.fromkeys(row.problem for row in found.problems):
        rows = [row for row in found.problems if row.problem == problem]
        ratios = "  ".join(f"{row.ratio:.4f} [{row.low:.3f}, {row.high:.3f}]" for row in rows)
        faster = "  called faster" if any(row.low > 1 for row in rows) else ""
        yield f"{problem:<38} {ratios}{'  launch-bound' if rows[0].launch_bound else ''}{faster}"
    for why in dict.fromkeys(found.not_timed.values()):
        alike = [problem for problem, reason in found.not_timed.items() if reason == why]
        yield f"{number_of(len(alike), 'problem')} not timed, {why}: {', '.join(alike)}"
    if found.changing:
        yield f"different bits in a second call with the same input: {', '.join(found.changing)}"
    for key, width in found.noise().items():
        wide = ", too wide to keep: other work went on here" if width > MOST_KEPT else ""
        yield f"noise, {range_words(key)}: half-width {width:.2%} over {len(found.by_range()[key])} ratios{wide}"
    counts = found.summary()
    yield f"bench cases: {counts['intervals_with_1']} of {counts['cases']} intervals hold 1"
    for key, limit in (("over_20_us", "1 %"), ("20_us_and_below", "3 %")):
        good, count = counts[key]
        yield f"  {key.replace('_us', ' µs').replace('_', ' ')}: {good} of {count} within {limit}"
    if counts["geometric_mean"] is not None:
        yield f"  geometric mean {counts['geometric_mean']:.4f}"


def words(found: NullTest) -> str:
    """The part's share of the line that can be quoted."""
    counts = found.summary()
    return (
        f"{counts['faster_by_interval']} of {counts['problems']} libraries called faster than themselves "
        f"({counts['faster_by_point']} by the point estimate)"
    )


def _run(wanted: Sequence[Job], device: str, jobs: int) -> Gathered[Result]:
    """All results, in the order of the jobs; as many at once as the machine allows, timed in turns."""
    from kgbench.core.paths import answer_dirs
    from kgbench.evaluation.progress import finished_line
    from kgbench.harness.session.session import Settings

    def run_one(session: Session, job: Job) -> Result:
        return session.evaluate(job)

    def said(number: int, job: Job, result: Result) -> str:
        return finished_line(result, number, len(wanted)).plain

    return gathered(Settings(device=device, jobs=jobs, hidden=answer_dirs()), wanted, run_one, said)
