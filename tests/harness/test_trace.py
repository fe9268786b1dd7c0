"""A timeline of a real evaluation: every part of it is there, and parts lie inside what they are part of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.core.outcomes import Outcome
from kgbench.harness.session.session import Job, Settings
from kgbench.harness.session.timeline import write_timeline
from kgbench.problem.registry import load_problem
from tests.harness.sessions import SessionOf

pytestmark = pytest.mark.torch


def within(inner: dict[str, Any], outer: list[dict[str, Any]]) -> bool:
    return any(
        each["pid"] == inner["pid"]
        and each["ts"] <= inner["ts"]
        and inner["ts"] + inner["dur"] <= each["ts"] + each["dur"] + 1
        for each in outer
    )


def meanwhile(inner: dict[str, Any], outer: list[dict[str, Any]]) -> bool:
    """Whether a span of any process begins while one of the others lasts."""
    return any(each["ts"] <= inner["ts"] < each["ts"] + each["dur"] for each in outer)


@pytest.mark.in_turn("kgbench/harness/machine/trace.py", "kgbench/harness/session/timeline.py")
@pytest.mark.timeout(180)
def test_a_timed_evaluation_leaves_a_timeline(session_of: SessionOf, problem_path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "spans"
    folder.mkdir()
    path = problem_path / "cublas" / "cublasSscal_v2.yaml"
    job = Job(load_problem(path), "baseline", trusted="baseline")
    with session_of(Settings(device="cpu", jobs=1, seed="trace", trace_dir=folder)) as session:
        result = session.evaluate(job)
    assert result.outcome is Outcome.PASSED, result.reason
    write_timeline(folder, tmp_path / "trace.json")
    spans: dict[str, list[dict[str, Any]]] = {}
    for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]:
        if event["ph"] == "X":
            spans.setdefault(event["name"], []).append(event)
    parts = {
        "candidate": ["library", "start", "import", "check", "bench"],
        "check": ["call", "compare"],
        "bench": ["warm up", "turn", "judge kept calls"],
        "turn": ["stop the others"],
    }
    for outer, names in parts.items():
        for name in names:
            assert any(within(span, spans[outer]) for span in spans[name]), f"no {name} within {outer}"
    # Others stand still in a turn, while the driver takes its time for memory.
    assert spans["map"]
    assert spans["give memory back"]
    for name in ("map", "give memory back"):
        assert not any(meanwhile(span, spans["turn"]) for span in spans[name]), f"{name} in a turn"
    scored = [span for span in spans["window"] if span["args"]["kind"] == "window"]
    assert {span["args"]["side"] for span in scored} == {"library", "candidate"}
    assert all(within(span, spans["turn"]) for span in scored)
    timed = [window for case in result.cases if case.timing for window in case.timing.windows]
    assert len(timed) == sum(span["args"]["kind"] in ("window", "single", "overhead") for span in spans["window"])
