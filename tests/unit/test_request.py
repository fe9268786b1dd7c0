"""What a run is asked for: kept in run.json as it was typed, and read back from runs of older versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgbench.evaluation.request import RunRequest

STORED = {
    "model": "claude", "sources": ["aten"], "problems": ["add", "mm"], "suite": "smoke", "against": "compile",
    "problem_dirs": ["/own"],
    "deadlines": ["case=5"], "device": "cpu", "require_sandbox": "full", "policy": "report", "folder": "/from",
    "shard": "3/8", "asking": {"samples": 2, "agent_sees": ["/key"]},
}  # fmt: skip


def test_what_is_stored_is_read_back_the_same() -> None:
    request = RunRequest.from_json(STORED)
    assert (request.model, request.problems, request.policy) == ("claude", ("add", "mm"), "report")
    assert json.loads(json.dumps(request.to_json())) == STORED


def test_a_command_line_is_stored_with_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    request = RunRequest.here("examples", ["aten"], problem_dirs=[Path("own")], deadlines={"case": 5.0, "whole": 0.5})
    assert request.to_json() == {
        **dict.fromkeys(("suite", "require_sandbox")), "model": "examples", "sources": ["aten"], "problems": [],
        "problem_dirs": [str(tmp_path / "own")], "deadlines": ["case=5", "whole=0.5"], "device": "auto",
        "policy": "strict", "folder": str(tmp_path), "against": "", "shard": "", "asking": {},
    }  # fmt: skip


@pytest.mark.parametrize("lacking", ["suite", "policy", "require_sandbox", "asking", "deadlines"])
def test_runs_that_lack_a_field_or_have_another_one_are_read(lacking: str) -> None:
    older = {key: value for key, value in STORED.items() if key != lacking}
    request = RunRequest.from_json({**older, "later": True})
    assert getattr(request, lacking) == getattr(RunRequest(), lacking)
    assert request.model == "claude"
