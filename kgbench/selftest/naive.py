"""The in-process baseline judge: candidate, reference, comparison and timer in one process. For the self-test alone.

``kgbench selftest exploits`` gives it the exploits that the trust split stops, to show that they work where there is
none. All that it does has been seen in benchmarks that are in use. Nothing else runs it. Its code is
``naive_judge.py``, which loads torch and runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kgbench.core.kinds import DeviceKind
from kgbench.harness.machine.environment import environment

DEADLINE_S: Final = 60.0
"""Seconds after which a judge that has not ended is killed."""


@dataclass(frozen=True)
class NaiveVerdict:
    """What the in-process baseline judge says."""

    passed: bool
    speedup: float | None
    words: str


def judged(
    source: str, problem_path: Path, device_kind: DeviceKind, root: str, deadline_s: float = DEADLINE_S
) -> NaiveVerdict:
    """Run the judge on a candidate's text in a process of its own. ``root``: the folder that has ``kgbench`` in it."""
    env = environment(device_kind)
    # What is given back to the allocator stays there, as it does with a GPU's.
    env |= {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1"}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (root, env.get("PYTHONPATH", ""))))
    with tempfile.TemporaryDirectory(prefix="kgbench-naive-") as folder:
        env |= {"TORCH_EXTENSIONS_DIR": folder, "TRITON_CACHE_DIR": folder}
        kernel = Path(folder, "candidate.py")
        kernel.write_text(source, encoding="utf-8")
        command = [sys.executable, "-m", "kgbench.selftest.naive_judge", str(kernel), str(problem_path), device_kind]
        try:
            ended = subprocess.run(
                command, env=env, cwd=folder, capture_output=True, text=True, timeout=deadline_s, errors="replace"
            )
        except subprocess.TimeoutExpired:
            return NaiveVerdict(True, None, "never ended, and with it the whole batch")
    for line in ended.stdout.splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and "passed" in said:
            return NaiveVerdict(bool(said["passed"]), said.get("speedup"), str(said.get("words", "")))
    words = f"printed nothing and ended with {ended.returncode}: {ended.stderr[-300:]}"
    return NaiveVerdict(ended.returncode == 0, None, words)
