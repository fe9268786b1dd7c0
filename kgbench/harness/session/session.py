"""A session: judges candidates for as long as a block lasts, and restarts what fails. Never imports torch.

It holds some devices and several slots on each. A slot has a referee that judges one candidate at a time; slots of one
device prepare in parallel and are timed one at a time. ``evaluate`` may be called from many threads.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import resource
import secrets
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from kgbench.core import user_modules
from kgbench.core.details.absence import Fault, NoCandidate
from kgbench.core.details.failures import Breach, RuleBroken
from kgbench.core.details.union import Detail
from kgbench.core.errors import MachineError
from kgbench.core.kinds import DeviceKind, PolicyMode
from kgbench.core.outcomes import Outcome
from kgbench.core.text import told
from kgbench.core.types import Result, result_from_json
from kgbench.harness.machine.devices import find_devices
from kgbench.harness.machine.settings import DEVICE_PROBE, REFEREE, Deadlines, Job, RefereeSettings
from kgbench.harness.sandbox.plan import Plan
from kgbench.harness.session.ahead import AheadCompiler, compiler_for
from kgbench.harness.session.cancellation import Cancellation, Cancelled
from kgbench.harness.session.errors import DeviceBroken, OutOfMemory, ProcessLost, RefereeGone, SessionClosed
from kgbench.harness.session.logs import Logs
from kgbench.harness.session.pools import DevicePool, Referee, Slot, take_devices
from kgbench.harness.session.referees import Referees
from kgbench.harness.session.retry import (
    CROWDED,
    MOST_WORDS,
    PASSING,
    no_room,
    perhaps_a_neighbours_doing,
    trouble,
    without_evaluation,
)
from kgbench.harness.session.server import ForkServer
from kgbench.harness.session.slots import Slots
from kgbench.harness.wire.judging import (
    REPORTS,
    Broken,
    BrokenDevice,
    Judge,
    Judged,
    NoRoom,
    Progress,
    Untimed,
)
from kgbench.harness.wire.protocol import ChannelClosed, ChannelTimeout, ProtocolError
from kgbench.harness.wire.typed import read_one_of

GRACE_S: Final = 120.0
"""Seconds past a candidate's whole deadline that a referee itself may be silent."""


class _Broken(ChannelClosed):
    """The referee reported the error that ended it."""


OnEvent = Callable[[str, str], None]

__all__ = ["Deadlines", "Job", "Session", "Settings"]


@dataclass(frozen=True)
class Settings:
    """How to evaluate."""

    device: str = "auto"
    """``auto``, ``cpu``, ``cuda``, or GPUs by number as in ``cuda:0,2``."""
    gpus: int = 0
    """How many of these GPUs to use, at most; 0 takes all that ``device`` numbers, and one where it numbers none."""
    jobs: int = 0
    """How many candidates may be at work on a device at once; 0 takes what cores and memory allow."""
    cores: int = 0
    """Cores to count on where others use the machine as well; 0 for all that this process may run on."""
    seed: str = ""
    """Secret; empty draws one."""
    deadlines: Deadlines | None = None
    """None takes the defaults of the device."""
    hidden: tuple[Path, ...] = ()
    """Folders that no candidate may see: problems, baselines, results."""
    log_dir: Path | None = None
    """Folder for the output of the fork server and the referees; None discards it."""
    limits: dict[str, int] | None = None
    """Bytes of memory and of output, and processes, that a candidate may have, where the defaults do not hold."""
    timing: bool = True
    """False judges correctness only."""
    require_sandbox: str = ""
    """The lowest level of SANDBOX_LEVELS that workers must have; empty accepts any."""
    say: Callable[[str], None] = lambda text: None
    """Called with messages about what takes long or failed without ending the session."""
    probe: str = DEVICE_PROBE
    """Dotted path of what finds out whether a device still computes."""
    referee: str = REFEREE
    """Dotted path of the function that is a referee's process; the self-test has one of its own."""
    policy: PolicyMode = PolicyMode.OFF
    trace_dir: Path | None = None
    """Folder in which every referee records what it does (``machine/trace.py``); None where nobody wants to know."""


