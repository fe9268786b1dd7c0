"""What is printed of samples, rounds and costs: the figures, their meaning, and 80 columns."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

from rich.console import Console

from kgbench.core.outcomes import Outcome
from kgbench.core.types import Generation, Result
from kgbench.reports.json_data import as_json
from kgbench.reports.model import report_of
from kgbench.reports.terminal import print_report
from kgbench.store.encoding import json_text
from kgbench.store.reader import StoredRun
from tests.unit.made_results import result, timing

BY = Generation("m-20260101", 1000, 23_000, None, 8000, 31.0, 0.04)


def answer(
    problem: str, *times: Any, sample: int = 0, round: int = 0, by: Generation | None = BY, **more: Any
) -> Result:
    return dataclasses.replace(result(problem, *times, **more), sample=sample, round=round, generation=by)


def wrong(problem: str, sample: int = 0, round: int = 0, outcome: Outcome = Outcome.NO_CODE, **more: Any) -> Result:
    return answer(problem, sample=sample, round=round, outcome=outcome, reason="the reply is empty", **more)


def stored(results: list[Result], *problems: str, samples: int = 1, rounds: int = 1) -> StoredRun:
    info = {
        "format": 1,
        "samples": samples,
        "rounds": rounds,
        "problems": [{"id": name, "kind": "compute", "sha256": ""} for name in problems],
    }
    return StoredRun(Path("runs/x"), info, tuple(results), ())


def printed(run: StoredRun) -> str:
    file = io.StringIO()
    print_report(report_of(run), Console(file=file, width=80, highlight=False))
    return file.getvalue()


def cells(text: str, begin: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.strip().startswith(begin))
    return line.strip().removeprefix(begin).replace(" %", "%").split()


def data(run: StoredRun) -> Any:
    return json.loads(json_text(as_json(report_of(run))))


class TestSamples:
    RUN = stored(
        [answer("aten/mm", timing(2.0), sample=0), answer("aten/mm", timing(0.5), sample=1), wrong("aten/mm", 2)],
        "aten/mm", "aten/add", samples=4,
    )  # fmt: skip

    def test_pass_and_fast_at_k(self) -> None:
        text = printed(self.RUN)
        assert cells(text, "best of k samples, k =") == ["1", "2", "4"]
        assert cells(text, "aten compute pass@k") == ["25.0%", "41.7%", "50.0%"]
        assert cells(text, "aten compute fast_1@k") == ["12.5%", "25.0%", "50.0%"]

    def test_what_is_missing_is_said(self) -> None:
        text = printed(self.RUN)
        assert "not correct: 1 no code, 5 not evaluated" in text
        assert "Samples that were not evaluated count as not correct." in text
        assert "means over samples, up to 4 of a problem" in text

    def test_json_has_every_k_and_p(self) -> None:
        (row,) = data(self.RUN)["scores"]
        assert [(each["k"], each["correct"]) for each in row["at_k"]][:1] == [(1, 0.25)]
        assert [fast["p"] for fast in row["at_k"][1]["fast"]] == [0.5, 0.8, 1.0, 1.2, 1.5, 2.0]
        assert (row["samples"], row["missing_samples"]) == (4, 5)

    def test_many_k_fit_80_columns_and_keep_the_last(self) -> None:
        found = [answer(f"{source}/mm", timing(2.0), sample=n) for source in ("aten", "cublas") for n in range(200)]
        text = printed(stored(found, "aten/mm", "cublas/mm", samples=200))
        assert cells(text, "best of k samples, k =") == ["1", "2", "5", "10", "20", "200"]
        assert max(map(len, text.partition("\naten: ")[0].splitlines())) <= 80

    def test_one_sample_has_no_table(self) -> None:
        text = printed(stored([answer("aten/mm", timing(2.0))], "aten/mm"))
        assert "best of k" not in text
        assert "after rounds" not in text
        assert "means over samples" not in text

    def test_without_a_speed_there_is_no_fast_at_k(self) -> None:
        found = [answer("aten/mm", timing(2.0), sample=number, interpreted=True) for number in range(2)]
        text = printed(stored(found, "aten/mm", samples=2))
        assert cells(text, "aten compute pass@k") == ["100.0%", "100.0%"]
        assert "fast_1@k" not in text

    def test_no_code_is_listed_once_a_problem_with_its_count(self) -> None:
        found = [wrong("aten/mm", sample=number) for number in range(3)] + [wrong("aten/add", sample=1)]
        text = printed(stored(found, "aten/mm", "aten/add", samples=3))
        assert "  no code (the reply is empty): aten/mm (3 times), aten/add\n" in text

    def test_failures_say_sample_and_round(self) -> None:
        found = [
            wrong("aten/mm", 0, 0, Outcome.CRASHED),
            wrong("aten/mm", 1, 0, Outcome.CRASHED),
            wrong("aten/add", 0, 2, Outcome.CRASHED),
        ]
        text = printed(stored(found, "aten/mm", "aten/add", samples=2, rounds=3))
        for head in ("  aten/mm  crashed\n", "  aten/mm sample 1  crashed\n", "  aten/add sample 0 round 2  crashed\n"):
            assert head in text


class TestRounds:
    RUN = stored(
        [
            wrong("aten/mm"), answer("aten/mm", timing(0.5), round=1), answer("aten/mm", timing(2.0), round=2),
            answer("aten/add", timing(0.5)), wrong("aten/add", round=1), wrong("aten/add", round=2),
        ],
        "aten/mm", "aten/add", rounds=3,
    )  # fmt: skip

    def test_right_and_fast_after_each(self) -> None:
        text = printed(self.RUN)
        assert cells(text, "after rounds") == ["1", "2", "3"]
        assert cells(text, "aten compute correct") == ["50.0%", "100.0%", "100.0%"]
        assert cells(text, "aten compute fast_1") == ["0.0%", "0.0%", "50.0%"]
        assert "Of a sample's rounds the best one counts" in text
        assert "Not correct" not in text

    def test_json(self) -> None:
        found = data(self.RUN)
        assert [(each["rounds"], each["scores"][0]["correct"]) for each in found["after_rounds"]] == [
            (1, 1),
            (2, 2),
            (3, 2),
        ]
        assert (found["scores"][0]["cost"]["requests"], found["cost"]["requests"]) == (6, 6)
        assert [(one["problem"], one["round"]) for one in found["results"]] == [("aten/mm", 2), ("aten/add", 0)]

    def test_many_rounds_keep_the_last(self) -> None:
        found = [wrong("aten/mm", round=number) for number in range(20)]
        assert cells(printed(stored(found, "aten/mm", rounds=20)), "after rounds") == ["1", "2", "3", "4", "5", "20"]


class TestCost:
    def test_sum_and_means(self) -> None:
        found = [
            answer("aten/mm", sample=0), wrong("aten/mm", 1), wrong("aten/add", 0), wrong("aten/add", 1),
        ]  # fmt: skip
        text = printed(stored(found, "aten/mm", "aten/add", samples=2))
        assert cells(text, "asked") == ["requests", "tokens", "in", "cached", "out", "time", "cost"]
        assert cells(text, "aten   ") == ["4", "96", "k", "95.8%", "32", "k", "2.1", "min", "$0.16"]
        assert cells(text, "a sample") == ["1", "24", "k", "8.0", "k", "31", "s", "$0.040"]
        assert cells(text, "a problem") == ["2", "48", "k", "16", "k", "62", "s", "$0.080"]
        assert cells(text, "a solved problem") == ["4", "96", "k", "32", "k", "2.1", "min", "$0.16"]
        assert "answered by: m-20260101\n" in text
        assert "all sources" not in text

    def test_several_sources_have_a_sum(self) -> None:
        found = [answer("aten/mm"), answer("cublas/a")]
        text = printed(stored(found, "aten/mm", "cublas/a"))
        assert cells(text, "all sources")[0] == "2"
        assert cells(text, "all sources")[-1] == "$0.080"
        assert "a sample" not in text
        assert data(stored(found, "aten/mm", "cublas/a"))["cost"]["usd"] == 0.08

    def test_unknown_price_is_said_and_never_summed(self) -> None:
        silent = dataclasses.replace(BY, usd=None)
        text = printed(stored([answer("aten/mm"), answer("aten/add", by=silent)], "aten/mm", "aten/add"))
        assert cells(text, "aten   ")[-1] == "unknown"
        assert "cost: the price of 1 of 2 requests is unknown; the others cost $0.040\n" in text
        alone = printed(stored([answer("aten/mm", by=silent)], "aten/mm"))
        assert "cost: the price of 1 of 1 requests is unknown\n" in alone

    def test_unknown_tokens_are_said(self) -> None:
        silent = Generation("agent", seconds=5.0, usd=0.0)
        text = printed(stored([answer("aten/mm", by=silent)], "aten/mm"))
        assert cells(text, "aten   ") == ["1", "unknown", "–", "unknown", "5.0", "s", "$0.00"]
        assert "tokens: the provider did not say those of 1 of 1 requests" in text

    def test_batches_are_said(self) -> None:
        text = printed(stored([answer("aten/mm", by=dataclasses.replace(BY, batch=True))], "aten/mm"))
        assert "answered by: m-20260101, 1 of 1 requests in a batch\n" in text

    def test_results_carry_their_own(self) -> None:
        (one,) = data(stored([answer("aten/mm")], "aten/mm"))["results"]
        assert (one["generation"]["usd"], one["generation"]["model_id"]) == (0.04, "m-20260101")

    def test_where_no_model_was_asked_nothing_is_said(self) -> None:
        run = stored([answer("aten/mm", timing(2.0), by=None)], "aten/mm")
        text = printed(run)
        assert "asked" not in text
        assert "answered" not in text
        assert (data(run)["cost"], data(run)["scores"][0]["cost"]) == (None, None)


def test_agent_that_was_not_confined_stands_in_the_row_and_below() -> None:
    loose = dataclasses.replace(BY, not_confined="mount: permission denied")
    lines = printed(stored([answer("aten/mm", by=loose), answer("aten/add")], "aten/mm", "aten/add")).splitlines()
    row = next(number for number, line in enumerate(lines) if line.startswith("aten compute"))
    assert "agent not confined" in (line.strip() for line in lines[row : row + 3])
    assert "  agent not confined (1 result): mount: permission denied" in lines


def test_model_ids_cannot_steer_the_terminal() -> None:
    hostile = dataclasses.replace(BY, model_id="m\x1b[2J", not_confined="\x1b]0;x\x07")
    assert not {"\x1b", "\x07"} & set(printed(stored([answer("aten/mm", by=hostile)], "aten/mm")))
