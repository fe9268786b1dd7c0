"""The coordinator's side: starts fork server and referees, hands out jobs, survives all of them. Never imports torch.

A session holds some devices and on each several seats. A seat is a referee that judges one candidate at a time; seats
of one device prepare side by side and take turns at timing. ``evaluate`` may be called from many threads.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import resource
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from kgbench.core.device_facts import PEAKS, device_key, keep, known, noise_of
from kgbench.core.errors import MachineError, numbered
from kgbench.core.paths import IMPORT_ROOT
from kgbench.core.types import Outcome, Result, result_from_json
from kgbench.harness.machine import processes
from kgbench.harness.machine.devices import Device, find_devices
from kgbench.harness.machine.environment import environment
from kgbench.harness.machine.gpu_lock import GpuLock
from kgbench.harness.machine.settings import (
    DEVICE_PROBE,
    LIBRARY_FAILED,
    SANDBOX_LEVELS,
    Deadlines,
    Job,
    RefereeSettings,
)
from kgbench.harness.machine.timing_lock import MAX_REFEREES, STAYS_BUSY, Page
from kgbench.harness.sandbox.plan import Plan
from kgbench.harness.wire.protocol import Channel, ChannelClosed, ChannelTimeout, ProtocolError, pair

START_S: Final = 180.0
GRACE_S: Final = 120.0
"""How far past a candidate's whole deadline the referee itself may be silent."""
GB_PER_SEAT: Final = 12.0
"""Of a GPU's memory: contexts, arenas and a bench case for referee, candidate and library."""
MAX_SEATS: Final = 16
LIBRARY_TIMES_S: Final = 300.0
"""How long a library's times stand in for new ones: a device that gets warm gets slower."""
NO_ROOM: Final = "too little memory to judge this (--jobs sets how many are judged at once)"
CROWDED: Final = "memory ran out beside others"
MAX_SERVERS: Final = 20
"""Fork servers that may die in one session before it is given up."""

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
    seed: str = ""
    """Secret; empty draws one."""
    deadlines: Deadlines | None = None
    """None takes the defaults of the device."""
    hidden: tuple[Path, ...] = ()
    """Folders that no candidate may see: problems, baselines, results."""
    log_dir: Path | None = None
    """Where fork server and referees write what they print; None discards it."""
    limits: dict[str, int] | None = None
    timing: bool = True
    require_sandbox: str = ""
    """The least level of SANDBOX_LEVELS that workers must have; empty takes what there is."""
    say: Callable[[str], None] = lambda text: None
    """Told what takes long or went wrong without ending the session."""
    probe: str = DEVICE_PROBE
    """Dotted path of what finds out whether a device still computes."""
    ablation: bool = False
    """Jobs may leave out layers of defence (kgbench/harness/verdict/defences.py): for tests of the harness alone."""
    policy: str = "off"
    """One of POLICIES."""


class SessionClosed(MachineError):
    """The session ended while a candidate was waiting or being judged; exit code 3."""


class _Lost(Exception):
    """A referee is gone, and with it what it was judging."""


class _NoRoom(Exception):
    """Memory ran out for a referee or for its library."""


class _Stale(Exception):
    """A referee was gone before it was asked."""


class _Sick(Exception):
    """A device does not compute any more."""


@dataclass(eq=False)
class _Seat:
    """One referee."""

    place: _Place
    number: int
    pid: int
    channel: Channel
    problem_id: str = ""
    """Judged last: its library and oracle are warm here."""
    alone: bool = False
    """It has its device for itself until it is given back."""


@dataclass(eq=False)
class _Place:
    """One device of this session."""

    device: Device
    page: Page
    most: int
    lock: GpuLock | None = None
    idle: list[_Seat] = field(default_factory=list)
    busy: list[_Seat] = field(default_factory=list)
    numbers: set[int] = field(default_factory=set)
    """Seat numbers in use, those that are being started included."""
    alone: bool = False
    """Somebody has it, or waits to have it, for itself."""
    sick: str = ""
    library_times: dict[str, tuple[float, dict[str, Any]]] = field(default_factory=dict)
    """By problem: when, and what its library took."""

    def learn(self, problem_id: str, times: dict[str, Any]) -> None:
        """Keep what was just measured beside a candidate."""
        if times:
            self.library_times[problem_id] = (time.monotonic(), times)

    def known_times(self, problem_id: str) -> dict[str, Any]:
        """What the library took on this device, if that is not long ago."""
        taken, times = self.library_times.get(problem_id, (0.0, {}))
        return times if time.monotonic() - taken < LIBRARY_TIMES_S else {}


