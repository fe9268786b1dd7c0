"""All that is known of an outcome stands in one table: kgbench/core/outcomes.py."""

from __future__ import annotations

import ast
import io
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kgbench.core.outcomes import Blame, Group, Listed, Outcome, document
from kgbench.core.paths import problems_dir
from kgbench.core.types import result_from_json
from kgbench.problem.registry import load_problem
from kgbench.prompts.feedback import feedback_turn
from kgbench.reports.comparison import Side, compare
from kgbench.reports.export.junit import print_junit
from kgbench.reports.footnotes import closing_lines
from kgbench.reports.model import report_of
from kgbench.reports.terminal import print_table
from kgbench.scores.bounds import broken, parse_bounds
from kgbench.scores.overall import overall
from kgbench.scores.rows import rows
from kgbench.scores.samples import Selected
from kgbench.store.reader import read_run
from tests.unit.made_results import result
from tests.unit.test_comparison import stored

ROOT = Path(__file__).resolve().parents[2]
STORED = (
    "passed", "wrong value", "wrong shape", "wrong dtype", "input changed", "compile error", "runtime error", "crashed",
    "timeout", "out of memory", "rejected", "no candidate", "no code", "skipped", "harness error",
)  # fmt: skip
"""Texts in the results of earlier releases."""
MOST = 2
"""Outcomes that code may tell apart by name; what tells more apart is a fact of the table."""

PROSE = ROOT / "kgbench" / "prompts" / "logs.py"
"""Takes verdicts' sentences apart, each outcome's in its own way."""


def test_stored_results_are_read() -> None:
    for text in STORED:
        read = result_from_json({**result("aten/exp").to_json(), "outcome": text})
        assert str(read.outcome) == text
        assert pickle.loads(pickle.dumps(read.outcome)) is read.outcome


def test_docs_outcomes_is_current() -> None:
    written = (ROOT / "docs" / "outcomes.md").read_text(encoding="utf-8")
    assert written == document(), "write it anew: python -m kgbench.core.outcomes > docs/outcomes.md"


def test_only_what_passed_is_right() -> None:
    right = [each for each in Outcome if each.facts.group is Group.RIGHT]
    assert right == [each for each in Outcome if each.facts.listed is Listed.NOT] == [Outcome.PASSED]
    for each in Outcome:
        assert each.is_failure is (each.facts.blames in (Blame.CANDIDATE, Blame.HARNESS))
        assert not (each.facts.called and not each.facts.has_code)


