"""Small real runs of the ``kgbench run`` command, and their processes found from outside and told apart."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from kgbench.core.outcomes import Outcome
from kgbench.harness.machine import processes
from kgbench.harness.machine.shared_page import MAX_REFEREES, SharedPage
from kgbench.store.reader import StoredRun, read_run
from tests.harness.sessions import kgbench

ROOT: Final = Path(__file__).resolve().parents[2]
KINDS: Final = ("coordinator", "fork server", "referee", "supervisor", "library worker", "candidate worker")
RIGHT: Final = "def scale(self, factor):\n    return self * factor\n"
WRONG: Final = "def scale(self, factor):\n    return self + factor\n"
KERNELS: Final = (RIGHT, WRONG, RIGHT)
EXPECTED: Final = {0: Outcome.PASSED, 1: Outcome.WRONG_VALUE, 2: Outcome.PASSED}
RUN: Final = (
    "run", "--problem-dir", "problems", "--source", "mine", "--model", "dir:kernels", "--device", "cpu", "--jobs", "2",
    "--policy", "off",  # these kernels leave the work to PyTorch
)  # fmt: skip
"""The command over all that a field has."""
RESUME: Final = ("run", "--resume", "last", "--jobs", "2")
ENDED_S: Final = 15.0
"""How long the last process of a run may take to be gone; a fork server that still imports torch needs most."""

PROBLEM: Final = """\
summary: a matrix times a number
kind: compute
category: elementwise
entry: "scale(self: Tensor, factor: float) -> Tensor"
dtypes: {required: [float32]}
defaults: {factor: 2.0}
arguments:
  self: {access: read, shape: "(m, n)", draw: "normal()"}
  factor: {value: "factor"}
cases:
  check: [{m: 1, n: 1}, {m: 7, n: 97}]
  fuzz: {count: 2, draw: {m: {range: [1, 40]}, n: {range: [1, 300]}}}
  bench: {cpu: [{m: 16, n: 256}], gpu24: [{m: 16, n: 256}]}
