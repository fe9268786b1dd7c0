"""A referee's process: it serves the coordinator, one candidate after another, until that closes the channel."""

from __future__ import annotations

import contextlib
import signal
import socket
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch

from kgbench.core import user_modules
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.harness.machine import trace
from kgbench.harness.machine.settings import RefereeSettings
from kgbench.harness.machine.shared_page import SharedPage
from kgbench.harness.machine.timing_lock import TimingLock
from kgbench.harness.referee import compiler
from kgbench.harness.referee.evaluation import Report
from kgbench.harness.referee.referee import Referee
from kgbench.harness.referee.resources import Resources
from kgbench.harness.sandbox.plan import Plan
from kgbench.harness.wire.judging import (
    Broken,
    BrokenDevice,
    Judge,
    Judged,
    NoRoom,
    Progress,
    RefereeFailed,
    RefereeReady,
    StartReferee,
    Untimed,
)
from kgbench.harness.wire.protocol import Channel, ChannelClosed, ChannelTimeout
from kgbench.harness.wire.typed import read_one_of
from kgbench.harness.workers.handle import HarnessFailed, Unmeasured, WorkerFailed

REPORT_EVERY_S: Final = 0.1
"""Least seconds between two reports of progress."""


def main(coordinator_fd: int, server_fd: int, page_fd: int) -> None:
    """Serve the coordinator until it closes the channel."""
    serve(coordinator_fd, server_fd, page_fd, Referee)


def serve(coordinator_fd: int, server_fd: int, page_fd: int, build: Callable[[Resources], Referee]) -> None:
    """Serve with a referee that ``build`` makes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    coordinator = Channel(socket.socket(fileno=coordinator_fd))
    server = Channel(socket.socket(fileno=server_fd))
    torch.set_num_threads(1)
    compiler.put_off()
    start = read_one_of(coordinator.receive(60.0), StartReferee)
    settings = RefereeSettings.from_json(start.settings)
    user_modules.offer(settings.modules)
    turns = TimingLock(SharedPage(page_fd), settings.number, settings.turn_cores)
    if settings.trace:
        device = settings.device_uuid or settings.device_kind
        trace.start(Path(settings.trace), f"referee {settings.number} of {device}", lambda: turns.waited_ns)
    try:
        referee = build(Resources(server, settings, Plan.from_json(start.plan), turns))
    except (HarnessFailed, ChannelClosed, ChannelTimeout, RuntimeError, AssertionError) as error:
        coordinator.send(RefereeFailed(str(error) or repr(error)).encode())
        return
    coordinator.send(RefereeReady(referee.facts(), referee.properties()).encode())
    while True:
        try:
            message = coordinator.receive()
        except ChannelClosed:
            break
        _serve(referee, coordinator, read_one_of(message, Judge))
    with contextlib.suppress(HarnessFailed):
        referee.close()


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether memory ran out in the referee or in a trusted worker."""
    if error is None or isinstance(error, MemoryError | torch.OutOfMemoryError):
        return error is not None
    lacking = isinstance(error, WorkerFailed) and error.outcome is Outcome.OUT_OF_MEMORY
    return lacking or _lacks_memory(error.__context__)


def _serve(referee: Referee, coordinator: Channel, asked: Judge) -> None:
    last = 0.0

    def report(phase: str, detail: str) -> None:
        nonlocal last
        if time.monotonic() > last + REPORT_EVERY_S:
            last = time.monotonic()
            coordinator.send(Progress(phase, detail).encode())

    try:
        result = _judged(referee, asked.job, report)
        if result.outcome.facts.may_be_device:
            _end_if_broken(referee, coordinator)
    except ChannelClosed:
        raise SystemExit(0) from None
    except Exception as error:
        # Whatever breaks here is ours; the coordinator records it as a harness error and starts us again.
        if _lacks_memory(error):
            coordinator.send(NoRoom(str(error)[:500]).encode())
            raise SystemExit(0) from None
        if isinstance(error, Unmeasured):
            coordinator.send(Untimed(error.fault, str(error)).encode())
            raise SystemExit(0) from None
        if isinstance(error, HarnessFailed):
            _end_if_broken(referee, coordinator)
        coordinator.send(Broken(_told_first(error)).encode())
        raise SystemExit(1) from None
    coordinator.send(Judged(_strict(result.to_json()), referee.library_times(result)).encode())


def _end_if_broken(referee: Referee, coordinator: Channel) -> None:
    """End this process where its device does not compute: what was found there says nothing about the candidate."""
    if fault := referee.device_fault():
        coordinator.send(BrokenDevice(fault).encode())
        raise SystemExit(0)


def _told_first(error: Exception) -> str:
    """The error, then its traceback: whoever shortens the text keeps its beginning."""
    said = "".join(traceback.format_exception_only(error)).strip()
    return f"{said[:2000]}\n{traceback.format_exc()[-6000:]}"


def _judged(referee: Referee, job: dict[str, Any], report: Report) -> Result:
    """The job's result. Recorded spans are written before the result is sent, since the coordinator may end this
    process then.
    """
    try:
        wanted = referee.job(job)
        with trace.span("candidate", problem=wanted.problem_id, model=wanted.model):
            return referee.evaluate(wanted, report)
    finally:
        trace.flush()


def _strict(value: Any) -> Any:
    """JSON without NaN and infinity: they become text."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return repr(value)
    if isinstance(value, complex):
        return repr(value)
    if isinstance(value, dict):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]
    return value