def told_apart(tree: ast.Module) -> Iterator[tuple[int, set[str]]]:
    """(line, outcomes) of each display of outcomes, and of the comparisons of each function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            yield node.lineno, named(node)
        if isinstance(node, ast.FunctionDef):
            compared = (each for each in ast.walk(node) if isinstance(each, ast.Compare | ast.match_case))
            yield node.lineno, set().union(*map(named, compared))


def named(node: ast.AST) -> set[str]:
    attributes = (each for each in ast.walk(node) if isinstance(each, ast.Attribute))
    return {each.attr for each in attributes if ast.unparse(each.value).rpartition(".")[2] == "Outcome"}


@pytest.mark.parametrize(
    "source",
    [
        "BAD = (Outcome.CRASHED, Outcome.TIMEOUT, Outcome.REJECTED)",
        "BAD = {Outcome.CRASHED: 1, outcomes.Outcome.TIMEOUT: 2, Outcome.REJECTED: 3}",
        "def f(o):\n if o is Outcome.CRASHED: return 1\n if o in (Outcome.TIMEOUT, Outcome.REJECTED): return 2",
    ],
)
def test_a_table_of_outcomes_is_seen(source: str) -> None:
    assert any(len(names) > MOST for _, names in told_apart(ast.parse(source)))


def test_no_other_module_has_a_table_of_outcomes() -> None:
    found = []
    for path in sorted((ROOT / "kgbench").rglob("*.py")):
        if not {"examples", "files"} & set(path.parts) and path != PROSE:
            text = path.read_text(encoding="utf-8")
            if text.count("Outcome.") <= MOST:
                continue
            tables = ((line, names) for line, names in told_apart(ast.parse(text)) if len(names) > MOST)
            found += [f"{path.relative_to(ROOT)}:{line}: {', '.join(sorted(names))}" for line, names in tables]
    assert not found, "ask outcome.facts instead"


class TestWhatDoesNotCount:
    """``not interpretable``: neither for nor against the kernel."""

    SELECTED = tuple(Selected(name, "compute") for name in ("aten/a", "aten/b", "aten/c"))
    NOT_JUDGED = result("aten/c", outcome=Outcome.NOT_INTERPRETABLE, reason="the interpreter has no inline assembly")
    FOUND = (result("aten/a"), result("aten/b", outcome=Outcome.WRONG_VALUE), NOT_JUDGED)

    def test_stands_in_no_denominator_and_makes_a_subset(self) -> None:
        (row,) = rows(self.SELECTED, self.FOUND, declared={"aten": 3}, seed="run")
        assert (row.problems, row.correct, row.submitted, row.share_correct()) == (2, 1.0, 2, 0.5)
        assert row.outcomes["not interpretable"] == 1
        assert (row.selected, row.is_subset()) == (2, True)
        assert not rows(self.SELECTED[:2], self.FOUND[:2], declared={"aten": 2})[0].is_subset()

    def test_of_several_samples_the_others_count(self) -> None:
        outcomes = enumerate((Outcome.PASSED, Outcome.NOT_INTERPRETABLE, Outcome.WRONG_VALUE))
        found = [replace(result("aten/a", outcome=each), sample=number) for number, each in outcomes]
        (row,) = rows([Selected("aten/a", "compute", samples=4)], found)
        assert (row.problems, row.samples, row.missing_samples) == (1, 3, 1)
        assert row.share_correct() == pytest.approx(1 / 3)

    def test_a_source_of_which_nothing_counts_has_no_scores(self) -> None:
        (row,) = rows(self.SELECTED[2:], self.FOUND[2:], seed="run")
        assert (row.problems, row.values, row.intervals, row.outcomes) == (0, {}, {}, {"not interpretable": 1})
        both = [*self.SELECTED, Selected("vllm/a", "compute")]
        assert overall(both, [replace(self.NOT_JUDGED, problem="vllm/a")], (1.0,)) == ()

    def test_is_told_below_the_table_and_not_as_a_failure(self, tmp_path: Path) -> None:
        report = report_of(read_run(stored(tmp_path, "a", list(self.FOUND))))
        lines = closing_lines(report)
        assert "  not correct: 1 wrong value" in lines
        assert f"  in no denominator: 1 not interpretable, since {Outcome.NOT_INTERPRETABLE.facts.meaning}" in lines
        stream = io.StringIO()
        print_table(report, stream)
        assert "not interpretable (the interpreter has no inline assembly): aten/c" in stream.getvalue()
        stream = io.StringIO()
        print_junit(report, stream)
        assert '<skipped type="not interpretable"' in stream.getvalue()

    def test_a_bound_is_on_what_counts(self) -> None:
        assert not list(broken(parse_bounds("fast_0=0.5"), self.SELECTED, self.FOUND))
        (line,) = broken(parse_bounds("fast_0=0.6"), self.SELECTED, self.FOUND)
        assert "0.5 of 2 problems" in line
        (line,) = broken(parse_bounds("fast_0=0.6"), self.SELECTED[2:], self.FOUND[2:])
        assert "no problem of it can be judged on this machine" in line

    def test_runs_are_compared_over_what_counts_in_both(self, tmp_path: Path) -> None:
        other = [result("aten/a"), self.FOUND[1], result("aten/c")]
        first, second = stored(tmp_path, "a", list(self.FOUND)), stored(tmp_path, "b", other)
        found = compare(Side.of(read_run(first)), Side.of(read_run(second)))
        assert (found.only_first, found.only_second, found.not_counted) == (0, 0, 1)
        assert {each.problems for each in found.changes} == {2}
        assert [each.problem for each in found.duels] == ["aten/a", "aten/b"]

    def test_its_author_is_told_that_nothing_is_known(self) -> None:
        problem = load_problem(problems_dir() / "aten" / "neg.yaml")
        words = feedback_turn(problem, "", replace(self.NOT_JUDGED, problem="aten/neg"))
        assert words.startswith(f"Verdict: not interpretable: {Outcome.NOT_INTERPRETABLE.facts.meaning}.")
        assert "Nothing is known about it." in words
        assert "fix it" not in words
