"""``python -m kgbench.torchtools.module_weak``: which wrong answers a module's outputs cannot tell from correct ones.

Standard input is a JSON object: ``files``, ``device`` (``cpu`` or ``cuda``), ``limit_s``, the seconds that each may
take, and ``memory_share`` of the machine that it may take on a CPU. Standard output gets a JSON line for each file when
it is started, ``{"path", "done": false}``, and when it is done: ``complaint`` (it cannot be used), ``unjudgeable`` (why
no output can be judged), ``weak`` (``[what, here]``), ``lacks_memory`` or ``unmeasured`` (why it is unknown).
Each file runs in a fork, with its smallest call.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any, Final

import torch

from kgbench.harness.machine.processes import own_lines
from kgbench.harness.referee import compiler
from kgbench.harness.verdict.modules.trusted import TrustedModule, full_precision
from kgbench.harness.verdict.modules.weak import lacks_memory, weaknesses, why_unjudgeable
from kgbench.problem.modules import VALUE_SETS, ModuleSource
from kgbench.torchtools.module_facts import facts_of

SLOW_S: Final = 4.0
"""Seconds of four runs from which on a module is measured only with its file's own values."""
_POLL_S: Final = 0.05
"""Seconds between two checks of a process."""
_WORDS: Final = {"cpu": "this CPU", "cuda": "this GPU"}


def main() -> None:
    # A file's output must not be mistaken for the answers.
    lines = own_lines()
    asked = json.loads(sys.stdin.read())
    torch.set_num_threads(1)
    compiler.put_off()
    with torch.device("meta"):
        # Torch imports modules here that every fork would import otherwise.
        torch.nn.Linear(2, 2)(torch.rand(2, 2))
    full_precision()
    for path in asked["files"]:
        print(json.dumps({"path": path, "done": False}), file=lines, flush=True)
        found = _in_a_fork(Path(path), torch.device(asked["device"]), asked["limit_s"], asked["memory_share"])
        print(json.dumps({"path": path, "done": True, **found}), file=lines, flush=True)


def _in_a_fork(path: Path, device: torch.device, limit_s: float, memory_share: float) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        if device.type == "cpu":
            _bound_memory(memory_share)
        with os.fdopen(writing, "w") as answer:
            answer.write(json.dumps(_measured(path, device)))
        os._exit(0)
    os.close(writing)
    deadline = time.monotonic() + limit_s
    ended, status = 0, 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(_POLL_S)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with os.fdopen(reading) as answer:
        text = answer.read()
    if not ended:
        return {"unmeasured": f"it takes over {limit_s:g} s on {_WORDS[device.type]}"}
    if not text:
        return {"unmeasured": f"its process ended with {os.waitstatus_to_exitcode(status)}"}
    found: dict[str, Any] = json.loads(text)
    return found


def _bound_memory(share: float) -> None:
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    most = int(whole * share)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _measured(path: Path, device: torch.device) -> dict[str, Any]:
    facts = facts_of(path)
    if facts["complaint"]:
        return {"complaint": facts["complaint"]}
    source = ModuleSource(path.name, path.read_text(encoding="utf-8"), facts["batch"])
    larger = [size for size in facts["sizes"] if size > 1]
    batch = next(iter(larger or facts["sizes"]), None)
    try:
        module = TrustedModule(source, "weaknesses", device)
        begun = time.monotonic()
        if why := why_unjudgeable(module, batch):
            return {"unjudgeable": why}
        sets = VALUE_SETS if time.monotonic() - begun < SLOW_S else VALUE_SETS[:1]
        return {"weak": [[each.what, each.here] for each in weaknesses(module, batch, sets)]}
    except Exception as error:  # whatever a file raises is told about it
        if lacks_memory(error):
            return {"lacks_memory": True}
        return {"complaint": f"{type(error).__name__}: {error}".splitlines()[0]}


if __name__ == "__main__":
    main()
