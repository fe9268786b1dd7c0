"""``kgbench validate --suite kernelbench:PATH``: which problems of a checkout can be judged, and which are weak."""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kgbench.core.errors import MachineError, UsageError
from kgbench.core.kinds import DeviceKind
from kgbench.core.paths import IMPORT_ROOT
from kgbench.harness.machine import visible
from kgbench.harness.machine.devices import Device, find_devices

if TYPE_CHECKING:
    from kgbench.problem.kernelbench import Checkout

PER_FILE_S: Final = 120.0
"""Seconds that measuring one problem may take."""
PROCESSES_OF_GPU: Final = 8
"""Problems that are measured at once on one GPU, where there are cores for them."""
MEMORY_SHARE: Final = 0.5
"""Share of the machine's memory that all problems measured at once may take on a CPU."""
LACKS_MEMORY: Final = "lacks_memory"
"""Key of an answer about a problem for which there was not enough memory."""
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


def validate_checkout(suite: str, spellings: Sequence[str], device: str, *, run: bool) -> None:
    """Prints a line per problem. Raises UsageError where there is no such checkout, problem or device, MachineError."""
    from kgbench.problem.kernelbench import checkout

    found = checkout(suite)
    if importlib.util.find_spec("torch") is None:
        raise MachineError("KGB303", "modules were not run: torch is not installed here; pip install torch")
    ids = found.select((), spellings)
    counts: Counter[str] = Counter()
    devices = find_devices(device) if run else []
    for problem, kind, words in _measured(found, ids, devices) if run else _read(found, ids):
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


def _measured(found: Checkout, ids: Sequence[str], devices: Sequence[Device]) -> Iterator[tuple[str, str, list[str]]]:
    by_path = {str(found.paths[each]): each for each in ids}
    places = list(devices) * processes_of(devices[0].kind, len(devices))
    lacking = []
    for answer in _answers(list(by_path), places):
        # Alone on its device it may find enough.
        if LACKS_MEMORY in answer and len(places) > len(devices):
            lacking.append(answer["path"])
        else:
            yield by_path[answer["path"]], *verdict(answer)
    for answer in _answers(lacking, devices):
        yield by_path[answer["path"]], *verdict(answer)


def processes_of(kind: DeviceKind, devices: int) -> int:
    """Processes that measure problems on each of so many devices."""
    cores = len(os.sched_getaffinity(0))
    return max(1, min(PROCESSES_OF_GPU, cores // devices) if kind is DeviceKind.CUDA else cores)


def verdict(answer: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The finding about a problem and its reason, from an answer of ``module_weak``."""
    for key, kind in (("complaint", "wrong"), ("unjudgeable", "not judged"), ("unmeasured", "not measured")):
        if key in answer:
            return kind, [answer[key]]
    if LACKS_MEMORY in answer:
        return "not measured", ["it needs more memory than there is here"]
    weak = answer["weak"]
    lines = [f"{what}{'' if here else ' (by KernelBench’s tolerance of 1e-4; not here)'}" for what, here in weak]
    if any(here for _, here in weak):
        return "weak", lines
    return ("weak there" if weak else "ok"), lines


def _answers(files: Sequence[str], places: Sequence[Device]) -> Iterator[Mapping[str, Any]]:
    """One for each file, as soon as it is known, from a process for each place. Raises UsageError where one ends
    early.
    """
    answers: queue.Queue[Mapping[str, Any] | UsageError] = queue.Queue()
    shares = [files[first :: len(places)] for first in range(len(places))]
    share = MEMORY_SHARE / len(places)
    for device, part in zip(places, shares, strict=True):
        threading.Thread(target=_ask, args=(part, device, share, answers), daemon=True).start()
    waiting = set(files)
    while waiting:
        answer = answers.get()
        if isinstance(answer, UsageError):
            raise answer
        if answer["done"]:
            waiting.discard(answer["path"])
            yield answer
        elif sys.stderr.isatty():
            click.echo(f"\r{Path(answer['path']).name[:70]:70}\r", nl=False, err=True)


def _ask(
    files: Sequence[str], device: Device, share: float, answers: queue.Queue[Mapping[str, Any] | UsageError]
) -> None:
    """Put the answers of one process into the queue, and an error where it ends without an answer for each file."""
    if not files:
        return
    paths = [str(IMPORT_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    seen = visible.only(device.uuid) if device.kind is DeviceKind.CUDA else visible.NONE
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **seen}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    request = {"files": list(files), "device": device.kind, "limit_s": PER_FILE_S, "memory_share": share}
    waiting = set(files)
    command = [sys.executable, "-P", "-m", _MODULE]
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:  # type: ignore[call-overload]
        process.stdin.write(json.dumps(request))
        process.stdin.close()
        for line in process.stdout:
            answer = json.loads(line)
            answers.put(answer)
            if answer["done"]:
                waiting.discard(answer["path"])
    if waiting:
        code = process.returncode
        words = f"the problems' files cannot be run: their process ended with code {code}"
        answers.put(UsageError("KGB139", words))
