"""The referee's handle of one worker: requests with deadlines, freezing, the end. Every failure becomes an Outcome."""

from __future__ import annotations

import contextlib
import secrets
import select
import signal
import time
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from kgbench.core.details.absence import Fault
from kgbench.core.details.failures import Breach, Crash, Deadline, HostMemory, Limit, Raised, RuleBroken
from kgbench.core.details.place import place
from kgbench.core.details.union import Detail
from kgbench.core.details.where import Where
from kgbench.core.kinds import DeviceKind
from kgbench.core.outcomes import Outcome
from kgbench.core.text import told, told_lines
from kgbench.core.verdicts import Verdict
from kgbench.harness.machine import processes, trace
from kgbench.harness.machine.timing_lock import TimingLock
from kgbench.harness.wire.forks import (
    EndCause,
    EndWorker,
    Forked,
    ForkWorker,
    Refused,
    WorkerEnded,
    WorkerForked,
    WorkerSpec,
)
from kgbench.harness.wire.protocol import (
    MOST_DEPTH,
    MOST_TOLD_BYTES,
    Channel,
    ChannelClosed,
    ChannelTimeout,
    Message,
    ProtocolError,
    pair,
)
from kgbench.harness.wire.requests import Request
from kgbench.harness.wire.typed import read_one_of

if TYPE_CHECKING:
    from kgbench.harness.wire.buffers import ControlPage

CANDIDATE_STUB: Final = "kgbench.harness.candidate.worker:Stub"
"""Dotted path of what answers requests in a candidate's worker."""
TRUSTED_STUB: Final = "kgbench.harness.process.trusted_worker:TrustedStub"
"""The same for a worker that runs the library or a reference."""
START_NEWS_S: Final = 30.0
"""Seconds that the fork server, and then a supervisor, may take to fork."""
END_NEWS_S = 0.2
"""Seconds in which a supervisor tells of a worker that is ending by itself."""
EXIT_NEWS_S = 15.0
"""Seconds that a supervisor may take to clear its worker's tree and say so."""
MOST_WORDS: Final = 2000
"""Characters that are kept of the message of an exception in a worker."""
MOST_TYPES: Final = 20
"""Names of types that are kept of an exception in a worker."""
MOST_LOG: Final = 64 << 10
"""Characters that are kept of what a worker printed, or of a traceback."""

_BREACHES: Final[Mapping[EndCause | None, Breach]] = {
    EndCause.PROCESSES: Breach.PROCESSES,
    EndCause.SUPERVISOR_GONE: Breach.SUPERVISOR,
    EndCause.WRITTEN: Breach.WRITTEN,
}
"""What a worker did, by the cause in its supervisor's report."""


class Role(StrEnum):
    """What a worker runs."""

    CANDIDATE = "candidate"
    """Submitted code, in the sandbox."""
    LIBRARY = "library"
    """The baseline."""
    REFERENCE = "reference"
    """A mutant of the reference, in a candidate's place."""


class WorkerFailed(Exception):
    """The worker did not do what it was asked; the verdict says in which way."""

    def __init__(
        self, side: WorkerHandle, outcome: Outcome, detail: Detail, where: Where | None = None, log: str = ""
    ) -> None:
        self.side = side
        self.verdict = Verdict(outcome, detail, where)
        self.log = log
        super().__init__(self.verdict.reason)

    @property
    def outcome(self) -> Outcome:
        return self.verdict.outcome

    @property
    def reason(self) -> str:
        return self.verdict.reason


class HarnessFailed(Exception):
    """kgbench itself failed: fork server, supervisor or library. Never the candidate's fault."""


class Unmeasured(HarnessFailed):
    """A correct candidate could not be timed for reasons outside it."""

    def __init__(self, fault: Fault, words: str) -> None:
        super().__init__(words)
        self.fault = fault


