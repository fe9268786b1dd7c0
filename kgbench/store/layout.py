"""The files and folders of a run folder, ``runs/<utc>-<id>/``.

* ``run.json``: what was asked for, on which machine, and how the run ended.
* ``results.jsonl``: one line per judged candidate.
* ``replies/``, ``candidates/``, ``agents/``: per sample, what a model was asked and replied, and the kernel in it.
* ``logs/``: what the harness's processes print.

A published run (docs/published.md) has ``results.jsonl.gz`` in place of ``results.jsonl``, and no replies and logs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

FORMAT: Final = 1
"""Version of run.json. Raised when an older kgbench could no longer read what is written."""
RUN_FILE: Final = "run.json"
RESULTS_FILE: Final = "results.jsonl"
PACKED_RESULTS_FILE: Final = "results.jsonl.gz"
REPLIES_DIR: Final = "replies"


def device_slug(device: str) -> str:
    """A device's name in a path: ``h200`` of ``NVIDIA H200``."""
    return slug(re.sub("(?i)nvidia", "", device))


def slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "unknown"


def candidate_path(run: Path, problem_id: str, sample: int, round: int = 0) -> Path:
    """Where a run keeps a candidate, whether it is there or not."""
    return run / "candidates" / f"{sample_name(problem_id, sample, round)}.py"


def sample_name(problem_id: str, sample: int, round: int) -> str:
    """A sample's path below ``replies`` or ``candidates``, no ending: ``aten/add.0``, later ``aten/add.0.round1``."""
    return f"{problem_id}.{sample}" + (f".round{round}" if round else "")
