"""A run that GPUs of two models judged: each has a table of its own, everywhere."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kgbench
from kgbench.cli.main import main
from kgbench.core.errors import UsageError
from kgbench.core.outcomes import Outcome
from kgbench.store.by_device import by_device
from kgbench.store.reader import read_run
from kgbench.store.writer import RunStore
from tests.unit.made_results import result, timing

IDS = ("aten/mm", "aten/softmax", "aten/t", "vllm/rms_norm")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of four problems with two samples each: one on both devices, two on one each, one that nobody came to."""
    monkeypatch.chdir(tmp_path)
    problems = [{"id": name, "kind": "compute", "sha256": "1", "category": "x", "overloads": []} for name in IDS]
    device = {"name": "H100", "kind": "cuda", "peaks": {}, "devices": [{"name": "H100"}, {"name": "H200"}]}
    info: dict[str, Any] = {"problems": problems, "samples": 2, "device": device, "model": "m", "timed": True}
    store = RunStore.create(tmp_path / "runs", "20260102T030405Z-ab12cd", info, seed="s")
    for problem, sample, ratio, name in (
        ("aten/mm", 0, 2.0, "H100"), ("aten/mm", 1, 0.5, "H200"), ("aten/softmax", 0, 2.0, "H100"),
        ("aten/softmax", 1, 2.0, "H100"), ("aten/t", 0, 0.5, "H200"),
    ):  # fmt: skip
        times = result(problem, timing(ratio), problem_sha256="1", device_name=name, seconds={"total": 1.0})
        store.append(replace(times, sample=sample))
    store.append(replace(result("aten/t", outcome=Outcome.NO_CODE, problem_sha256="1"), sample=1))
    store.finish("finished", finished="2026-01-02T04:00:00+00:00", seed="s")
    return store.path


def command(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, words)
    return done.exit_code, done.output


def test_each_device_has_a_table_of_what_it_judged(run: Path) -> None:
    code, text = command("report", str(run), "--json")
    assert code == 0, text
    found = json.loads(text[text.index("[") :])
    scores = [[(row["source"], row["problems"], row["correct"]) for row in each["scores"]] for each in found]
    # Of aten/t the H200 has a correct sample and one without code; to vllm/rms_norm nobody came.
    assert scores == [
        [("aten", 3, pytest.approx(2.0)), ("vllm", 1, 0.0)],
        [("aten", 2, pytest.approx(1.5)), ("vllm", 1, 0.0)],
    ]
    code, text = command("report", str(run))
    assert text.count("source   ") == 2
    assert "device: H100" in text
    assert "device: H200" in text


def test_no_speed_of_one_is_in_the_score_of_the_other(run: Path) -> None:
    for name, share, problems in (("H100", 2 / 4, 4), ("H200", 0.0, 3)):
        found = kgbench.load_run(run, on=name)
        assert found.fast_p(1.0) == pytest.approx(share)
        assert len(found.info["problems"]) == problems
        assert {each.device_name for each in found.results} - {""} == {name}


@pytest.mark.parametrize(
    "words", ["report --html x.html", "report --format csv", "report --format md", "report --cite"]
)
def test_what_has_one_table_asks_which(run: Path, words: str) -> None:
    name, *options = words.split()
    code, text = command(name, str(run), *options)
    assert (code, "KGB156" in text, "--on 'H100'" in text) == (2, True, True), text
    assert command(name, str(run), *options, "--on", "H200")[0] == 0


def test_two_runs_are_compared_on_one_device(run: Path) -> None:
    assert "KGB156" in command("compare", str(run), str(run))[1]
    code, text = command("compare", str(run), str(run), "--on", "H100")
    assert code == 0, text
    with pytest.raises(UsageError, match="was not judged on 'A100'; there is H100, H200"):
        kgbench.load_run(run, on="A100")


def test_a_leaderboard_has_a_board_for_each(run: Path) -> None:
    _, text = command("leaderboard", str(run.parent), "--json")
    boards = json.loads(text[text.index("[") :])
    assert {each["device"] for each in boards} == {"H100", "H200"}


def test_a_run_on_one_device_is_as_ever(run: Path) -> None:
    stored = read_run(run)
    alone = [each for each in stored.results if each.device_name == "H100"]
    assert by_device(replace(stored, results=tuple(alone)))[0].results == tuple(alone)


def test_a_service_shows_each_device_apart(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    from kgbench.reports.page import document
    from kgbench.service.errors import ServiceError
    from kgbench.service.problems import Problems
    from kgbench.service.runs import Runs

    monkeypatch.setattr(document, "_vega", str)
    runs = Runs(run.parent, Problems())
    lines = [(each["id"], each["device"], each["on"], each["problems"]) for each in runs.all()]
    assert lines == [(run.name, "H100", "H100", 4), (run.name, "H200", "H200", 3)]
    for name, correct in (("H100", 2.0), ("H200", 1.5)):
        found = runs.one(run.name, name)
        assert found["scores"][0]["correct"] == pytest.approx(correct)
        assert {each["device_name"] for each in found["results"]} - {""} == {name}
        assert runs.page(run.name, name) != runs.page(run.name, {"H100": "H200", "H200": "H100"}[name])
    for ask in (runs.one, runs.page):
        for wrong in ("", "A100"):
            with pytest.raises(ServiceError, match=r"H100 and H200.*\?on=") as raised:
                ask(run.name, wrong)
            assert (raised.value.number, raised.value.status) == ("KGB156", 404)
            assert str(run.parent) not in raised.value.text
    assert {each.device for each in runs.boards()} == {"H100", "H200"}
