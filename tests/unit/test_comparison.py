"""Two runs beside each other, against numbers computed by hand; and all runs of a folder, ranked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from kgbench.cli.main import main
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Library, Result
from kgbench.reports.comparison import Change, Comparison, Side, compare, differences
from kgbench.reports.leaderboard import boards, read_reports
from kgbench.store.reader import read_run
from kgbench.store.writer import RunStore
from tests.unit.made_results import LIBRARY, result, timing

H200 = {"name": "NVIDIA H200", "driver": "580"}
WRONG = Outcome.WRONG_VALUE


def stored(out: Path, run_id: str, results: list[Result], *, names: list[str] | None = None, **info: Any) -> Path:
    """A run that has ended, of the problems that the results are of unless others are named."""
    ids = names or list(dict.fromkeys(each.problem for each in results))
    facts = {"problems": [{"id": name, "kind": "compute", "sha256": "1", "category": "c"} for name in ids]}
    facts |= {"model": "baseline", "device": H200, "started": "2026-01-02T03:04:05+00:00"}
    store = RunStore.create(out, run_id, {**facts, **info}, seed="s")
    for each in results:
        store.append(each)
    store.finish("finished", finished="2026-01-02T04:00:00+00:00", seed="s")
    return store.path


def side(tmp_path: Path, name: str, results: list[Result], **info: Any) -> Side:
    return Side.of(read_run(stored(tmp_path, name, results, **info)))


def change(found: Comparison, group: str, score: str) -> Change:
    return next(each for each in found.changes if each.group == group and each.score == score)


def many(ratio: float, right: int = 40) -> list[Result]:
    """40 problems whose speeds are far apart, of which the first ones are correct."""
    return [
        result(f"aten/p{n}", timing(ratio * 2 ** (n % 5))) if n < right else result(f"aten/p{n}", outcome=WRONG)
        for n in range(40)
    ]


class TestCompare:
    def test_hand_computed(self, tmp_path: Path) -> None:
        one = side(tmp_path, "a", [result("aten/a", timing(2.0)), result("aten/b", timing(0.5)),
                                   result("aten/c", outcome=WRONG)])  # fmt: skip
        other = side(tmp_path, "b", [result("aten/a", timing(4.0)), result("aten/b", timing(2.0)),
                                     result("aten/c", timing(1.0))])  # fmt: skip
        found = compare(one, other)
        right, fast = change(found, "aten", "correct"), change(found, "aten", "fast_1")
        assert (right.first, right.second, right.change) == pytest.approx((2 / 3, 1.0, 1 / 3))
        assert (fast.first, fast.second, fast.change) == pytest.approx((1 / 3, 2 / 3, 1 / 3))
        both = change(found, "aten", "speedup where both are correct")
        assert both.problems == 2
        assert (both.first, both.second, both.change) == pytest.approx((1.0, 8**0.5, 8**0.5))
        assert [(each.problem, each.winner) for each in found.duels] == [
            ("aten/a", "second"), ("aten/b", "second"), ("aten/c", "second")]  # fmt: skip

    def test_pairing_makes_a_small_difference_certain(self, tmp_path: Path) -> None:
        """10 % on every problem, beside speeds that differ sixteenfold: paired there is no doubt."""
        found = compare(side(tmp_path, "a", many(1.0)), side(tmp_path, "b", many(1.1)))
        both = change(found, "aten", "speedup where both are correct")
        assert both.interval == pytest.approx((1.1, 1.1))
        assert both.certain
        assert not change(found, "aten", "correct").certain

    def test_interval_of_a_share(self, tmp_path: Path) -> None:
        """10 of 40 more right: 0.25 ± 1.96 · √(0.25 · 0.75 / 40)."""
        found = compare(side(tmp_path, "a", many(1.0, 20)), side(tmp_path, "b", many(1.0, 30)))
        right = change(found, "aten", "correct")
        assert right.interval == (pytest.approx(0.116, abs=0.03), pytest.approx(0.384, abs=0.03))
        assert right.certain

    def test_a_run_beside_itself_changes_nothing(self, tmp_path: Path) -> None:
        one = side(tmp_path, "a", many(1.0, 20))
        found = compare(one, one)
        assert {each.change for each in found.changes} <= {0.0, 1.0}
        assert not any(each.certain for each in found.changes)
        assert {each.winner for each in found.duels} == {"neither"}

    def test_only_common_problems_count(self, tmp_path: Path) -> None:
        one = side(tmp_path, "a", [result("aten/a", timing(2.0)), result("aten/b", timing(2.0))])
        other = side(tmp_path, "b", [result("aten/b", timing(2.0)), result("vllm/c", timing(2.0))])
        found = compare(one, other)
        assert (found.only_first, found.only_second, len(found.duels)) == (1, 1, 1)

    def test_speeds_within_the_clocks_noise_are_won_by_neither(self, tmp_path: Path) -> None:
        one = side(tmp_path, "a", [result("aten/a", timing(1.0)), result("aten/b", timing(1.0))])
        other = side(tmp_path, "b", [result("aten/a", timing(1.03)), result("aten/b", timing(1.05))])
        assert [each.winner for each in compare(one, other).duels] == ["neither", "second"]

    def test_the_same_two_runs_are_the_same_for_ever(self, tmp_path: Path) -> None:
        one, other = side(tmp_path, "a", many(1.0, 20)), side(tmp_path, "b", many(1.1, 30))
        assert compare(one, other) == compare(one, other)


class TestDifferences:
    RESULTS = (result("aten/a", timing(2.0)),)

    @pytest.mark.parametrize(
        ("info", "what", "decides"),
        [
            ({"device": {"name": "NVIDIA B200", "driver": "580"}}, "device", True),
            ({"device": {"name": "NVIDIA H200", "driver": "590"}}, "driver", False),
            ({"packages": {"torch": "2.12"}}, "torch", False),
            ({"timed": False}, "clock", True),
            ({"samples": 10}, "samples", False),
            ({"problems": [{"id": "aten/a", "kind": "compute", "sha256": "2"}]}, "problem files: aten/a", True),
        ],
    )
    def test_is_named(self, tmp_path: Path, info: dict[str, Any], what: str, decides: bool) -> None:
        stored(tmp_path, "a", list(self.RESULTS), packages={"torch": "2.11"})
        path = stored(tmp_path, "b", list(self.RESULTS), **{"packages": {"torch": "2.11"}, **info})
        found = list(differences(*(Side.of(read_run(each)) for each in (tmp_path / "a", path))))
        assert [(each.what, each.decides) for each in found] == [(what, decides)]

    def test_libraries_and_policies(self, tmp_path: Path) -> None:
        newer = result("aten/a", timing(2.0), library=Library("cuBLAS 14"), policy="off")
        one = side(tmp_path, "a", [result("aten/a", timing(2.0), policy="strict")])
        found = list(differences(one, side(tmp_path, "b", [newer])))
        assert [str(each) for each in found] == [
            "policy: strict and off", f"library of aten: {LIBRARY.name} and cuBLAS 14"]  # fmt: skip
        assert all(each.decides for each in found)

    def test_alike_runs_have_none(self, tmp_path: Path) -> None:
        one, other = (side(tmp_path, name, list(self.RESULTS)) for name in "ab")
        assert list(differences(one, other)) == []


class TestCommand:
    def test_table_fits_80_columns_and_names_the_winners(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        paths = [str(stored(tmp_path, name, many(ratio, right))) for name, ratio, right in
                 (("a", 0.9, 20), ("b", 1.1, 30), ("c", 1.0, 30))]  # fmt: skip
        done = CliRunner().invoke(main, ["compare", *paths])
        assert done.exit_code == 0, done.output
        assert done.output.count("who wins a problem") == 2
        assert "first 0, second 30, neither 10" in done.output
        table = [line for line in done.output.splitlines() if line.startswith("  ") and "wins" not in line]
        assert max(map(len, table)) <= 80
        assert not any("…" in line for line in table)

    def test_what_decides_refuses_unless_anyway(self, tmp_path: Path) -> None:
        paths = [str(stored(tmp_path, name, many(1.0), device={"name": name})) for name in "ab"]
        refused = CliRunner().invoke(main, ["compare", *paths])
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "device: a and b" in refused.output
        done = CliRunner().invoke(main, ["compare", *paths, "--anyway", "--json"])
        assert done.exit_code == 0
        assert "not comparable: the runs differ in device" in done.stderr
        (found,) = json.loads(done.stdout)
        assert found["changes"][0] == {
            "group": "aten", "problems": 40, "score": "correct", "first": 1.0, "second": 1.0, "change": 0.0,
            "interval": [0.0, 0.0], "certain": False,
        }  # fmt: skip


def test_runs_without_speed_say_so_and_a_damaged_one_what_is_missing(tmp_path: Path) -> None:
    stored(tmp_path, "a", many(1.0))
    run = stored(tmp_path, "b", [replace(each, interpreted=True) for each in many(1.0)])
    with (run / "results.jsonl").open("a") as file:
        file.write('{"problem"')
    done = CliRunner().invoke(main, ["compare", str(tmp_path / "a"), str(run), "--anyway"])
    assert "No speed of aten: not timed in both" in done.stdout
    assert "baseline b: KGB607: results.jsonl:41: the last line is cut off" in done.stderr


class TestLeaderboard:
    def test_is_ranked_by_fast_1_then_right_and_ties_share_a_rank(self, tmp_path: Path) -> None:
        for name, ratio, right in (("a", 0.01, 30), ("b", 5.0, 20), ("c", 0.01, 30), ("d", 0.01, 10)):
            stored(tmp_path, name, [*many(ratio, right)], names=_all_of_aten())
        (board,) = boards(read_reports(tmp_path)[0])
        assert [(each.rank, each.run) for each in board.entries] == [(1, "b"), (2, "a"), (2, "c"), (4, "d")]
        assert board.entries[0].row.intervals["fast_1"][0] > 0
        assert (board.device, board.entries[0].date) == ("NVIDIA H200", "2026-01-02")

    def test_a_part_is_listed_without_a_rank_and_hardware_is_kept_apart(self, tmp_path: Path) -> None:
        stored(tmp_path, "part", many(1.0))
        stored(tmp_path, "whole", many(1.0), names=_all_of_aten())
        stored(tmp_path / "deeper", "elsewhere", many(1.0), names=_all_of_aten(), device={"name": "A100"})
        found = boards(read_reports(tmp_path)[0])
        assert sorted((board.device, each.run, each.rank) for board in found for each in board.entries) == [
            ("A100", "elsewhere", 1), ("NVIDIA H200", "part", None), ("NVIDIA H200", "whole", 1)]  # fmt: skip
        assert len(found) == 3

    def test_a_run_that_lacks_results_says_how_it_ended(self, tmp_path: Path) -> None:
        run = stored(tmp_path, "a", many(1.0), names=_all_of_aten())
        info = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps({**info, "status": "interrupted"}))
        page = tmp_path / "board.html"
        assert ", interrupted" in CliRunner().invoke(main, ["leaderboard", str(tmp_path)]).stdout
        CliRunner().invoke(main, ["leaderboard", str(tmp_path), "--html", str(page)])
        assert ">interrupted<" in page.read_text()

    def test_two_reports_at_once_are_refused(self, tmp_path: Path) -> None:
        done = CliRunner().invoke(main, ["leaderboard", str(tmp_path), "--html", str(tmp_path / "a.html"), "--json"])
        assert (done.exit_code, done.stdout) == (2, "")
        assert "KGB190: --html and --json are two reports; ask for one at a time" in done.stderr

    def test_command(self, tmp_path: Path) -> None:
        stored(tmp_path, "whole", many(1.0), names=_all_of_aten())
        with (stored(tmp_path, "killed", many(1.0)) / "results.jsonl").open("a") as file:
            file.write('{"problem"')
        (tmp_path / "broken").mkdir()
        (tmp_path / "broken" / "run.json").write_text("{")
        done = CliRunner().invoke(main, ["leaderboard", str(tmp_path)])
        assert done.exit_code == 0
        assert "NVIDIA H200, aten" in done.stdout
        assert "KGB626: left out: " in done.stderr
        assert f"{tmp_path / 'killed'}: KGB607: results.jsonl:41" in done.stderr
        boards_json = json.loads(CliRunner().invoke(main, ["leaderboard", str(tmp_path), "--json"]).stdout)
        assert [each["rank"] for board in boards_json for each in board["entries"]].count(1) == 1


def _all_of_aten() -> list[str]:
    return [f"aten/p{n}" for n in range(110)]


@given(
    ratios=st.lists(st.tuples(st.none() | st.floats(0.01, 50), st.none() | st.floats(0.01, 50)), min_size=2, max_size=6)
)
@settings(max_examples=20, deadline=None)
def test_the_other_way_round_says_the_opposite(ratios: list[tuple[float | None, float | None]]) -> None:
    """Exactly in the values; in who wins, too. None is a wrong kernel."""
    with TemporaryDirectory() as folder:
        one, other = (
            side(Path(folder), name, [_maybe(f"aten/p{n}", pair[number]) for n, pair in enumerate(ratios)])
            for number, name in enumerate("ab")
        )
        there, back = compare(one, other), compare(other, one)
    opposite = {"first": "second", "second": "first", "neither": "neither"}
    assert [opposite[each.winner] for each in there.duels] == [each.winner for each in back.duels]
    for each, again in zip(there.changes, back.changes, strict=True):
        assert (each.first, each.second) == (again.second, again.first)
        if each.change is not None and again.change is not None:
            assert again.change == pytest.approx(1 / each.change if each.is_ratio else -each.change)
        if each.interval:
            assert each.interval[0] <= each.interval[1]


def _maybe(problem: str, ratio: float | None) -> Result:
    return result(problem, outcome=WRONG) if ratio is None else result(problem, timing(ratio))
