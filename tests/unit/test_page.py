"""What is in the file of a page, without a browser: tests/browser opens it."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kgbench.cli.main import main
from kgbench.core.figures import percent, size
from kgbench.core.outcomes import Outcome
from kgbench.reports.page.detail import MOST_POINTS
from kgbench.reports.page.document import write_page
from kgbench.reports.page.source import page_source
from kgbench.store.reader import read_run
from tests.browser.made_run import make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs"), problems=4, samples=2, windows=150)


@pytest.fixture(autouse=True)
def without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes two seconds to put together, and nothing here draws."""
    monkeypatch.setattr("kgbench.reports.page.document._vega", lambda: "")


def written(run: Path, file: Path, **more: int) -> str:
    source = page_source(read_run(run, with_windows=True), lambda result: "")
    return write_page(source, file, **more).path.read_text()


def data(text: str, name: str) -> dict[str, Any]:
    found = re.search(rf'<script type="text/plain" id="{name}">([A-Za-z0-9+/=]+)</script>', text)
    assert found
    read: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found[1])))
    return read


def test_the_same_run_gives_the_same_bytes_wherever_it_lies(run: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / run.name
    moved.parent.mkdir()
    moved.symlink_to(run)
    assert written(run, tmp_path / "a.html") == written(moved, tmp_path / "b.html")


def test_no_text_of_a_candidate_stands_in_the_file_as_it_is(run: Path, tmp_path: Path) -> None:
    text = written(run, tmp_path / "a.html")
    assert "<img" not in text
    assert "&lt;/script&gt;&lt;img" in text.partition("</title>")[0]
    assert "\u202e" not in text
    assert text.count("<script") == text.count("</script>") == 1 + 1 + 4  # the script, the overview, four problems


def test_the_policy_allows_nothing_but_the_pages_own_script_and_style(run: Path, tmp_path: Path) -> None:
    found = re.search(r'Content-Security-Policy" content="([^"]+)"', written(run, tmp_path / "a.html"))
    assert found
    policy = dict(part.split(" ", 1) for part in found[1].split("; "))
    assert policy["default-src"] == "'none'"
    assert re.fullmatch(r"'sha256-[^']+'", policy["script-src"])
    assert re.fullmatch(r"'sha256-[^']+'", policy["style-src"])


def test_many_timing_samples_become_sixty_points(run: Path, tmp_path: Path) -> None:
    text = written(run, tmp_path / "a.html")
    timed = [one for number in range(4) for each in data(text, f"problem-{number}")["samples"] for one in each["timed"]]
    assert timed
    assert all(len(points) == MOST_POINTS for one in timed for points in one["samples"].values())


def test_scores_of_the_page_are_those_of_the_report(run: Path, tmp_path: Path) -> None:
    index = data(written(run, tmp_path / "a.html"), "index")
    stored = page_source(read_run(run), lambda result: "").report
    assert [each["problems"] for each in index["headline"]] == [r.problems for r in (*stored.overall, *stored.rows)]
    figures = {name: (value, ends) for name, value, ends in index["headline"][0]["figures"]}
    (at_two,) = (each for each in stored.overall[0].at_k if each.k == 2)
    assert figures["pass@2"][0] == percent(at_two.correct)
    assert figures["pass@2"][1].startswith("[")
    assert sum(each["correct"] for each in index["problems"]) == sum(r.outcome == "passed" for r in stored.results)


def test_every_outcome_has_a_colour(run: Path, tmp_path: Path) -> None:
    text = written(run, tmp_path / "a.html")
    index = data(text, "index")
    assert set(index["groups"]) == {*Outcome, "not evaluated"}
    for group in index["group_order"]:
        assert f".o-{group} {{ background: " in text
    assert set(index["groups"].values()) <= set(index["group_order"])


def test_too_much_for_one_file_is_a_folder(run: Path, tmp_path: Path) -> None:
    text = written(run, tmp_path / "a.html", most_bytes=1000)
    assert "problem-0" not in text
    assert "'self'" in text
    assert sorted(path.name for path in (tmp_path / "a" / "data").iterdir()) == [f"problem-{n}.js" for n in range(4)]


def test_no_older_page_stays_beside_a_new_one(run: Path, tmp_path: Path) -> None:
    def files() -> list[str]:
        return sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())

    written(run, tmp_path / "a.html")
    written(run, tmp_path / "a.html", most_bytes=1000)
    assert files() == ["a/data/problem-0.js", "a/data/problem-1.js", "a/data/problem-2.js", "a/data/problem-3.js",
                       "a/index.html"]  # fmt: skip
    (tmp_path / "a" / "data" / "problem-17.js").touch()
    written(run, tmp_path / "a.html", most_bytes=1000)
    assert "a/data/problem-17.js" not in files()
    written(run, tmp_path / "a.html")
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]


def test_what_is_no_page_stays(run: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "index.html").write_text("mine")
    written(run, tmp_path / "a.html")
    assert (tmp_path / "a" / "index.html").read_text() == "mine"
    written(run, tmp_path / "b.html", most_bytes=1000)
    (tmp_path / "b" / "notes").touch()
    written(run, tmp_path / "b.html")
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["notes"]


def test_the_command_says_what_it_wrote_and_what_is_missing(run: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["report", str(run), "--html", str(tmp_path / "a.html")])
    assert done.exit_code == 0
    file = tmp_path / "a.html"
    assert done.stdout == f"{file}: {size(file.stat().st_size)}\n"
    assert "pip install 'kgbench[page]'" in done.stderr
