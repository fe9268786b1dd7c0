"""RESULTS.md, the leaderboard's page and README.md's table, from what is stored in ``results/``. The same folder gives
the same bytes.

``python -m kgbench.reports.publishing.results`` in a checkout, which is ``make results``, writes them again.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, Final

from kgbench.core.errors import KgbenchError
from kgbench.core.figures import ABSENT, percent
from kgbench.core.text import number_of
from kgbench.reports.best_library import beside, packages_of
from kgbench.reports.formats import print_markdown
from kgbench.reports.leaderboard import boards
from kgbench.reports.markdown import table, table_row
from kgbench.reports.model import Report, report_of
from kgbench.reports.page.ranking import leaderboard_page
from kgbench.reports.publishing.checks import renewed, without_verdict
from kgbench.reports.publishing.folder import Publication, pack_verifications, publications
from kgbench.reports.publishing.overview import (
    as_rounds,
    called,
    failures,
    overview,
    peers,
    round_by_round,
    weak_libraries,
)
from kgbench.reports.publishing.readme import README, with_tables
from kgbench.scores.light import LEAST_VERSION, contradicted
from kgbench.store.errors import StoreError
from kgbench.store.reader import StoredRun, read_run
from kgbench.store.verification import PACKED_FILE

RESULTS_TEXT: Final = "RESULTS.md"
LEADERBOARD: Final = "leaderboard.html"
"""Name of the leaderboard's page below ``results/``."""
_HEAD: Final = """\
# Results

Rendered by `make results` from the runs in `results/`; do not edit it by hand. docs/published.md says what a published
run has to be and what each of its files is, docs/scores.md what each number means. `kgbench reproduce results/FOLDER`
judges a run's kernels again. Ranked per source and device: `results/leaderboard.html`.
"""
_NOTHING: Final = """\
**Nothing is published yet**, so there is no number here. A run on a GPU is published with `kgbench publish RUN`.
"""


@dataclass(frozen=True)
class _Shown:
    """A published run with the report that RESULTS.md prints of it."""

    rounds: tuple[Publication, ...]
    """The run that began, those that followed it, and this one."""
    infos: tuple[dict[str, Any], ...]
    """What each of them says in its run.json."""
    report: Report
    """Of all rounds so far."""
    packages: tuple[str, ...]
    """Those whose kernels were judged, which are libraries here; empty for a model's kernels."""
    beside: tuple[str, ...]
    """Packages that the kernels are compared with."""
    judged: int
    """Kernels of this run that have a verdict."""
    missing: tuple[str, ...]
    """Problems without a verdict: it was interrupted before, or of a package's run kgbench itself failed."""
    renewed: tuple[str, ...]
    """Problems whose files have changed since the round before."""
    between: bool
    """Whether it is a round between the first and the last."""

    @property
    def publication(self) -> Publication:
        return self.rounds[-1]

    @property
    def info(self) -> dict[str, Any]:
        return self.infos[-1]

    @property
    def name(self) -> str:
        """The run's; that of several rounds is the first one's, with their number."""
        first, *later = self.rounds
        return f"{first.path.name}, after {len(self.rounds)} rounds" if later else first.path.name


def rendered(results: Path) -> dict[str, str]:
    """The text of RESULTS.md, of ``results/leaderboard.html`` and, where there is one, of README.md, by path below
    ``results``'s parent.

    Raises StoreError where a published run is not as it was published, or cannot be read.
    """
    found = {each.path.name: each for each in publications(results)}
    runs = {name: each.counted(read_run(each.path)) for name, each in found.items()}
    # A run stands behind those that it follows.
    chains = sorted((_rounds(each, found) for each in found.values()), key=lambda each: [one.path.name for one in each])
    followed = {each.after for each in found.values()}
    shown = [_shown(each, runs, results / "records", each[-1].path.name in followed) for each in chains]
    text = "\n".join([_HEAD, *(_whole(shown, results) if shown else [_NOTHING])])
    page = leaderboard_page(boards(_named(each) for each in shown if not each.packages))
    files = {RESULTS_TEXT: text, f"{results.name}/{LEADERBOARD}": page}
    if (readme := results.parent / README).is_file():
        rounds: dict[str, list[Report]] = {}
        for each in shown:
            rounds.setdefault(each.rounds[0].path.name, []).append(each.report)
        files[README] = with_tables(readme.read_text(encoding="utf-8"), rounds)
    return files