class Session:
    """Processes that judge, for as long as the block lasts. Raises MachineError where this machine cannot.

    Args:
        settings: how to evaluate.
        server: a fork server to share with other sessions of this program. It stays when the session ends, and is
            passed over where it does not fit: see ``ForkServer.fits``. None starts one for this session alone.
    """

    def __init__(self, settings: Settings, *, server: ForkServer | None = None) -> None:
        self.settings = settings
        self.seed = settings.seed or secrets.token_hex(16)
        self.facts: dict[str, Any] = {}
        self._found = find_devices(settings.device)
        kind = self._found[0].kind
        self.deadlines = settings.deadlines or Deadlines.for_device(kind)
        self._owns_server = server is None or not server.fits(kind)
        self._server = ForkServer(kind, log_dir=settings.log_dir) if server is None or self._owns_server else server
        self._logs = Logs(settings.log_dir)
        self._slots = Slots(self._start_referee, lambda slot: self._referees.end(slot), settings.say)
        self._referees = Referees(
            self._server,
            settings.referee,
            self._referee_settings(kind),
            self._logs,
            self._slots.check_open,
            self._check_sandbox,
        )
        self._ahead: AheadCompiler | None = None

    def __enter__(self) -> Session:
        if not sys.platform.startswith("linux"):
            raise MachineError(
                "KGB301", "kernels run on Linux only; use a Linux machine. Here list, show, validate and report work"
            )
        if importlib.util.find_spec("torch") is None:
            words = "torch is not installed: pip install 'kgbench[torch]', or see docs/install.md for the CPU build"
            raise MachineError("KGB302", words)
        begun = time.monotonic()
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        self.facts["start_s"] = round(time.monotonic() - begun, 3)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def server(self) -> ForkServer:
        """The fork server that is used: the one that was given, if that fits, else this session's own."""
        return self._server

    @property
    def jobs(self) -> int:
        """How many candidates may be at work at once, on all devices together."""
        return self._slots.jobs

    @property
    def most(self) -> int:
        """How many candidates it is worth to give it at once: ``jobs``, and those that wait and are compiled."""
        return self.jobs + (0 if self._ahead is None else self._ahead.most)

    @property
    def stopping_s(self) -> float:
        """Of ``timed_s``, what it took until everybody else stood still."""
        return 0.0 if self._referees.ended else sum(pool.page.stopping_s for pool in self._slots.pools)

    @property
    def timed_s(self) -> float:
        """Seconds of all devices together in which something was being timed; 0 once the session has ended."""
        return 0.0 if self._referees.ended else sum(pool.page.timed_s for pool in self._slots.pools)

    def evaluate(
        self,
        job: Job,
        on_event: OnEvent = lambda phase, detail: None,
        cancellation: Cancellation | None = None,
    ) -> Result:
        """Judge one candidate. Our own failure is a result too, ``harness error``, once it has happened twice.

        Raises MachineError when no device is left, SessionClosed when the session is closed meanwhile, Cancelled.
        """
        cancellation = cancellation or Cancellation()
        if job.source is None and job.trusted is None:
            none = NoCandidate("no candidate was submitted for this problem")
            return self._unjudged(job, Outcome.NO_CANDIDATE, none)
        with contextlib.nullcontext(job) if self._ahead is None else self._ahead.compiling(job) as job:
            return self._evaluate_until_sure(job, on_event, cancellation)

    def _evaluate_until_sure(self, job: Job, on_event: OnEvent, cancellation: Cancellation) -> Result:
        """Judge a candidate, and again where others may have caused what became of it."""
        result, company = self._evaluate(job, on_event, cancellation, exclusive=job.suspected)
        if company is not None and perhaps_a_neighbours_doing(result) in PASSING:
            # Nobody need stand aside for what is probably over.
            on_event("again", f"since {perhaps_a_neighbours_doing(result)}")
            result, company = self._evaluate(job, on_event, cancellation, exclusive=False)
        if company is not None and (words := perhaps_a_neighbours_doing(result)):
            on_event("again", f"alone, since {words}")
            result, _ = self._evaluate(job, on_event, cancellation, exclusive=True)
            if words == CROWDED and perhaps_a_neighbours_doing(result) != CROWDED:
                self._slots.at_most(company, company.most - 1, CROWDED)
        return result

    def close(self) -> None:
        """End every process of this session at once; nothing is left after at most a few seconds.

        A fork server that the session was given goes on.
        """
        if self._ahead is not None:
            self._ahead.close()
        for slot in self._slots.close():
            # A thread may be waiting on it: it wakes up, and closes it.
            with contextlib.suppress(OSError):
                slot.referee.channel.socket.shutdown(socket.SHUT_RDWR)
        if self._owns_server:
            self._server.close()
        else:
            self._server.end_session(self._referees.token)
        for pool in self._slots.pools:
            for slot in pool.idle:
                slot.referee.channel.close()
            pool.idle.clear()
            if pool.lock is not None:
                pool.lock.release()
        self._referees.close(self._slots.pools)

    # --- one candidate ---

    def _evaluate(
        self, job: Job, on_event: OnEvent, cancellation: Cancellation, *, exclusive: bool
    ) -> tuple[Result, DevicePool | None]:
        """The result, and the device if others were at work there meanwhile."""
        lost: list[ProcessLost] = []
        broke = ""
        while len(lost) < 2:
            try:
                slot = self._slots.take(job.problem_id, exclusive=exclusive)
            except MachineError:
                if not broke:
                    raise
                return self._unjudged(job, Outcome.HARNESS_ERROR, trouble(Fault.BROKE_DEVICE, broke)), None
            had_company = len(slot.pool.busy) > 1
            try:
                result = self._judge(slot, job, on_event, cancellation)
                return result, slot.pool if had_company or len(slot.pool.busy) > 1 else None
            except OutOfMemory as error:
                if had_company or slot.pool.busy:
                    return self._unjudged(job, Outcome.HARNESS_ERROR, no_room(str(error))), slot.pool
                lost.append(ProcessLost(str(error), without_a_word=True, fault=Fault.NO_ROOM))
            except RefereeGone:
                continue
            except DeviceBroken as broken:
                self._slots.set_aside(slot.pool, str(broken))
                if broke or job.suspected:
                    # Whoever breaks each device that it gets would leave none to others.
                    words = f"{Fault.BROKE_DEVICES}: {broken}"
                    return self._unjudged(job, Outcome.HARNESS_ERROR, trouble(Fault.BROKE_DEVICES, words)), None
                # Counts as no attempt: another device takes over, where nobody else is judged meanwhile.
                exclusive, broke = True, f"{Fault.BROKE_DEVICE}: {broken}"
            except ProcessLost as error:
                lost.append(error)
        # An error of the referee's own is ours. What kills it twice, has it hang, or takes its memory, and not with the
        # library in the candidate's place, is the candidate.
        last, lacks_memory = lost[-1], any(each.fault is Fault.NO_ROOM for each in lost)
        if job.trusted is None and all(each.without_a_word for each in lost) and self._judges_the_library(job):
            outcome = Outcome.OUT_OF_MEMORY if lacks_memory else Outcome.REJECTED
            return self._unjudged(job, outcome, RuleBroken(Breach.ENDED_REFEREE, told(last, MOST_WORDS))), None
        detail = no_room(str(last)) if last.fault is Fault.NO_ROOM else trouble(last.fault, str(last))
        return self._unjudged(job, Outcome.HARNESS_ERROR, detail), None

    def _judges_the_library(self, job: Job) -> bool:
        """Whether a referee can judge the same job with the library in the candidate's place."""
        control = replace(job, source=None, trusted="baseline", library_times={}, compiled="")
        try:
            slot = self._slots.take(job.problem_id, exclusive=False)
            self._judge(slot, control, lambda phase, detail: None, Cancellation())
        except (ProcessLost, OutOfMemory, RefereeGone, DeviceBroken):
            return False
        return True

    def _judge(self, slot: Slot, job: Job, on_event: OnEvent, cancellation: Cancellation) -> Result:
        """Raises ProcessLost, OutOfMemory, RefereeGone, DeviceBroken, Cancelled; the slot is free again, or gone."""
        asked = False
        if cancellation.is_cancelled:
            self._slots.give_back(slot)
            raise Cancelled
        if job.source is not None:
            job = replace(job, library_times=slot.pool.known_times(job.problem_id))
        try:
            with cancellation.while_judging(slot.referee.channel.socket):
                slot.referee.channel.send(Judge(job.to_json()).encode())
                asked = True
                result = self._await_result(slot, on_event)
        except BaseException as error:
            self._slots.discard(slot)
            if isinstance(error, ChannelClosed | ChannelTimeout | ProtocolError):
                if self._slots.closed:
                    raise SessionClosed("KGB316", "the session was closed while a candidate was judged") from None
                if cancellation.is_cancelled:
                    raise Cancelled from None
                if not asked:
                    raise RefereeGone from None
                words = f"the referee is gone: {error}{self._logs.tail('referee')}"
                raise ProcessLost(words, without_a_word=not isinstance(error, _Broken)) from None
            raise
        slot.problem_id = job.problem_id
        memory_mb = {"coordinator": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, 1)}
        if (peak := self._server.peak_bytes()) is not None:
            memory_mb["fork server"] = round(peak / 1e6, 1)
        self._slots.give_back(slot)
        return replace(result, memory_mb={**result.memory_mb, **memory_mb})

    def _unjudged(self, job: Job, outcome: Outcome, detail: Detail) -> Result:
        return without_evaluation(job, outcome, detail, self._found[0].kind)

    def _await_result(self, slot: Slot, on_event: OnEvent) -> Result:
        silence_s = self.deadlines.whole_s + self.deadlines.import_s + GRACE_S
        while True:
            match read_one_of(slot.referee.channel.receive(silence_s), *REPORTS):
                case Progress(phase, detail):
                    on_event(phase, detail)
                case Judged(result, library_times):
                    slot.pool.learn(result["problem"], library_times)
                    return result_from_json(result)
                case BrokenDevice(reason):
                    raise DeviceBroken(reason)
                case NoRoom(reason):
                    raise OutOfMemory(reason)
                case Untimed(fault, reason):
                    raise ProcessLost(reason, fault=Fault(fault))
                case Broken(reason):
                    raise _Broken(reason)

    # --- processes ---

    def _open(self) -> None:
        """Take devices, have a fork server, and start the first referee. Raises MachineError."""
        settings, pools = self.settings, self._slots.pools
        pools += take_devices(self._found, settings.device, settings.gpus, settings.jobs, settings.cores, settings.say)
        self._referees.know(pool.device for pool in pools)
        self._server.start()
        self._check_sandbox(self._server.plan)
        # The first referee says what the device is; others are started when there is work for them.
        referee, facts = self._referees.start(pools[0], 0)
        self._slots.add(pools[0], 0, referee)
        device, plan = pools[0].device, self._server.plan
        self.facts |= {**facts, "uuid": device.uuid, "driver": device.driver}
        if self._server.not_imported:
            self.facts["not imported"] = dict(self._server.not_imported)
        self.facts |= {"sandbox": plan.states(), "sandbox_open": plan.open(), "sandbox_missing": plan.missing()}
        self.facts["versions"] = {**facts["versions"], **self._server.versions}
        self.facts["devices"] = [{"name": pool.device.name, "uuid": pool.device.uuid} for pool in pools]
        self.facts["jobs"] = pools[0].most
        common, cores = self._referee_settings(device.kind), settings.cores or len(os.sched_getaffinity(0))
        properties, memory_gb = self._referees.properties, float(facts["memory_gb"])
        self._ahead = compiler_for(self._server, self._referees.token, common, cores, properties, memory_gb)

    def _referee_settings(self, device_kind: DeviceKind) -> RefereeSettings:
        """What all referees of the session have in common."""
        settings = self.settings
        return RefereeSettings(
            device_kind,
            "",
            self.seed,
            self.deadlines,
            hidden=tuple(str(path) for path in settings.hidden),
            modules=user_modules.folders(),
            limits=dict(settings.limits or {}),
            timing=settings.timing,
            probe=settings.probe,
            policy=settings.policy,
            trace="" if settings.trace_dir is None else os.path.abspath(settings.trace_dir),
        )

    def _start_referee(self, pool: DevicePool, number: int) -> Referee:
        return self._referees.start(pool, number)[0]

    def _check_sandbox(self, plan: Plan) -> None:
        plan.require(self.settings.require_sandbox)
