"""The files and folders of a run folder, ``runs/<utc>-<id>/``.

* ``run.json``: what was asked for, on which machine, and how the run ended.
* ``results.jsonl``: one line per judged candidate.
* ``replies/``: per sample, the prompt and the model's reply.
* ``candidates/``: per sample, the source of the kernel.
* ``agents/``: per sample, the agent's own log.
* ``logs/``: output of the harness's processes.

A published run (docs/published.md) has ``results.jsonl.gz`` in place of ``results.jsonl``, and no replies and logs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

FORMAT: Final = 1
"""Version of run.json's format. A change that an older kgbench cannot read increases it by one."""
RUN_FILE: Final = "run.json"
RESULTS_FILE: Final = "results.jsonl"
PACKED_RESULTS_FILE: Final = "results.jsonl.gz"
REPLIES_DIR: Final = "replies"


def device_slug(device: str) -> str:
    """A device's name as part of a path: ``h200`` for ``NVIDIA H200``."""
    return slug(re.sub("(?i)nvidia", "", device))


def slug(words: str) -> str:
    """The text in lower case, with one dash for each run of other characters than a-z and 0-9; at least ``unknown``."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "unknown"


def candidate_path(run: Path, problem_id: str, sample: int, round: int = 0) -> Path:
    """Path of a candidate's file in a run folder. The file need not exist."""
    return run / "candidates" / f"{sample_name(problem_id, sample, round)}.py"


def sample_name(problem_id: str, sample: int, round: int) -> str:
    """A sample's path in ``replies`` or ``candidates``, without suffix: ``aten/add.0``, ``aten/add.0.round1``."""
    return f"{problem_id}.{sample}" + (f".round{round}" if round else "")