class WorkerHandle:
    """One worker, seen from the referee. Not usable after ``kill`` or a WorkerFailed that ended it."""

    def __init__(self, server: Channel, spec: WorkerSpec, turns: TimingLock) -> None:
        """Start the worker by the fork server. Raises HarnessFailed."""
        control_end, self_control = pair()
        worker_end, self_worker = pair()
        fds = [control_end.fileno(), worker_end.fileno()]
        with turns.starting():
            server.send(ForkWorker(spec).encode(), fds)
            reply = read_one_of(server.receive(START_NEWS_S), Forked, Refused)
            control_end.close()
            worker_end.close()
            if isinstance(reply, Refused):
                raise HarnessFailed(reply.reason)
            turns.add(reply.pid)
            self.control = Channel(self_control)
            self.exit = self._await_fork()
        self.channel = Channel(self_worker, limit_bytes=MOST_TOLD_BYTES, limit_depth=MOST_DEPTH)
        self.role = Role(spec.role)
        self.device_kind = DeviceKind(spec.device_kind)
        self.turns = turns
        self.supervisor_pid = reply.pid
        self.page: ControlPage | None = None
        self.compile_s = 0.0
        self.is_frozen = False
        self._stopped: dict[tuple[int, int], processes.Task] = {}
        """Its threads as they were when it was frozen."""

    def _await_fork(self) -> WorkerEnded | None:
        """Wait until the supervisor has forked the worker; what it reports where it could not.

        In another's turn it would not be stopped, and run on as something new. Raises ChannelTimeout.
        """
        try:
            news = read_one_of(self.control.receive(START_NEWS_S), WorkerForked, WorkerEnded)
        except ChannelClosed:
            return WorkerEnded(EndCause.SUPERVISOR_GONE)
        return news if isinstance(news, WorkerEnded) else None

    def request(self, request: Request, timeout_s: float, where: Where, fds: tuple[int, ...] = ()) -> Message:
        """Ask and wait for the one reply. Raises WorkerFailed, which happened ``where``."""
        number = secrets.randbits(62)
        with trace.span(request.op, self.role, what=place(where)):
            self.post(request, number, where, fds)
            return self.reply(number, timeout_s, where)

    def post(self, request: Request, number: int, where: Where, fds: tuple[int, ...] = ()) -> None:
        """Send without waiting; replies carry the number. Raises WorkerFailed."""
        try:
            self.channel.send(request.numbered(number), fds)
        except (ChannelClosed, ChannelTimeout):
            raise self._ended(where) from None

    def reply(self, number: int, timeout_s: float, where: Where) -> Message:
        """The reply to a posted request. Raises WorkerFailed."""
        deadline, compiled_s = self.turns.now() + timeout_s, self._compiled_s()
        while True:
            try:
                message = self.channel.pending()
                if message is not None:
                    return self._accept(message, number, where)
                compiling_s = min(max(0.0, self._compiled_s() - compiled_s), self.compile_s)
                remaining = deadline + compiling_s - self.turns.now()
                if remaining <= 0:
                    self.kill(EndCause.DEADLINE)
                    late = Deadline(Limit.ANSWER, timeout_s)
                    raise WorkerFailed(self, Outcome.TIMEOUT, late, where, self.log_tail)
                readable, _, _ = select.select([self.channel, self.control], [], [], remaining)
                if self.channel in readable:
                    self.channel.fill()
                elif self.control in readable:
                    self._read_control()
                    if self.exit is not None:
                        raise self._ended(where)
            except ChannelClosed:
                raise self._ended(where) from None
            except ProtocolError as error:
                self.kill(EndCause.PROTOCOL)
                wrote = RuleBroken(Breach.CHANNEL, str(error))
                raise WorkerFailed(self, Outcome.REJECTED, wrote, where, self.log_tail) from None

    def allow_compiling(self, page: ControlPage, compile_s: float) -> None:
        """Have the time in which the worker compiles, as the page says, count against no reply's deadline.

        Args:
            compile_s: the most that this adds to a deadline, in seconds, whatever the page says.
        """
        self.page, self.compile_s = page, compile_s

    def _compiled_s(self) -> float:
        return self.page.compiled_ms / 1e3 if self.page is not None else 0.0

    def alive(self) -> bool:
        """Whether no end has been announced so far; does not wait."""
        if self.exit is None and select.select([self.control], [], [], 0)[0]:
            try:
                self._read_control()
            except ChannelClosed:
                self._await_exit()
        return self.exit is None

    @trace.span("freeze")
    def freeze(self) -> float:
        """Stop every process of the worker's tree; time stopped counts against no deadline, since nobody waits.

        Returns:
            Time in µs that passed until all stood still in which nothing of the tree ran: the machine's, not its own.

        Raises WorkerFailed where something goes on running.
        """
        self.turns.hold(self.supervisor_pid)
        pids = processes.descendants(self.supervisor_pid)
        before = processes.tasks_of(pids)
        begun_ns = time.perf_counter_ns()
        stopped, forked = processes.stop_trees([self.supervisor_pid], pids)
        self.is_frozen = True
        self._stopped = processes.tasks_of(stopped)
        took_us = (time.perf_counter_ns() - begun_ns) / 1e3
        if any(not (task.is_still or task.is_waiting) for task in self._stopped.values()):
            raise self._restless()
        # What was forked meanwhile may have forked others, and be gone with the time that it took.
        ran_us = None if forked else processes.ran_us(before, self._stopped)
        return 0.0 if ran_us is None else max(0.0, took_us - ran_us)

    def check_frozen(self) -> None:
        """Raises WorkerFailed where something of a frozen tree has run since."""
        if self.is_frozen and self.exit is None:
            tasks = processes.tasks_of(processes.descendants(self.supervisor_pid))
            if processes.woken(self._stopped, tasks):
                raise self._restless()

    @trace.span("thaw")
    def thaw(self) -> None:
        """Continue a frozen tree. Raises WorkerFailed where it ran already."""
        self.check_frozen()
        self.is_frozen = False
        self.turns.let_go(self.supervisor_pid)
        processes.signal_tree(self.supervisor_pid, signal.SIGCONT)

    def _restless(self) -> WorkerFailed:
        """End a worker that ran while stopped, and return that failure; a worker that was killed ran only to end."""
        self._await_news(END_NEWS_S)
        ended = self.exit
        self.kill(EndCause.REJECTED)
        outcome, detail = (Outcome.REJECTED, RuleBroken(Breach.RESTLESS)) if ended is None else _exit_outcome(ended)
        return WorkerFailed(self, outcome, detail, None, self.log_tail)

    def kill(self, cause: EndCause = EndCause.DONE) -> None:
        """End the worker and all its descendants; ``exit`` has the supervisor's report afterwards."""
        if self.exit is None:
            with contextlib.suppress(ChannelClosed, ChannelTimeout):
                self.control.send(EndWorker(cause).encode())
            self._await_exit()
        self.turns.remove(self.supervisor_pid)
        self.channel.close()
        self.control.close()

    @property
    def log_tail(self) -> str:
        return told_lines("" if self.exit is None else self.exit.tail, MOST_LOG)

    @property
    def peak_mb(self) -> float:
        return 0.0 if self.exit is None else self.exit.peak_mb

    def _accept(self, message: Message, number: int, where: Where) -> Message:
        if message.get("id") != number:
            self.kill(EndCause.PROTOCOL)
            raise WorkerFailed(self, Outcome.REJECTED, RuleBroken(Breach.UNASKED), where, self.log_tail)
        if "error" in message:
            raise self._raised(message["error"], where)
        return message

    def _raised(self, error: Any, where: Where) -> WorkerFailed:
        try:
            types = [told(name) for name in error["types"][:MOST_TYPES]]
            words, kind = told(error["message"], MOST_WORDS), types[0].rpartition(".")[2]
            log = told_lines(str(error["traceback"]), MOST_LOG)
        except (KeyError, TypeError, IndexError):
            return WorkerFailed(self, Outcome.REJECTED, RuleBroken(Breach.MALFORMED), where)
        outcome = _outcome_of(types, interpreted=self.device_kind == DeviceKind.CPU)
        return WorkerFailed(self, outcome, Raised(kind, words), where, log)

    def _read_control(self) -> None:
        self.control.fill()
        while (message := self.control.pending()) is not None:
            self.exit = read_one_of(message, WorkerEnded)

    def _await_exit(self) -> bool:
        self._await_news(EXIT_NEWS_S)
        if self.exit is None:
            # The supervisor itself is gone: killed from inside. The fork server sweeps its orphans.
            self.exit = WorkerEnded(EndCause.SUPERVISOR_GONE)
            return False
        return True

    def _await_news(self, timeout_s: float) -> None:
        """Wait for the supervisor's report of the end, unless the supervisor is gone, too."""
        deadline = self.turns.now() + timeout_s
        with contextlib.suppress(ChannelClosed):
            while self.exit is None and (remaining := deadline - self.turns.now()) > 0:
                with contextlib.suppress(ChannelTimeout):
                    self.exit = read_one_of(self.control.receive(remaining), WorkerEnded)

    def _ended(self, where: Where) -> WorkerFailed:
        """The outcome of a worker that has ended."""
        if self.exit is None:
            # Its channel closed before its supervisor's report came; a descendant may still hold things open.
            self._await_news(2.0)
            if self.exit is None:
                self.kill(EndCause.CHANNEL_CLOSED)
        return WorkerFailed(self, *_exit_outcome(self.exit or WorkerEnded()), where, self.log_tail)


