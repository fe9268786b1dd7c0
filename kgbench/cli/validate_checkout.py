"""``kgbench validate --suite kernelbench:PATH``: which problems of a checkout can be judged, and which are weak."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kgbench.core.errors import MachineError, UsageError
from kgbench.core.paths import IMPORT_ROOT
from kgbench.harness.machine import visible

if TYPE_CHECKING:
    from kgbench.problem.kernelbench import Checkout

PER_FILE_S: Final = 120.0
"""Seconds that measuring one problem may take."""
_MODULE: Final = "kgbench.torchtools.module_weak"
_WORDS: Final = {
    "ok": "ok",
    "weak": "weak",
    "weak there": "weak by KernelBench's tolerance alone",
    "not judged": "not judged",
    "wrong": "cannot be used",
    "not measured": "not measured",
}
"""The words for each finding, as the summary counts them."""


def validate_checkout(suite: str, spellings: Sequence[str], *, run: bool) -> None:
    """Prints a line per problem. Raises UsageError where there is no such checkout or problem, MachineError."""
    from kgbench.problem.kernelbench import checkout

    found = checkout(suite)
    if importlib.util.find_spec("torch") is None:
        raise MachineError("KGB303", "modules were not run: torch is not installed here; pip install torch")
    ids = found.select((), spellings)
    counts: Counter[str] = Counter()
    for problem, kind, words in _measured(found, ids) if run else _read(found, ids):
        counts[kind] += 1
        label = "weak" if kind == "weak there" else kind
        click.echo(f"{label:12}  {problem}" + "".join(f"\n{'':14}{line}" for line in words))
    said = ", ".join(f"{count} {_WORDS[kind]}" for kind, count in sorted(counts.items()))
    click.echo(f"{len(ids)} problems: {said}", err=True)


def _read(found: Checkout, ids: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Read the files without running them on data."""
    found.load(ids)
    for each in ids:
        complaint = found.complaints.get(each)
        yield each, "wrong" if complaint else "ok", [complaint] if complaint else []


def _measured(found: Checkout, ids: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    by_path = {str(found.paths[each]): each for each in ids}
    for answer in _answers(list(by_path)):
        yield by_path[answer["path"]], *verdict(answer)


def verdict(answer: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The finding about a problem and its reason, from an answer of ``module_weak``."""
    for key, kind in (("complaint", "wrong"), ("unjudgeable", "not judged"), ("unmeasured", "not measured")):
        if key in answer:
            return kind, [answer[key]]
    weak = answer["weak"]
    lines = [f"{what}{'' if here else ' (by KernelBench’s tolerance of 1e-4; not here)'}" for what, here in weak]
    if any(here for _, here in weak):
        return "weak", lines
    return ("weak there" if weak else "ok"), lines


def _answers(files: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """One for each file, as soon as it is known. Raises UsageError where the process ends early."""
    paths = [str(IMPORT_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **visible.NONE}
    command = [sys.executable, "-P", "-m", _MODULE]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    waiting = set(files)
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:  # type: ignore[call-overload]
        process.stdin.write(json.dumps({"files": list(files), "limit_s": PER_FILE_S}))
        process.stdin.close()
        for line in process.stdout:
            answer = json.loads(line)
            if answer["done"]:
                waiting.discard(answer["path"])
                yield answer
            elif sys.stderr.isatty():
                click.echo(f"\r{Path(answer['path']).name[:70]:70}\r", nl=False, err=True)
    if waiting:
        code = process.returncode
        raise UsageError("KGB139", f"the problems' files cannot be run: their process ended with code {code}")