def _rounds(publication: Publication, found: Mapping[str, Publication]) -> tuple[Publication, ...]:
    """A published run behind all that it follows. Raises StoreError where one of them is gone."""
    rounds = [publication]
    while after := rounds[0].after:
        if after not in found:
            raise StoreError("KGB434", f"{rounds[0].path}: it follows {after}, which is gone; restore that with git")
        rounds.insert(0, found[after])
    return tuple(rounds)


def _shown(rounds: tuple[Publication, ...], runs: Mapping[str, StoredRun], records: Path, is_followed: bool) -> _Shown:
    *earlier, run = (runs[each.path.name] for each in rounds)
    before = reduce(as_rounds, earlier) if earlier else None
    whole = as_rounds(before, run) if before else run
    changed = renewed(run.info, before.info) if before else ()
    packages, others = packages_of(run), list(runs.values())
    compared = () if packages else beside(whole.info, others)
    names = dict.fromkeys(name for each in compared for name in packages_of(each))
    report = report_of(whole, records=records, libraries=compared)
    infos = tuple(each.info for each in (*earlier, run))
    judged = sum(bool(result.candidate_sha256) for result in run.results)
    missing = tuple(each for each in without_verdict(run) if each not in rounds[-1].left_out)
    between = is_followed and len(rounds) > 1
    return _Shown(rounds, infos, report, packages, tuple(names), judged, missing, tuple(changed), between)


def _named(shown: _Shown) -> Report:
    """The report of several rounds with what tells it from that of the first one on the leaderboard."""
    if not shown.publication.after:
        return shown.report
    said = {key: ", then ".join(str(info.get(key)) for info in shown.infos) for key in ("model", "id")}
    return replace(shown.report, info={**shown.report.info, **said})


def _whole(shown: Sequence[_Shown], results: Path) -> Iterator[str]:
    kernels, libraries = ([each for each in shown if bool(each.packages) is whether] for whether in (False, True))
    if kernels:
        ends = [each for each in kernels if not each.between]
        yield "## All runs\n"
        yield "\n".join(overview((each.name, each.report) for each in ends))
        yield f"\n{_columns_words(kernels)}\n"
        yield from map(_round_by_round, _series(kernels))
    if libraries:
        yield "## Installed packages\n"
        yield "Judged like kernels, but for the policy, which is `report`; never ranked among them. docs/packages.md.\n"
        named = [(each.name, each.report) for each in libraries]
        yield "\n".join([*overview(named, "package"), "", *called(named), ""])
    if others := "\n".join(peers(results)):
        yield f"## What others have published about the same operators\n\n{others}\n"
    yield from map(_section, shown)


def _series(kernels: Iterable[_Shown]) -> Iterator[list[_Shown]]:
    """Runs of several rounds, first to last."""
    found: dict[str, list[_Shown]] = {}
    for each in kernels:
        found.setdefault(each.rounds[0].path.name, []).append(each)
    return (rounds for rounds in found.values() if len(rounds) > 1)


def _round_by_round(rounds: Sequence[_Shown]) -> str:
    lines = round_by_round((each.publication.what, each.judged, each.report) for each in rounds)
    return "\n".join([f"## {rounds[0].name}, round by round", "", *lines, ""])


def _columns_words(shown: Sequence[_Shown]) -> str:
    words = "[ ]: 95 % bootstrap interval over problems. What each column means: docs/scores.md."
    if names := dict.fromkeys(name for each in shown for name in each.beside):
        words += (
            f"  \nBest library: the fastest of the library and {' and '.join(names)}, by timed case, on the same GPU."
        )
    return words


