"""Asks a module that needs torch, in another process, so that the caller does not import torch."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from typing import Any, Final

from kgbench.core.paths import IMPORT_ROOT

_TAIL: Final = 2000
"""Characters quoted from the last line of a failed process."""


class NoAnswer(Exception):
    """The process ended without an answer; the text says how."""


def ask(module: str, request: Any, timeout_s: float) -> list[dict[str, Any]]:
    """The answers of ``python -m module`` to a request: JSON on its standard input, one JSON line each on its output.

    Raises NoAnswer when it gives none, or fails.
    """
    paths = [str(IMPORT_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", module],
            input=json.dumps(request), capture_output=True, text=True, env=environment, timeout=timeout_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"it took over {timeout_s:g} s") from None
    answers = []
    for line in done.stdout.splitlines():
        with contextlib.suppress(ValueError):
            answers.append(json.loads(line))
    if done.returncode or not answers:
        words = done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"]
        raise NoAnswer(words[-1][-_TAIL:])
    return answers