def _exit_outcome(ended: WorkerEnded) -> tuple[Outcome, Detail]:
    """What the supervisor's report says about the end of its worker."""
    cause, code = ended.cause, ended.returncode
    if cause == EndCause.MEMORY:
        return Outcome.OUT_OF_MEMORY, HostMemory()
    if cause == EndCause.OUTPUT:
        return Outcome.REJECTED, RuleBroken(Breach.PRINTED, f"more than {ended.output_bytes >> 20} MiB")
    if cause in _BREACHES:
        return Outcome.REJECTED, RuleBroken(_BREACHES[cause])
    if code is not None and code < 0:
        return Outcome.CRASHED, Crash(signal=_signal_name(-code))
    words = ": ".join(each for each in (cause or "", ended.words) if each)
    return Outcome.CRASHED, Crash(code=code, cause=words)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _outcome_of(types: list[str], interpreted: bool) -> Outcome:
    """Which outcome an exception is. None of them passes, so a lie in the type names gains nothing.

    ``interpreted``: Triton kernels run in its interpreter, which may lack what a kernel asks for.
    """
    names = {name.rpartition(".")[2] for name in types}
    if interpreted and "NotInterpretable" in names:
        return Outcome.NOT_INTERPRETABLE
    if "OutOfMemoryError" in names or "MemoryError" in names:
        return Outcome.OUT_OF_MEMORY
    compile_names = {"SyntaxError", "CompilationError", "CompileException", "CompileTimeAssertionFailure", "PTXASError"}
    if names & compile_names or any(name.startswith("triton.compiler.errors") for name in types):
        return Outcome.COMPILE_ERROR
    return Outcome.RUNTIME_ERROR
