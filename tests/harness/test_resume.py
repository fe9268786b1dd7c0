"""A run that was killed is continued: real processes, kill -9 of the one that writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kgbench.store.reader import read_run
from tests.harness.sessions import kgbench

ROOT = Path(__file__).resolve().parents[2]
IDS = ["aten/mm", "aten/t", "vllm/rms_norm", "cublas/cublasSdot_v2"]
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("commands_share_it")]


def wait_for_results(out: Path, count: int) -> Path:
    deadline = time.monotonic() + 90.0
    while time.monotonic() < deadline:
        for path in out.glob("*/results.jsonl"):
            if path.read_bytes().count(b"\n") >= count:
                return path.parent
        time.sleep(0.02)
    raise AssertionError(f"there are no {count} results after 90 s")


@pytest.mark.in_turn("kgbench/store/", "kgbench/evaluation/")
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_killed_run_is_completed_by_one_of_two_that_try_at_once(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path))
    chosen = ("--problems", ",".join(IDS), "--model", "reference", "--device", "cpu", "--jobs", "1")
    first = subprocess.Popen(
        [sys.executable, "-m", "kgbench", "run", *chosen, *out],
        cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        path = wait_for_results(tmp_path, 1)
        os.kill(first.pid, signal.SIGSTOP)  # so that it does not end meanwhile
        refused = kgbench(ROOT, "run", "--resume", "last", *out)
        assert refused.returncode == 2
        assert "another kgbench is writing this run" in refused.stderr
        os.kill(first.pid, signal.SIGKILL)
    finally:
        first.kill()
        first.wait(20)
    kept = [each.problem for each in read_run(path).results]
    with (path / "results.jsonl").open("ab") as file:
        file.write(b'{"problem": "aten/t", "outc')
    done = kgbench(ROOT, "run", "--resume", "last", *out, "--json")
    assert done.returncode == 0, done.stderr
    results = read_run(path).results
    assert [each.problem for each in results][: len(kept)] == kept
    assert sorted(each.problem for each in results) == sorted(IDS)
    assert {each.outcome for each in results} == {"passed"}
    segments = json.loads((path / "run.json").read_text(encoding="utf-8"))["segments"]
    assert [each["status"] for each in segments] == ["killed", "finished"]
    assert segments[0]["device"]["kind"] == "cpu", "an earlier part keeps what it was made on"
    assert [
        (row["source"], row["not_evaluated"]) for row in json.loads(done.stdout)["scores"] if row["not_evaluated"]
    ] == []
