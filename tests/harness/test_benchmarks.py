"""Every script of benchmarks/ runs, in turn: its smallest size on the CPU, begun as a reader begins it."""

from __future__ import annotations

import importlib
import importlib.util
import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import chromium

pytestmark = pytest.mark.torch
ROOT = Path(__file__).parents[2]
SHARED = {"__init__", "meeting", "own_problem", "script", "stand_in_policy", "summing"}
"""Modules of benchmarks/ that are no scripts."""
SCRIPTS = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if path.stem not in SHARED)
IN_A_PROCESS = {"compiled_examples", "extremes", "startup", "training_ray"}
"""Scripts that measure their own session's processes, start a cluster of them, or change torch and Triton."""
NO_PAGE = chromium() is None or importlib.util.find_spec("playwright") is None
LACKING = {"page_opening": "needs Chromium and playwright"} if NO_PAGE else {}
"""Scripts that cannot run here, with what they say about it."""


@pytest.mark.timeout(200)
@pytest.mark.usefixtures("commands_share_it")
@pytest.mark.parametrize(
    "script", [pytest.param(each, marks=pytest.mark.in_turn(f"benchmarks/{each}.py")) for each in SCRIPTS]
)
def test_a_script_runs_in_its_smallest_size(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    options = ["--smoke"]
    written = tmp_path / "measured.json"
    if "json_path" in _options(script):
        options += ["--json", str(written)]
    monkeypatch.chdir(ROOT)
    code = (_as_process if script in IN_A_PROCESS else _as_main)(script, options, monkeypatch)
    out, err = capfd.readouterr()
    if script in LACKING:
        assert (code, LACKING[script] in err) == (3, True), err
        return
    assert code == 0, out + err
    assert out.strip()
    if "json_path" in _options(script):
        assert json.loads(written.read_text())


def _as_process(script: str, options: list[str], monkeypatch: pytest.MonkeyPatch) -> object:
    return subprocess.run([sys.executable, "-m", f"benchmarks.{script}", *options], check=False).returncode


def _as_main(script: str, options: list[str], monkeypatch: pytest.MonkeyPatch) -> object:
    """What ``python -m`` does, in this process: starting a fork server takes most of a script's time."""
    monkeypatch.setattr(sys, "argv", [script, *options])
    monkeypatch.delitem(sys.modules, f"benchmarks.{script}")  # else runpy warns
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"benchmarks.{script}", run_name="__main__", alter_sys=True)
    return ended.value.code or 0


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_says_what_a_script_measures_and_explains_every_option(script: str) -> None:
    module = importlib.import_module(f"benchmarks.{script}")
    told = CliRunner().invoke(module.main, ["--help"], catch_exceptions=False)
    assert told.exit_code == 0
    assert "--smoke" in told.output
    assert module.main.help
    for option in (each for each in module.main.params if each.param_type_name == "option"):
        assert option.help, option.name


def test_what_the_library_returns_is_compared() -> None:
    from benchmarks.agreement import agreement
    from kgbench.core.paths import problems_dir
    from kgbench.problem.registry import load_problem

    (overload, *_) = load_problem(problems_dir() / "aten/neg.yaml").overloads
    found = agreement(overload, "cpu")
    assert found["cases"] > 0
    assert found["share"] < 1, found["worst"]


def test_one_softmax_checks_and_times_the_shape_that_was_asked_for(tmp_path: Path) -> None:
    from benchmarks.one_softmax import CHECKS, _problem
    from kgbench.problem.registry import load_problem

    (overload,) = load_problem(_problem(tmp_path, 12, 34)).overloads
    calls = [each.call.text for each in (*overload.check, *overload.bench["cpu"], *overload.bench["gpu140"])]
    assert calls == ["((T([12, 34], f32), -1), {})"] * (CHECKS + 2)


def test_each_moment_of_a_turn_counts_for_what_happened_innermost() -> None:
    from benchmarks.turn_parts import measured, parts

    inner = [(1.0, 5.0, "queue"), (2.0, 3.0, "draw"), (3.0, 5.0, "draw"), (7.0, 10.0, "flush")]
    found = parts((0.0, 10.0, "not recorded"), inner)
    assert found == {"not recorded": 3.0, "queue": 1.0, "draw": 3.0, "flush": 3.0}

    def span(pid: int, name: str, begin: int, end: int, **args: str) -> dict[str, object]:
        return {"ph": "X", "pid": pid, "name": name, "ts": begin * 1e6, "dur": (end - begin) * 1e6, "args": args}

    events = [
        *({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": f"referee {pid} of GPU"}} for pid in (1, 2)),
        span(1, "turn", 4, 9),
        span(1, "window", 5, 8, kind="window", side="candidate"),
        span(2, "wait for the timing lock", 3, 11),
        span(2, "turn", 13, 14),
    ]
    found = measured(events)
    assert found["turns"]["timed"]["parts_s"] == {"window: window": 3.0, "not recorded": 2.0}
    assert found["turns"]["timed"]["share_inside"] == 0.6
    gaps = {"seconds": 10, "held_s": 6, "free_s": 4, "free_but_wanted_s": 2, "before_the_first_s": 1}
    assert found["devices"] == {"GPU": gaps}


def test_a_gpu_that_is_not_there_is_exit_code_3() -> None:
    from benchmarks.agreement import main

    told = CliRunner(env={"CUDA_VISIBLE_DEVICES": ""}).invoke(main, ["--smoke", "--device", "cuda"])
    assert (told.exit_code, "KGB305" in told.output) == (3, True)


def _options(script: str) -> set[str]:
    return {each.name or "" for each in importlib.import_module(f"benchmarks.{script}").main.params}