baseline: {cuda: "aten:mul.Scalar", cpu: "aten:mul.Scalar"}
reference: "torch.mul(self, factor)"
tolerance: {rule: rounding, ulps: 2}
cost: {flops: "m * n", bytes: "2 * itemsize * m * n"}
doc: "out = self * factor"
"""


@dataclass
class Field:
    """A folder with a problem and kernels for it, and the runs that are started there."""

    folder: Path
    prefix: tuple[str, ...] = ()
    """What stands before the command: a program that runs it in other surroundings."""
    seen_below: str = ""
    """Where those surroundings' files are seen from outside."""

    @classmethod
    def make(cls, folder: Path, kernels: tuple[str, ...] = KERNELS, problem: str = PROBLEM) -> Field:
        (folder / "problems" / "mine").mkdir(parents=True)
        (folder / "problems" / "mine" / "scale.yaml").write_text(problem, encoding="utf-8")
        (folder / "kernels" / "mine").mkdir(parents=True)
        for number, text in enumerate(kernels):
            (folder / "kernels" / "mine" / f"scale.{number}.py").write_text(text, encoding="utf-8")
        return cls(folder)

    @property
    def out(self) -> Path:
        return self.folder / "runs"

    def begin(self, *more: str) -> subprocess.Popen[str]:
        """The command, started. Every process of the run has this folder in its environment."""
        return self.start(*RUN, *more)

    def resume(self) -> subprocess.CompletedProcess[str]:
        return ended(self.start(*RESUME))

    def here(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command in this process, for tests that look for no process of it."""
        return kgbench(self.folder, command, *arguments, "--out", str(self.out))

    def start(self, command: str, *arguments: str) -> subprocess.Popen[str]:
        path = os.pathsep.join((str(ROOT), str(self.folder), os.environ.get("PYTHONPATH", "")))
        return subprocess.Popen(
            [*self.prefix, sys.executable, "-m", "kgbench", command, *arguments, "--out", str(self.out)],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def runs(self) -> list[Path]:
        return sorted(path.parent for path in Path(f"{self.seen_below}{self.out}").glob("*/run.json"))

    def only_run(self) -> StoredRun:
        (path,) = self.runs()
        return read_run(path)

    def alive(self) -> list[str]:
        """Every process of runs of this folder that is not dead, stopped ones too: pid, state, command."""
        marker, found = str(self.folder).encode(), []
        for entry in Path("/proc").iterdir():
            # A process that ends meanwhile is none.
            with contextlib.suppress(OSError, IndexError):
                if entry.name.isdigit() and marker in (entry / "environ").read_bytes():
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    if state not in "ZX":
                        found.append(f"{entry.name} {state} {words}")
        return found

    def left_over(self) -> list[str]:
        """What is alive still once a run had time to end."""
        wait_until(lambda: not self.alive(), ENDED_S)
        return self.alive()


def ended(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """The command, waited for."""
    out, err = process.communicate(timeout=100)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@contextlib.contextmanager
def small_disk(field: Field, options: str) -> Iterator[Field]:
    """The same, with a disk of its own under its runs. Skips the test where this machine has no such thing."""
    field.out.mkdir(exist_ok=True)
    script = f"mount -t tmpfs -o {options} none {shlex.quote(str(field.out))} && echo ready && exec sleep 600"
    enter = ["-m"] if os.geteuid() == 0 else ["-m", "-U", "--preserve-credentials"]
    flags = ["-m"] if os.geteuid() == 0 else ["-rm"]
    with subprocess.Popen(
        ["unshare", *flags, "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as holder:
        try:
            assert holder.stdout is not None
            if holder.stdout.readline() != "ready\n":
                assert holder.stderr is not None
                pytest.skip(f"needs a machine that lets this user mount a tmpfs: {holder.stderr.read().strip()}")
            yield Field(field.folder, ("nsenter", "-t", str(holder.pid), *enter, "--wd=."), f"/proc/{holder.pid}/root")
        finally:
            holder.kill()


def outcomes(run: StoredRun) -> dict[int, Outcome]:
    """By sample; each has one line."""
    found = {result.sample: result.outcome for result in run.results}
    assert len(found) == len(run.results)
    return found


def segments(run: StoredRun) -> list[str]:
    info = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    return [each["status"] for each in info["segments"]]


def find(coordinator: int, kind: str) -> list[int]:
    """Processes of a kind in a run, now."""
    servers = [pid for pid in processes.children(coordinator) if _is_server(pid)]
    if kind in ("coordinator", "fork server"):
        return [coordinator] if kind == "coordinator" else servers
    below = [pid for server in servers for pid in processes.children(server)]
    pages = {pid: supervisors for pid in below if (supervisors := _supervisors(pid)) is not None}
    if kind == "referee":
        return list(pages)
    # A referee's first worker is the library's, and stays; others are candidates'.
    first = [supervisors[0] for supervisors in pages.values() if supervisors and supervisors[0]]
    others = [pid for supervisors in pages.values() for pid in supervisors[1:] if pid]
    if kind == "supervisor":
        return first + others
    chosen = first if kind == "library worker" else others
    return [worker for supervisor in chosen for worker in processes.children(supervisor)]


def _is_server(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"kgbench.harness.process.fork_server" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _supervisors(pid: int) -> list[int] | None:
    """What the shared page says of a referee's supervisors; None when the process is no referee."""
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if "kgbench-turns" in os.readlink(link):
                    with _page(link) as page:
                        return next((page.all_supervisors(n) for n in range(MAX_REFEREES) if page.pid(n) == pid), None)
    return None


@contextlib.contextmanager
def _page(link: Path) -> Iterator[SharedPage]:
    page = SharedPage(os.open(link, os.O_RDWR))
    try:
        yield page
    finally:
        page.close()


def wait_until(holds: Callable[[], object], timeout_s: float, every_s: float = 0.02) -> bool:
    """Whether it held before the time was over."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True