def _section(shown: _Shown) -> str:
    info, report, device = shown.info, shown.report, shown.info.get("device") or {}
    stream = io.StringIO()
    print_markdown(report, stream)
    facts = [
        ("package", ", ".join(shown.packages)) if shown.packages else ("kernels by", info.get("model")),
        ("device", f"{device.get('name')}, driver {device.get('driver') or 'unknown'}"),
        ("started, ended (UTC)", f"{info.get('started')}, {info.get('finished')}"),
        ("software", _versions(info)),
        ("sandbox, policy", _shut_off(report)),
        ("seeds", ", ".join(f"`{each.get('seed')}`" for each in info.get("segments", ()))),
    ]
    if shown.publication.after:
        again = f"{number_of(shown.judged, 'kernel')} written again"
        facts.append(("follows", f"{shown.publication.after}; {again}; below, the best one of each"))
    if shown.renewed:
        facts.append(("problem files changed", f"{', '.join(shown.renewed)}: only the kernel of this round counts"))
    if shown.missing and shown.packages:
        facts.append(("without a verdict", f"{', '.join(sorted(shown.missing))}: counted as not correct"))
    elif shown.missing:
        facts.append(("interrupted before", f"{', '.join(shown.missing)}: the kernel of the round before counts"))
    if left_out := shown.publication.left_out:
        facts.append(("left out", f"{', '.join(left_out)}: the kernel of the round before counts"))
    if shown.beside:
        facts.append(("best library", f"the fastest of the library and {', '.join(shown.beside)}, by timed case"))
    lines = [f"## {shown.publication.path.name}", "", "| | |", "|---|---|", *map(table_row, facts)]
    more = (_curve(report), _bounds(report), failures(report.results), weak_libraries(report.results))
    text = "\n".join([*lines, "", stream.getvalue(), *(each for part in more for each in (*part, ""))])
    if not shown.between:
        return text
    return f"<details><summary>{shown.publication.path.name}</summary>\n\n{text}\n</details>\n"


def _bounds(report: Report) -> Iterator[str]:
    """Least times of the run that an earlier kgbench computed, or that its own library proves wrong."""
    info = report.info
    if info.get("least_us") and info.get("least_version", 1) < LEAST_VERSION:
        yield "Least times of this run are of an earlier definition, so that its sol_50 and sol_80 and those of later"
        yield "runs are not the same shares: docs/measurements.md, least times audited."
        yield ""
    wrong = contradicted(report.info.get("least_us") or {}, report.attempts)
    if wrong:
        cases = number_of(sum(map(len, wrong.values())), "timed call")
        problems = ", ".join(sorted(wrong))
        yield f"Without a least time: {cases} of {problems}, where the library takes less than the one stored."


def _versions(info: dict[str, Any]) -> str:
    packages = info.get("packages") or {}
    return ", ".join([f"kgbench {info.get('kgbench')}", *(f"{name} {packages[name]}" for name in sorted(packages))])


def _shut_off(report: Report) -> str:
    """Sandbox levels and policies of the results; the library timed against itself needs neither."""
    judged = [result for result in report.results if result.candidate_sha256]
    levels = sorted({result.sandbox.get("level", "unknown") for result in judged if result.cases})
    policies = sorted({result.policy for result in judged if result.policy})
    return f"{' and '.join(levels) or ABSENT}, {' and '.join(policies) or ABSENT}"


def _curve(report: Report) -> Iterable[str]:
    """fast_p over p, by the lower ends of intervals."""
    rows = [row for row in (*report.rows, *report.overall) if any(fast.interval is not None for fast in row.fast)]
    if not rows:
        return
    heads = [f"{fast.p:g}" for fast in rows[0].fast]
    lines = ([f"{row.source} {row.kinds}", *(percent(fast.interval) for fast in row.fast)] for row in rows)
    yield from table(["fast_p at p =", *heads], lines, "l" + "r" * len(heads))


def write(checkout: Path) -> None:
    """Write all of them into a checkout, and pack what was verified since. Raises StoreError, OSError."""
    for each in publications(checkout / "results"):
        if pack_verifications(each.path):
            print((each.path / PACKED_FILE).relative_to(checkout))
    for name, text in rendered(checkout / "results").items():
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_text(text, encoding="utf-8", newline="")
        print(name)


if __name__ == "__main__":
    try:
        write(Path.cwd())
    except KgbenchError as error:
        raise SystemExit(f"kgbench: {error.printed}") from None
