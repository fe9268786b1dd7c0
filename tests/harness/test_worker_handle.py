"""A worker as its referee starts and asks it: a fork server that is late, and a worker that never answers."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from kgbench.core.details.where import Purpose, Where
from kgbench.core.kinds import Phase
from kgbench.core.outcomes import Outcome
from kgbench.harness.candidate.compiling import ALIASES, COMPILER, note_compiling
from kgbench.harness.machine import processes
from kgbench.harness.machine.shared_page import SharedPage
from kgbench.harness.machine.timing_lock import TimingLock
from kgbench.harness.referee.checking import _writes
from kgbench.harness.sandbox import linux
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.wire.buffers import ControlPage
from kgbench.harness.wire.forks import EndCause, Forked, WorkerEnded, WorkerForked, WorkerLimits, WorkerSpec
from kgbench.harness.wire.protocol import Channel, pair
from kgbench.harness.workers.handle import WorkerFailed, WorkerHandle
from kgbench.problem.cases.expand import phase_cases
from kgbench.problem.registry import Registry, load_problem

SPEC = WorkerSpec("candidate", "", "cpu", "", {}, [], [], WorkerLimits(1, 1, 1, 1))
LATE_S = 0.3


def fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def serve_late(server: Channel, forks: bool) -> None:
    """A fork server whose supervisor takes LATE_S to fork a worker that does nothing, or ends without one."""
    linux.die_with_parent()
    _, (control, worker) = server.receive_with_fds(10)
    if pid := fork():
        server.send(Forked(pid).encode())
        os.close(control), os.close(worker)
        time.sleep(60)
    linux.die_with_parent()
    time.sleep(LATE_S)
    if forks:
        if fork() == 0:
            linux.die_with_parent()
            time.sleep(60)
        Channel(socket.socket(fileno=control)).send(WorkerForked().encode())
        time.sleep(60)


class Starts:
    """The page of turns of one referee, which notes whether its worker is there when it may be stopped again."""

    def __init__(self) -> None:
        self.page = SharedPage.create()
        self.turns = TimingLock(self.page, 0)
        self.seen: list[bool] = []
        self.turns.starting = self.watched  # type: ignore[method-assign]

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        yield
        self.seen.append(bool(processes.descendants(self.page.supervisors(0)[0])))

    @contextlib.contextmanager
    def worker(self, forks: bool) -> Iterator[WorkerHandle]:
        ours, theirs = pair()
        pid = fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                serve_late(Channel(theirs, accepts_fds=True), forks)
            os._exit(0)
        theirs.close()
        server = Channel(ours)
        handle = WorkerHandle(server, SPEC, self.turns)
        try:
            yield handle
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            for channel in (server, handle.channel, handle.control):
                channel.close()


@pytest.mark.parametrize("forks", [True, False])
def test_a_referee_that_starts_a_worker_is_not_stopped_before_that_is_forked(forks: bool) -> None:
    starts = Starts()
    with starts.worker(forks) as handle:
        assert starts.seen == [forks]
        assert handle.exit == (None if forks else WorkerEnded(EndCause.SUPERVISOR_GONE))


def begins(page: ControlPage) -> None:
    page.compiling_begins()


def begins_and_ends(page: ControlPage) -> None:
    page.compiling_begins()
    time.sleep(0.4)
    page.compiling_ends()


def claims_hours(page: ControlPage) -> None:
    time.sleep(0.1)
    page.words[page.COMPILED] = 10_000_000


@pytest.mark.parametrize(
    ("compiles", "at_least_s", "at_most_s"),
    [(lambda page: None, 0.2, 1.0), (begins_and_ends, 0.55, 1.1), (begins, 1.15, 5.0), (claims_hours, 1.15, 5.0)],
    ids=["nothing", "for 0.4 s", "without end", "a lie"],
)
def test_a_deadline_is_extended_by_what_compiles_up_to_a_limit(
    compiles: Any, at_least_s: float, at_most_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Starts().worker(True) as handle:
        monkeypatch.setattr(handle, "kill", lambda cause: None)
        page = ControlPage.create()
        handle.allow_compiling(page, 1.0)
        page.words[page.COMPILED] = 5000  # in earlier calls
        if (child := fork()) == 0:
            compiles(page)
            os._exit(0)
        begun = time.monotonic()
        with pytest.raises(WorkerFailed) as failed:
            handle.reply(1, 0.2, Where(Purpose.CALL, "", "check-1"))
        took_s = time.monotonic() - begun
        os.waitpid(child, 0)
    assert failed.value.outcome is Outcome.TIMEOUT
    assert at_least_s <= took_s <= at_most_s


def test_tritons_compiler_says_when_it_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    page, seen = ControlPage.create(), []

    def compile_kernel(*sources: Any) -> None:
        seen.append(page.words[page.COMPILING] != 0)
        time.sleep(0.05)
        if sources:
            raise ValueError("no such operand")

    for name in (COMPILER, *ALIASES):
        monkeypatch.setattr(f"{name}.compile", compile_kernel)
    note_compiling(page)
    from triton.compiler import compile as as_a_launch_finds_it

    as_a_launch_finds_it()
    with pytest.raises(ValueError, match="operand"):
        as_a_launch_finds_it("source")
    assert seen == [True, True]
    assert page.words[page.COMPILING] == 0
    assert 90 <= page.compiled_ms <= 1000
    assert "from ..compiler import CompiledKernel, compile," in Path(jit_file()).read_text()


@pytest.mark.parametrize("problem", ["aten/neg", "aten/add_", "cublas/cublasZtrsmBatched"])
def test_a_call_without_results_is_no_first_call(problem: str) -> None:
    overload = load_problem(Registry().paths[problem]).overloads[0]
    judge = OverloadJudge(overload, torch.device("cpu"))
    counts = {}
    for case in phase_cases(overload, Phase.CHECK, overload.check, overload.dtypes):
        call = judge.place(case, torch.Generator().manual_seed(0))
        counts[case.id] = _writes(call)
        if problem.endswith("Batched"):
            assert counts[case.id] == bool(case.sizes["m"] and case.sizes["n"] and case.sizes["batch"]), case.id
    assert set(counts.values()) == {True, False}


def jit_file() -> str:
    import triton.runtime.jit

    return str(triton.runtime.jit.__file__)
