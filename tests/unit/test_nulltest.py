"""The null test: what noise alone would have called faster, what is kept of it, and what intervals make of that."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import pytest
from click.testing import CliRunner

from kgbench.cli.selftest_null import lines, words
from kgbench.core.device_facts import NOISE, PEAKS, device_key, keep, known, noise_of, path_of
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.harness.clock.statistics import NULL_NOISE, measured_noise, null_noise, time_range
from kgbench.harness.machine.devices import Device
from kgbench.harness.session.referees import kept_peaks
from kgbench.selftest.null_test import MOST_KEPT, NullTest, keep_noise
from kgbench.selftest.null_test import of_results as of_results_in
from tests.unit.made_results import result, timing

GPU = Device("cuda", "GPU-1", "NVIDIA Test 1", 80.0, "580.1")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def of_results(results: Sequence[Result]) -> NullTest:
    """In a benchmark of 210 problems."""
    return of_results_in(results, 210)


def null(problem: str, *ratios: float, run: int = 0, us: float = 100.0) -> Result:
    times = [replace(timing(ratio, width=1.01), library_us=us) for ratio in ratios]
    return replace(result(problem, *times, device="cuda"), sample=run)


def test_what_noise_calls_faster_is_counted_by_interval_and_by_point() -> None:
    found = of_results([null("a/one", 1.005, 1.007), null("a/two", 1.02), null("a/three", 0.98)])
    assert [row.problem for row in found.faster()] == ["a/two"]
    assert [row.problem for row in found.faster(by_point=True)] == ["a/one", "a/two"]
    assert words(found) == "1 of 3 libraries called faster than themselves (2 by the point estimate)"
    assert any(line.startswith("a/two") and line.endswith("called faster") for line in lines(found))


def test_one_false_alarm_in_three_runs_holds_and_two_do_not() -> None:
    one = [null("a/one", 1.02 if run == 1 else 1.0, run=run) for run in range(3)]
    assert of_results(one).holds()
    assert not of_results([*one, null("a/two", 1.02)]).holds()


def test_what_was_not_timed_says_why_and_views_are_not_missed() -> None:
    wrong = result("a/one", outcome=Outcome.WRONG_VALUE, reason="case 1: x\nmore")
    assert of_results([wrong]).not_timed == {"a/one": "wrong value: case 1: x"}
    assert not of_results([result("a/view", kind="view")]).not_timed


def test_problems_that_were_not_timed_for_the_same_reason_share_a_line() -> None:
    skipped = [result(f"a/{name}", outcome=Outcome.SKIPPED, reason="no library") for name in ("one", "two")]
    wrong = result("a/three", outcome=Outcome.WRONG_VALUE, reason="case 1: x")
    assert [line for line in lines(of_results([*skipped, wrong])) if "not timed" in line] == [
        "2 problems not timed, skipped: no library: a/one, a/two",
        "1 problem not timed, wrong value: case 1: x: a/three",
    ]


def test_libraries_whose_bits_change_are_named() -> None:
    found = of_results(
        [replace(null("a/one", 1.0), deterministic=False), replace(null("a/two", 1.0), deterministic=True)]
    )
    assert found.changing == ("a/one",)
    assert any("second call" in line and line.endswith("a/one") for line in lines(found))


def test_a_range_with_few_ratios_says_nothing(tmp_path: Path) -> None:
    few = of_results([null("a/one", *[1.01] * 9)])
    assert few.noise() == {}
    assert keep_noise(GPU, few) is None
    assert not (tmp_path / "cache").exists()


def test_what_is_kept_widens_later_intervals_of_its_range_only() -> None:
    assert noise_of(GPU.kind, GPU.name) == {}
    path = keep_noise(GPU, of_results([null("a/one", *[1.01, 0.99] * 10)]))
    assert path is not None
    assert path == path_of(NOISE, "NVIDIA Test 1")
    assert json.loads(path.read_text())["family"] == 210
    kept = noise_of(GPU.kind, GPU.name)
    assert null_noise("cuda", 100.0, measured=kept) == (kept["200"], "measured")
    assert kept["200"] > NULL_NOISE["cuda"]["200"]
    assert null_noise("cuda", 20.0, measured=kept) == (NULL_NOISE["cuda"]["30"], "default")
    keep_noise(GPU, of_results([null("a/one", *[1.01, 0.99] * 10, us=20.0)]))
    assert noise_of(GPU.kind, GPU.name).keys() == {"30", "200"}


def test_noise_of_a_busy_machine_is_shown_and_not_kept() -> None:
    busy = of_results([null("a/one", *[2.0, 0.5] * 10)])
    assert next(iter(busy.noise().values())) > MOST_KEPT
    assert keep_noise(GPU, busy) is None
    assert noise_of(GPU.kind, GPU.name) == {}
    assert any("too wide to keep" in line for line in lines(busy))


def test_less_noise_than_the_default_narrows_nothing() -> None:
    assert null_noise("cuda", 100.0, measured={"200": 0.001}) == (NULL_NOISE["cuda"]["200"], "default")


def test_calls_that_cannot_be_queued_have_a_range_of_their_own() -> None:
    assert time_range("cuda", 100.0, queued=False) == "direct"
    assert time_range("cpu", 100.0, queued=False) == "1000"


@pytest.mark.parametrize("family", [50, 210, 211, 1000])
def test_the_half_width_is_the_familys(family: int) -> None:
    normal = [NormalDist(0, 0.002).inv_cdf((i + 0.5) / 1000) for i in range(1000)]
    wide = math.log1p(measured_noise(normal, family))
    assert wide == pytest.approx(0.002 * NormalDist().inv_cdf(1 - 0.05 / family), rel=0.05)
    assert math.log1p(measured_noise([*normal, 0.05], family)) == pytest.approx(wide, rel=0.05)
    # What would have been called slower costs nobody anything.
    assert math.log1p(measured_noise([*normal, -0.05], family)) == pytest.approx(wide, rel=0.05)


@pytest.mark.parametrize("text", ["", "[]", '{"half_widths": 3}', '{"half_widths": {"200": "x"}}'])
def test_a_damaged_file_is_as_none(text: str) -> None:
    path = path_of(NOISE, device_key("cuda", GPU.name))
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert noise_of(GPU.kind, GPU.name) == {}


def test_peaks_are_kept_until_the_driver_changes() -> None:
    assert kept_peaks(GPU) is None
    keep(PEAKS, device_key("cuda", GPU.name), {"gb_per_s": 4000, "driver": GPU.driver})
    assert kept_peaks(GPU) is None, "an earlier version's do not say how long an empty launch takes"
    keep(PEAKS, device_key("cuda", GPU.name), {"gb_per_s": 4000, "empty_launch_us": 2.1, "driver": GPU.driver})
    assert (kept_peaks(GPU) or {})["gb_per_s"] == 4000
    assert kept_peaks(replace(GPU, driver="590.0")) is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert keep(NOISE, "x", {"a": 1}) is None
    assert known(NOISE, "x") is None


def test_json_has_everything() -> None:
    data = of_results([null("a/one", *[1.0] * 12)]).to_json()
    assert json.loads(json.dumps(data))["summary"]["intervals_with_1"] == 12
    assert data["noise"] == {"200": 0.0}


def test_help_of_both_parts() -> None:
    from kgbench.cli.main import main

    for part in ("null", "mutants"):
        done = CliRunner().invoke(main, ["selftest", part, "--help"])
        assert done.exit_code == 0, done.output
        assert "--source" in done.output
