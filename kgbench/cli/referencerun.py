"""Runs references on small cases in another process, which may import torch."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kgbench.core import user_modules
from kgbench.core.errors import MachineError, numbered, shown_path
from kgbench.core.paths import IMPORT_ROOT
from kgbench.harness.machine import visible

START_S: Final = 120.0
PER_FILE_S: Final = 20.0
"""Seconds allowed for references: START_S once, and this for each file."""
_TAIL: Final = 600
"""Characters quoted from the end of a failed process's output."""


@dataclass(frozen=True)
class Checked:
    """What is known of a problem file."""

    complaint: str
    """What is wrong with it; empty where nothing is."""
    unseen: tuple[tuple[str, str], ...] = ()
    """Names in it that could not be checked on this machine, with the reason."""
    left_out: float | None = None
    """The chance that a kernel passes which leaves out one in twenty of its timed calls; None where nothing is timed or
    references were not run.
    """


def run_references(files: Sequence[Path]) -> dict[Path, Checked]:
    """Findings about each file. Raises MachineError when torch is missing or the process could not do its work."""
    if importlib.util.find_spec("torch") is None:
        raise MachineError(
            "KGB303", "references were not run: torch is not installed here; pip install torch, or give --no-run"
        )
    checked: dict[Path, Checked] = {}
    left = list(files)
    while left:
        # A reference that ends its process is a complaint about its file; those after it get a new one.
        checked |= _run(left)
        left = [file for file in left if file not in checked]
    return checked


def _run(files: Sequence[Path]) -> dict[Path, Checked]:
    """Findings about the files that one process reached, at least one."""
    root = str(IMPORT_ROOT)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        **visible.NONE,
        user_modules.VARIABLE: user_modules.as_text(dict.fromkeys(file.resolve().parents[1] for file in files)),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-P", "-m", "kgbench.torchtools.reference_check"]
    asked = json.dumps([str(file.resolve()) for file in files])
    limit_s = START_S + PER_FILE_S * len(files)
    try:
        done = subprocess.run(
            command, input=asked, capture_output=True, text=True, env=environment, timeout=limit_s, check=False
        )
        output, error, ending = done.stdout, done.stderr, f"ended with code {done.returncode}"
        broken = done.returncode != 0
    except subprocess.TimeoutExpired as late:
        output, error, ending, broken = _text(late.stdout), _text(late.stderr), f"took over {limit_s:g} s", True
    return _read(files, output, error, ending if broken else "")


def _read(files: Sequence[Path], output: str, error: str, ending: str) -> dict[Path, Checked]:
    """Findings from the process's output; an early end is a complaint about the file it was at."""
    by_path = {str(file.resolve()): file for file in files}
    begun: list[str] = []
    checked: dict[Path, Checked] = {}
    for line in output.splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            continue
        begun.append(message["path"])
        if message["done"]:
            unseen = tuple((target, reason) for target, reason in message["unseen"])
            checked[by_path[message["path"]]] = Checked(message["complaint"], unseen, message["left_out"])
    if not begun:
        ending = ending or "said nothing"
        raise MachineError("KGB304", f"references were not run: the process {ending}: {error[-_TAIL:].strip()}")
    at = by_path[begun[-1]]
    if at not in checked:
        words = f"{shown_path(at)}: reference: the process {ending}: {error[-_TAIL:]}"
        checked[at] = Checked(numbered("KGB272", words))
    return checked


def _text(output: str | bytes | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""
