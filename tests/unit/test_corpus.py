"""The corpus of examples: which verdicts differ from the stored ones, and the file that stores them."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks import corpus
from benchmarks.corpus import Verdict, differences
from kgbench.core.paths import examples_dir

STORED = {"aten/t": Verdict("passed", "aa", 0.5), "aten/mm": Verdict("timeout", "bb", 60.0)}


@pytest.mark.parametrize(
    ("problem", "outcome", "sha256", "lines", "outcomes"),
    [
        ("aten/t", "passed", "aa", [], 0),
        ("aten/mm", "timeout", "bb", [], 0),
        ("aten/t", "passed", "cc", ["aten/t: passed as stored, and its text has changed since"], 0),
        ("aten/t", "wrong value", "aa", ["aten/t: wrong value, stored: passed"], 1),
        ("aten/mm", "passed", "bb", ["aten/mm: passed, stored: timeout"], 1),
        ("aten/add", "passed", "dd", ["aten/add: passed, and no verdict is stored"], 0),
        ("aten/add", "timeout", "dd", ["aten/add: timeout, expected: passed"], 1),
    ],
)
def test_what_differs_from_the_stored_verdict(
    problem: str, outcome: str, sha256: str, lines: list[str], outcomes: int
) -> None:
    compared = differences({problem: Verdict(outcome, sha256, 1.0)}, STORED)
    assert (list(compared.lines), compared.outcomes) == (lines, outcomes)


def test_verdicts_are_read_as_written(tmp_path: Path) -> None:
    path = tmp_path / "corpus.json"
    verdicts = {"cpu": STORED, "NVIDIA H200": {"aten/t": Verdict("passed", "aa", 3.5)}}
    corpus.write(path, verdicts)
    assert corpus.read(path) == verdicts
    rows = [line for line in path.read_text().splitlines() if '"sha256"' in line]
    assert [line.partition(":")[0] for line in rows] == ['"aten/t"', '"aten/mm"', '"aten/t"'], "one line for each"
    assert corpus.read(tmp_path / "none.json") == {}


def test_another_outcome_ends_with_1_and_what_is_stored_covers_what_was_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "corpus.json"
    corpus.write(path, {"cpu": STORED})
    monkeypatch.setattr(corpus, "_judged", lambda *_: ("cpu", {"aten/t": Verdict("wrong value", "cc", 1.0)}))
    command = ["--problems", "aten/t", "--verdicts", str(path)]
    done = CliRunner().invoke(corpus.main, command)
    assert (done.exit_code, "aten/t: wrong value, stored: passed" in done.output) == (1, True)
    assert corpus.read(path) == {"cpu": STORED}
    assert CliRunner().invoke(corpus.main, [*command, "--store"]).exit_code == 1
    assert corpus.read(path) == {"cpu": {**STORED, "aten/t": Verdict("wrong value", "cc", 1.0)}}
    assert CliRunner().invoke(corpus.main, command).exit_code == 0


def test_a_file_that_is_not_of_verdicts_is_named(tmp_path: Path) -> None:
    path = tmp_path / "corpus.json"
    path.write_text('{"cpu": {"aten/t": 3}}')
    with pytest.raises(click.ClickException, match=r"corpus\.json has no verdicts"):
        corpus.read(path)


def test_examples_are_those_that_ship() -> None:
    assert len(corpus.examples([])) == len(list(examples_dir().glob("*/*.py")))
    with pytest.raises(click.UsageError, match="none of these problems has an example"):
        corpus.examples(["aten/bernoulli"])


def test_stored_verdicts_are_of_examples() -> None:
    stored = corpus.read(corpus.VERDICTS)
    assert set().union(*stored.values()) <= set(corpus.examples([]))
