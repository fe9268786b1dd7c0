"""What processes record becomes one Chrome trace."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgbench.harness.machine import trace
from kgbench.harness.session.timeline import write_timeline


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Path]:
    """A folder in which this process records; it has waited for 5 µs before each look at the clock."""
    folder, waited = tmp_path / "spans", iter(range(0, 1_000_000, 5000))
    folder.mkdir()
    trace.start(folder, "referee 0 of cpu", lambda: next(waited))
    yield folder
    trace.stop()


def test_spans_become_complete_events_on_their_tracks(recording: Path, tmp_path: Path) -> None:
    with trace.span("check", case="check[0]"), trace.span("call", "candidate"):
        pass
    trace.record("window", 1000, 3500, side="library")
    trace.stop()
    assert write_timeline(recording, tmp_path / "trace.json") == 3
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    spans = {event["name"]: event for event in events if event["ph"] == "X"}
    assert {name: names[span["tid"]] for name, span in spans.items()} == {
        "call": "candidate",
        "check": "referee 0 of cpu",
        "window": "referee 0 of cpu",
    }
    assert (spans["window"]["ts"], spans["window"]["dur"]) == (1.0, 2.5)
    assert spans["call"]["args"] == {"waited_us": 5.0}
    assert spans["check"]["args"] == {"case": "check[0]", "waited_us": 15.0}
    assert spans["check"]["ts"] <= spans["call"]["ts"]
    assert spans["check"]["ts"] + spans["check"]["dur"] >= spans["call"]["ts"] + spans["call"]["dur"]


def test_a_span_that_ends_by_an_exception_is_recorded(recording: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="broken"), trace.span("check"):
        raise ValueError("broken")
    trace.stop()
    assert write_timeline(recording, tmp_path / "trace.json") == 1


def test_what_was_recorded_is_written_within_a_second_or_so(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted run shows what its candidates were doing."""
    file = next(recording.iterdir())
    with trace.span("check"):
        pass
    assert "check" not in file.read_text(), "not a system call each"
    monkeypatch.setattr(trace, "FLUSH_NS", 0)
    with trace.span("call"):
        pass
    assert "check" in file.read_text()


def test_a_process_that_was_killed_leaves_what_it_had_written(recording: Path, tmp_path: Path) -> None:
    with trace.span("check"):
        pass
    trace.stop()
    file = next(recording.iterdir())
    file.write_text(file.read_text() + '["call", 12, 3')
    (recording / f"7{trace.SUFFIX}").write_text("")
    assert write_timeline(recording, tmp_path / "trace.json.gz") == 1
    with gzip.open(tmp_path / "trace.json.gz", "rt") as stream:
        assert len(json.load(stream)["traceEvents"]) == 3


def test_nothing_is_recorded_where_nobody_asked(tmp_path: Path) -> None:
    with trace.span("check"):
        trace.record("window", 0, 1)
    assert write_timeline(tmp_path, tmp_path / "trace.json") == 0
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"] == []