class Session:
    """Processes that judge, for as long as the block lasts. Raises MachineError where this machine cannot."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.seed = settings.seed or secrets.token_hex(16)
        self.facts: dict[str, Any] = {}
        self._found = find_devices(settings.device)
        self.deadlines = settings.deadlines or Deadlines.for_device(self._found[0].kind)
        self._places: list[_Place] = []
        self._peaks = {device.name: peaks for device in self._found if (peaks := _kept_peaks(device)) is not None}
        """By a GPU's name what was measured of it."""
        self._changed = threading.Condition()
        self._server: Channel | None = None
        self._server_process: subprocess.Popen[bytes] | None = None
        self._server_lock = threading.RLock()
        self._page_lock = threading.Lock()
        self._servers = 0
        self._cache = tempfile.TemporaryDirectory(prefix="kgbench-referees-")
        """Of kernels that torch compiles for the referees, which have no home. No worker may write here."""
        self._plan: dict[str, Any] = {}
        self._closed = False
        """Nothing new begins."""
        self._ended = False
        """No process is left."""

    def __enter__(self) -> Session:
        if not sys.platform.startswith("linux"):
            raise MachineError(
                "KGB301", "kernels run on Linux only; use a Linux machine. Here list, show, validate and report work"
            )
        if importlib.util.find_spec("torch") is None:
            words = "torch is not installed: pip install 'kgbench[torch]', or see the README for the CPU build"
            raise MachineError("KGB302", words)
        begun = time.monotonic()
        try:
            self._take_devices()
            self._start_server()
            # The first seat says what the device is; others are started when there is work for them.
            seat, facts = self._start_seat(self._places[0], 0)
        except BaseException:
            self.close()
            raise
        self._places[0].numbers.add(0)
        self._places[0].idle.append(seat)
        device = self._places[0].device
        self.facts |= {**facts, "uuid": device.uuid, "driver": device.driver}
        self.facts["versions"] = {**facts["versions"], **self.facts.pop("server_versions")}
        self.facts["devices"] = [{"name": each.device.name, "uuid": each.device.uuid} for each in self._places]
        self.facts["jobs"] = self._places[0].most
        self.facts["start_s"] = round(time.monotonic() - begun, 3)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def jobs(self) -> int:
        """How many candidates may be at work at once, on all devices together."""
        return sum(place.most for place in self._places if not place.sick)

    @property
    def stopping_s(self) -> float:
        """Of ``timed_s``, what it took until everybody else stood still."""
        return 0.0 if self._ended else sum(place.page.stopping_s for place in self._places)

    @property
    def timed_s(self) -> float:
        """Seconds of all devices together in which something was being timed; 0 once the session has ended."""
        return 0.0 if self._ended else sum(place.page.timed_s for place in self._places)

    def evaluate(self, job: Job, on_event: OnEvent = lambda phase, detail: None) -> Result:
        """Judge one candidate. Our own failure is a result too, ``harness error``, once it has happened twice.

        Raises MachineError when no device is left, SessionClosed when the session is closed meanwhile.
        """
        if job.source is None and job.trusted is None:
            return _without_evaluation(job, Outcome.NO_CANDIDATE, "no candidate was handed in for this problem")
        result, company = self._evaluate(job, on_event, alone=False)
        if company is not None and (words := _perhaps_a_neighbours_doing(result)):
            on_event("again", f"alone, since {words}")
            result, _ = self._evaluate(job, on_event, alone=True)
            if words == CROWDED and _perhaps_a_neighbours_doing(result) != CROWDED:
                self._at_most(company, company.most - 1, CROWDED)
        return result

    def close(self) -> None:
        """End every process of this session at once; nothing is left after at most a few seconds."""
        with self._changed:
            self._closed = True
            seats = [seat for place in self._places for seat in (*place.idle, *place.busy)]
            self._changed.notify_all()
        for seat in seats:
            # A thread may be waiting on it: it wakes up, and closes it.
            with contextlib.suppress(OSError):
                seat.channel.socket.shutdown(socket.SHUT_RDWR)
        with self._server_lock:
            self._stop_server()
        for place in self._places:
            for seat in place.idle:
                seat.channel.close()
            place.idle.clear()
            if place.lock is not None:
                place.lock.release()
        with self._page_lock:
            if not self._ended:
                self._ended = True
                self._cache.cleanup()
                for place in self._places:
                    place.page.close()

    # --- one candidate ---

    def _evaluate(self, job: Job, on_event: OnEvent, *, alone: bool) -> tuple[Result, _Place | None]:
        """The result, and the device if others were at work there meanwhile."""
        lost = ""
        for _ in range(2):
            while True:
                seat = self._take(job, alone)
                had_company = len(seat.place.busy) > 1
                try:
                    result = self._judge(seat, job, on_event)
                    return result, seat.place if had_company or len(seat.place.busy) > 1 else None
                except _NoRoom as error:
                    result = _without_evaluation(job, Outcome.HARNESS_ERROR, f"{NO_ROOM}: {error}")
                    return result, seat.place if had_company or seat.place.busy else None
                except _Stale:
                    continue
                except _Sick as sick:
                    # The device's fault counts as no attempt; another device takes over.
                    self._set_aside(seat, str(sick))
                except _Lost as error:
                    lost = str(error)
                    break
        return _without_evaluation(job, Outcome.HARNESS_ERROR, lost), None

    def _judge(self, seat: _Seat, job: Job, on_event: OnEvent) -> Result:
        """Raises _Lost, _NoRoom, _Stale, _Sick; the seat is free again, or gone."""
        asked = False
        if job.source is not None and not job.without:
            job = replace(job, library_times=seat.place.known_times(job.problem_id))
        try:
            seat.channel.send({"job": asdict(job)})
            asked = True
            result = self._await_result(seat, on_event)
        except BaseException as error:
            self._discard(seat)
            if isinstance(error, ChannelClosed | ChannelTimeout | ProtocolError):
                if self._closed:
                    raise SessionClosed("KGB316", "the session was closed while a candidate was judged") from None
                if not asked:
                    raise _Stale from None
                raise _Lost(f"the referee is gone: {error}{self._last_words('referee')}") from None
            raise
        seat.problem_id = job.problem_id
        result.memory_mb["coordinator"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, 1)
        if self._server_process is not None:
            result.memory_mb["fork server"] = round(processes.peak_bytes(self._server_process.pid) / 1e6, 1)
        self._give_back(seat)
        return result

    def _await_result(self, seat: _Seat, on_event: OnEvent) -> Result:
        silence_s = self.deadlines.whole_s + self.deadlines.import_s + GRACE_S
        while True:
            message = seat.channel.receive(silence_s)
            match message.get("event"):
                case "phase":
                    on_event(message["phase"], message["detail"])
                case "result":
                    if not message["result"].get("without"):
                        seat.place.learn(message["result"]["problem"], message["library_times"])
                    return result_from_json(message["result"])
                case "sick":
                    raise _Sick(message["reason"])
                case "no room":
                    raise _NoRoom(message["reason"])
                case _:
                    raise ChannelClosed(str(message.get("reason", message)))

    # --- seats ---

    def _take(self, job: Job, alone: bool) -> _Seat:
        """A seat for the job: a warm one, an idle one, a new one, or the first that becomes free."""
        if alone:
            return self._take_alone(job)
        with self._changed:
            while True:
                self._check_open()
                places = [place for place in self._places if not place.sick and not place.alone]
                idle = [seat for place in places for seat in place.idle]
                if idle:
                    seat = next((each for each in idle if each.problem_id == job.problem_id), idle[0])
                    return self._occupy(seat)
                growing = [place for place in places if len(place.numbers) < place.most]
                if growing:
                    place = min(growing, key=lambda each: len(each.numbers))
                    break
                self._changed.wait()
            number = min(set(range(MAX_REFEREES)) - place.numbers)
            place.numbers.add(number)
        return self._open_seat(job, place, number)

    def _open_seat(self, job: Job, place: _Place, number: int) -> _Seat:
        """One more seat on a device. Where no more can be had, those that there are must do."""
        try:
            seat, _ = self._start_seat(place, number)
        except BaseException as error:
            with self._changed:
                place.numbers.discard(number)
                others = len(place.numbers)
                self._changed.notify_all()
            if not isinstance(error, MachineError) or self._closed:
                raise
            if not others:
                raise
            self._at_most(place, others, str(error))
            return self._take(job, alone=False)
        with self._changed:
            place.busy.append(seat)
        return seat

    def _take_alone(self, job: Job) -> _Seat:
        """A seat of a device on which nobody else is at work, and nobody begins until it is given back."""
        with self._changed:
            place = self._reserve()
            if place.idle:
                seat = self._occupy(place.idle[0])
                seat.alone = True
                return seat
            number = 0
            place.numbers.add(number)
        try:
            seat = self._open_seat(job, place, number)
        except BaseException:
            with self._changed:
                place.alone = False
                self._changed.notify_all()
            raise
        seat.alone = True
        return seat

    def _reserve(self) -> _Place:
        """A device on which nobody is at work any more; marked, so that nobody begins."""
        while True:
            self._check_open()
            place = next((each for each in self._places if not each.sick and not each.alone), None)
            if place is None:
                self._changed.wait()
                continue
            place.alone = True
            try:
                while not place.sick and len(place.idle) < len(place.numbers):
                    self._changed.wait()
                    self._check_open()
                if not place.sick:
                    return place
            except BaseException:
                place.alone = False
                raise
            place.alone = False

    def _occupy(self, seat: _Seat) -> _Seat:
        seat.place.idle.remove(seat)
        seat.place.busy.append(seat)
        return seat

    def _give_back(self, seat: _Seat) -> None:
        if len(seat.place.numbers) > seat.place.most:
            self._discard(seat)
            return
        with self._changed:
            if seat in seat.place.busy:
                seat.place.busy.remove(seat)
                seat.place.idle.append(seat)
            self._end_alone(seat)
            self._changed.notify_all()

    def _at_most(self, place: _Place, most: int, why: str) -> None:
        """So many candidates at once on a device from now on; at least one."""
        with self._changed:
            place.most = max(1, most)
        words = f"no more than {place.most} candidates at once on {place.device.name}: {why}"
        self.settings.say(numbered("KGB603", words))

    def _end_alone(self, seat: _Seat) -> None:
        if seat.alone:
            seat.alone = seat.place.alone = False

    def _discard(self, seat: _Seat) -> None:
        """The referee is lost, or nobody knows what it is doing. Whatever it had stopped goes on."""
        self._forget(seat)
        with self._changed:
            for seats in (seat.place.busy, seat.place.idle):
                if seat in seats:
                    seats.remove(seat)
            seat.place.numbers.discard(seat.number)
            self._end_alone(seat)
            self._changed.notify_all()

    def _forget(self, seat: _Seat) -> None:
        """End a referee; its number stays taken."""
        seat.channel.close()
        processes.signal_one(seat.pid, signal.SIGKILL)
        with self._page_lock:
            if not self._ended:
                with seat.place.page.locked():
                    seat.place.page.clear(seat.number)
                    seat.place.page.set_going()

    def _set_aside(self, seat: _Seat, reason: str) -> None:
        """No further candidate goes to a sick device; what is still being judged there finds out by itself."""
        place = seat.place
        with self._changed:
            if not place.sick:
                words = f"{place.device.name} {place.device.uuid} is set aside: {reason}"
                self.settings.say(numbered("KGB604", words))
            place.sick = reason
            self._changed.notify_all()

    def _check_open(self) -> None:
        if self._closed:
            raise SessionClosed("KGB316", "the session was closed while a candidate was waiting")
        if self._places and all(place.sick for place in self._places):
            reasons = "; ".join(f"{place.device.name} {place.device.uuid}: {place.sick}" for place in self._places)
            raise MachineError("KGB309", f"no device is left that works: {reasons}")

    # --- processes ---

    def _take_devices(self) -> None:
        """Lock as many GPUs as are wanted and free; when none is, wait for the first."""
        wanted = self.settings.gpus or (len(self._found) if ":" in self.settings.device else 1)
        if self._found[0].kind == "cpu":
            self._places.append(_Place(self._found[0], Page.create(), self._most_seats(self._found[0], 1)))
            return
        locks = [(device, GpuLock(device.uuid)) for device in self._found]
        taken: list[tuple[Device, GpuLock]] = []
        for device, lock in locks:
            if len(taken) < wanted and lock.try_take():
                taken.append((device, lock))
        if not taken:
            device, lock = locks[0]
            lock.wait(
                lambda words: self.settings.say(numbered("KGB605", f"GPU {device.index} ({device.name}): {words}"))
            )
            taken.append((device, lock))
        elif len(taken) < min(wanted, len(locks)):
            words = f"{len(taken)} of {min(wanted, len(locks))} GPUs are free; going on with these"
            self.settings.say(numbered("KGB606", words))
        elif len(taken) < len(locks) and not self.settings.gpus:
            words = f"1 of {len(locks)} GPUs is used; --gpus all or --device cuda:0,1 uses more"
            self.settings.say(numbered("KGB628", words))
        for device, lock in taken:
            self._places.append(_Place(device, Page.create(), self._most_seats(device, len(taken)), lock))

    def _most_seats(self, device: Device, devices: int) -> int:
        if self.settings.jobs:
            return min(self.settings.jobs, MAX_REFEREES)
        cores = len(os.sched_getaffinity(0)) // devices
        memory = cores if device.memory_gb is None else int(device.memory_gb / GB_PER_SEAT)
        return max(1, min(cores, memory, MAX_SEATS))

    def _start_server(self) -> None:
        """A fork server; one that does not start is replaced once. Raises MachineError."""
        try:
            self._try_server()
        except _Lost:
            self._stop_server()
            try:
                self._try_server()
            except _Lost as error:
                raise MachineError("KGB310", str(error)) from None

    def _try_server(self) -> None:
        """Raises _Lost when it is not ready in time, and MachineError."""
        self._servers += 1
        server_end, own_end = pair()
        command = [sys.executable, "-m", "kgbench.harness.process.fork_server", str(server_end.fileno())]
        env = environment(self._found[0].kind)
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(IMPORT_ROOT), env.get("PYTHONPATH", ""))))
        try:
            with self._log("forkserver") as output:
                # A session of its own, so that Ctrl-C reaches only the coordinator.
                self._server_process = subprocess.Popen(
                    command,
                    env=env,
                    pass_fds=[server_end.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
        finally:
            server_end.close()
        self._server = Channel(own_end)
        try:
            message = self._server.receive(START_S)
            while not message.get("ready"):
                self.facts.setdefault("not imported", {})[message["missing"]] = message["reason"]
                message = self._server.receive(START_S)
        except (ChannelClosed, ChannelTimeout, ProtocolError) as error:
            words = f"the fork server did not start: {error}{self._last_words('forkserver')}"
            raise _Lost(words) from None
        if message["unfit"]:
            raise MachineError("KGB311", f"the fork server is not fit to fork: {message['unfit']}")
        plan = Plan.from_json(message["plan"])
        self._plan = message["plan"]
        self.facts |= {"server_versions": message["versions"], "sandbox": plan.states()}
        self.facts["sandbox_missing"] = plan.missing()
        self._check_sandbox()

    def _stop_server(self) -> None:
        """End the fork server with everything that it forked."""
        server, self._server = self._server, None
        process, self._server_process = self._server_process, None
        if server is not None:
            server.close()
        if process is None:
            return
        below = processes.descendants(process.pid)
        try:
            process.wait(3.0)
        except subprocess.TimeoutExpired:
            below = [*below, *processes.descendants(process.pid)]
            process.kill()
            process.wait()
        for pid in below:
            processes.signal_one(pid, signal.SIGKILL)

    def _start_seat(self, place: _Place, number: int) -> tuple[_Seat, dict[str, Any]]:
        """A referee and what it says about its device; one that does not start is replaced once.

        Raises MachineError.
        """
        with contextlib.suppress(_Lost):
            return self._try_seat(place, number)
        self._check_open()
        try:
            return self._try_seat(place, number)
        except _Lost as error:
            raise MachineError("KGB312", str(error)) from None

    def _try_seat(self, place: _Place, number: int) -> tuple[_Seat, dict[str, Any]]:
        """Raises _Lost when the referee is not ready in time, and MachineError."""
        own_end, referee_end = pair()
        server_side, referee_side = pair()
        with self._server_lock, self._log("referee") as log:
            fds = [server_side.fileno(), referee_end.fileno(), referee_side.fileno(), place.page.fd, log.fileno()]
            message = {"op": "referee", "device_uuid": place.device.uuid, "cache": self._cache.name}
            try:
                reply = self._ask_server(message, fds)
            except BaseException:
                own_end.close()
                raise
            finally:
                for sock in (referee_end, referee_side, server_side):
                    sock.close()
        seat = _Seat(place, number, int(reply["pid"]), Channel(own_end))
        settings = RefereeSettings(
            place.device.kind,
            place.device.uuid,
            self.seed,
            self.deadlines,
            tuple(str(path) for path in self.settings.hidden),
            dict(self.settings.limits or {}),
            self.settings.timing,
            number,
            self.settings.probe,
            self.settings.ablation,
            self.settings.policy,
            noise_of(place.device.kind, place.device.name),
            self._peaks.get(place.device.name) if place.device.kind == "cuda" else None,
        )
        try:
            seat.channel.send({"settings": settings.to_json(), "plan": self._plan})
            answer = seat.channel.receive(START_S)
        except BaseException as error:
            self._forget(seat)
            if isinstance(error, ChannelClosed | ChannelTimeout | ProtocolError):
                raise _Lost(f"a referee did not start: {error}{self._last_words('referee')}") from None
            raise
        if answer.get("event") != "ready":
            self._forget(seat)
            raise _Lost(f"a referee did not start: {answer.get('reason')}")
        facts: dict[str, Any] = answer["facts"]
        self._learn_peaks(place.device, facts.get("peaks"))
        return seat, facts

    def _learn_peaks(self, device: Device, peaks: dict[str, Any] | None) -> None:
        """What the first referee of a GPU measured holds for all others, and for later sessions."""
        if peaks is not None and device.kind == "cuda" and device.name not in self._peaks:
            self._peaks[device.name] = peaks
            keep(PEAKS, device_key(device.kind, device.name), {**peaks, "driver": device.driver})

    def _ask_server(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Its answer; a fork server that has died is replaced. Raises MachineError."""
        for _ in range(2):
            self._check_open()
            if self._server is None:
                if self._servers > MAX_SERVERS:
                    raise MachineError("KGB313", f"{MAX_SERVERS} fork servers died{self._last_words('forkserver')}")
                self._start_server()
            assert self._server is not None
            try:
                self._server.send(message, fds)
                reply = self._server.receive(30.0)
            except (ChannelClosed, ChannelTimeout, ProtocolError):
                # Its referees died with it; whoever waits for one of them finds out.
                self._stop_server()
                continue
            if "error" in reply:
                self._stop_server()
                continue
            return reply
        raise MachineError("KGB314", f"the fork server does not answer{self._last_words('forkserver')}")

    def _check_sandbox(self) -> None:
        """Raises MachineError, saying what is missing, below the level that was asked for."""
        required, had = self.settings.require_sandbox, self.facts["sandbox"]["level"]
        if not required or SANDBOX_LEVELS.index(had) >= SANDBOX_LEVELS.index(required):
            return
        missing = self.facts["sandbox_missing"]
        asked = SANDBOX_LEVELS[1 : SANDBOX_LEVELS.index(required) + 1]
        lines = [f"  {level}: {what}" for level in asked for what in missing[level]]
        raise MachineError(
            "KGB315",
            f"the sandbox on this machine is level {had!r}, and --require-sandbox asks for {required!r}. "
            "It lacks:\n" + "\n".join(lines) + "\ndocs/sandbox.md says how to get each",
        )

    @contextlib.contextmanager
    def _log(self, name: str) -> Any:
        """What a process of ours prints goes here."""
        with contextlib.ExitStack() as stack:
            file = None
            if self.settings.log_dir is not None:
                # On a full disk the run is not ended for a log; the next result that cannot be kept says it.
                with contextlib.suppress(OSError):
                    self.settings.log_dir.mkdir(parents=True, exist_ok=True)
                    file = stack.enter_context((self.settings.log_dir / f"{name}.log").open("ab"))
            yield file or stack.enter_context(open(os.devnull, "ab"))

    def _last_words(self, name: str) -> str:
        if self.settings.log_dir is None:
            return ""
        with contextlib.suppress(OSError):
            words = (self.settings.log_dir / f"{name}.log").read_text(errors="replace")[-2000:]
            return f"\n{words}" if words else ""
        return ""


def _kept_peaks(device: Device) -> dict[str, Any] | None:
    """What an earlier session measured with this driver."""
    kept = known(PEAKS, device_key(device.kind, device.name)) if device.kind == "cuda" else None
    return kept if kept is not None and kept.get("driver") == device.driver else None


def _perhaps_a_neighbours_doing(result: Result) -> str:
    """What another candidate on the device may have brought about, in words for the progress; else nothing."""
    if result.outcome is Outcome.OUT_OF_MEMORY or result.reason.startswith(NO_ROOM):
        return CROWDED
    if result.library is not None and result.library.reason.startswith(LIBRARY_FAILED):
        return "the library failed beside others"
    busy = result.outcome in (Outcome.REJECTED, Outcome.HARNESS_ERROR) and STAYS_BUSY in result.reason
    return "the device stayed busy beside others" if busy else ""


def _without_evaluation(job: Job, outcome: Outcome, reason: str) -> Result:
    return Result(
        problem=job.problem_id,
        model=job.model,
        sample=job.sample,
        outcome=outcome,
        reason=reason,
        source=job.problem_id.partition("/")[0],
    )
