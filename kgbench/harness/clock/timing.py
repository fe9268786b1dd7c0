"""Times a candidate beside the library: alternating windows, each released, clocked and secured by the referee.

A window is n calls on n input sets that nobody has seen before. On CUDA its calls are queued behind a flag in host
memory, then the referee writes the inputs, flushes the cache and releases the flag: the device runs all calls
without waiting for Python, and the referee sees the mark behind the last one within a microsecond. What a window
costs beside its calls is measured with windows of one least kernel. Nothing that a worker says enters a time.

A worker that raises the mark early gains nothing: outputs are secured in random order right after it while the
worker is stopped, a random choice of them is judged, and if securing takes longer than for the library that time is
added. Single-call windows catch a candidate that does the work of many calls in one.

What is timed happens in the referee's turn, while every other worker of the device stands still; warming up and
judging the outputs that were kept happen outside it, so that others get on.
"""

from __future__ import annotations

import contextlib
import math
import random
import select
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, NoReturn

import torch

from kgbench.core.types import Outcome, Timing, Window
from kgbench.harness.clock.statistics import LAUNCH_BOUND_US, half_width, interval, null_noise
from kgbench.harness.clock.window_inputs import WindowInputs, WindowLayout
from kgbench.harness.machine.timing_lock import STAYS_BUSY, Turns
from kgbench.harness.verdict import defences
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.verdict.verdicts import PASSED, Verdict
from kgbench.harness.wire.buffers import ControlPage
from kgbench.harness.workers.handle import HarnessFailed, WorkerFailed, WorkerHandle
from kgbench.harness.workers.started import Clock, Side
from kgbench.problem.cases import Case, in_other_values

MAX_CALLS: Final = 128
"""A CUDA channel takes about a thousand launches before it blocks; a call may be several."""
QUEUE_DEADLINE_S: Final = 3.0
STALLS: Final = 3
"""So often in a row a window may turn out not to be queued in time: a kernel's first launch loads it, which waits."""
WARM_CALLS: Final = 3
WARM_BYTES: Final = 512 << 20
SINGLE_STEPS: Final = 4
VERIFY_S: Final = 0.01
"""Mean time per window for judging outputs: several of a cheap operator's, some windows' of a dear one."""
KEPT_BYTES: Final = {"cuda": 1 << 30, "cpu": 128 << 20}
"""At most this much of a case's timed outputs waits to be judged; beyond it a random choice is."""
KEPT_LEAST: Final = 4
OVERHEAD_WINDOWS: Final = 3
QUIET_FLUSHES: Final = 3
QUIET_US: Final = 60.0
QUIET_FACTOR: Final = 1.5
"""The device is quiet when so many flushes in a row take at most the shortest ever times this, and QUIET_US more."""
QUIET_DEADLINE_S: Final = 0.5
LEFT_DEADLINE_S: Final = 5.0
"""How long the driver may take to end what a killed process had on the device."""
SPOILT_SHARE: Final = 0.2
SPOILT_CALLS: Final = 3
"""On the CPU, beside one pair in so many a window whose inputs vanish at the mark; so many of its calls are judged."""
MIN_PAIRS: Final = 6
MAX_PAIRS: Final = 16
TARGET_HALF_WIDTH: Final = 0.004
FLUSH_BYTES: Final = 256 << 20
LEAST_US: Final = 1e-3
SLOW: Final = 2.0
"""A window holds as many calls as the slower side has time for; beyond this factor the library's are not kept."""
HOLD_S: Final = 1.0
"""How long a queued window may run with its worker stopped; no honest window of many calls is as long."""


@dataclass(frozen=True)
class Budget:
    """How much a case's timing may take on a kind of device."""

    window_us: float
    case_s: float
    """Of the referee's turn."""
    memory_bytes: int
    window_deadline_s: float


@dataclass(frozen=True)
class LibraryTimes:
    """What the library's windows of a case took beside an earlier candidate; stands in for new ones."""

    windows: tuple[Window, ...]
    """``window`` and ``single`` ones."""
    overhead_us: float
    call_us: float
    queued: bool

    @property
    def calls(self) -> int:
        return next(window.calls for window in self.windows if window.kind == "window")

    @classmethod
    def from_timing(cls, timing: Timing) -> LibraryTimes | None:
        """None where it holds none of its own, or beside a candidate so slow that windows of both are short."""
        mine = tuple(w for w in timing.windows if w.side == "library" and w.kind in ("window", "single"))
        # The first was a probe where there is an odd one with fewer calls.
        most = max((window.calls for window in mine), default=0)
        mine = tuple(window for window in mine if window.kind == "single" or window.calls == most)
        overheads = [window for window in timing.windows if window.kind == "overhead"]
        if timing.library_shared or timing.library_call_us is None or not overheads:
            return None
        if timing.candidate_us > SLOW * timing.library_us:
            return None
        if {window.kind for window in mine} != {"window", "single"}:
            return None
        return cls(mine, least(overheads), timing.library_call_us, timing.queued)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> LibraryTimes:
        return cls(**{**data, "windows": tuple(Window(**window) for window in data["windows"])})


@dataclass
class _Case:
    """What timing one case gathers."""

    case: Case
    layout: WindowLayout
    windows: list[Window] = field(default_factory=list)
    verified: int = 0
    timed: int = 0
    queued: bool = True
    known: LibraryTimes | None = None
    replayed: dict[str, int] = field(default_factory=dict)
    """Per kind of window, how many of the known ones were used."""
    prepared: dict[str, int] = field(default_factory=dict)
    """Per side, how many calls its worker has arguments for."""
    kept: list[tuple[PlacedCall, torch.Tensor]] = field(default_factory=list)
    """Timed calls with their secured bytes, to be judged after the turn."""
    others: list[Case] = field(default_factory=list)
    """The same in other values, as check cases are drawn."""
    offered: int = 0
    """How many calls were chosen to be kept; more than there is room for are kept by lot."""


class Unmeasurable(Exception):
    """The clock cannot tell this time from none: nobody's failure, and no time."""


class DeviceBusy(Exception):
    """Somebody works on the device although everybody stands still: nothing can be timed now."""

    def __init__(self) -> None:
        super().__init__(STAYS_BUSY)


class BenchFailed(Exception):
    """A timed output was wrong: the candidate's failure, found during timing."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict


class Bench:
    """Times cases of one overload, library beside candidate."""

    def __init__(
        self,
        judge: OverloadJudge,
        sides: dict[str, Side],
        clocks: dict[str, Clock],
        budget: Budget,
        generator: torch.Generator,
        choose: random.Random,
        references: frozenset[str],
        deadline: float,
        turns: Turns,
        noise: Mapping[str, float],
    ) -> None:
        self.judge = judge
        self.sides = sides
        self.clocks = clocks
        self.budget = budget
        self.generator = generator
        self.choose = choose
        self.references = references
        """Sides that run the reference as their entry and need its hints."""
        self.deadline = deadline
        """By the referee's clock (``Turns.now``), when the whole evaluation is over."""
        self.turns = turns
        self.cuda = judge.device.type == "cuda"
        self.scratch = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=judge.device) if self.cuda else None
        self.noise = noise
        """By range of time, what a null test on this device showed."""
        self.oracle_s = 0.0
        self.first: PlacedCall | None = None
        """A call of the case that was timed last."""
        self.vault = torch.empty(0, dtype=torch.uint8, device=judge.device)
        self.order: list[int] = []
        """Which call lies where in the vault."""
        self.owed: dict[str, int] = {}
        """Sides whose reply to a window, by its number, was not read yet: the worker may be stopped."""
        self.timing = False
        """It is this referee's turn."""
        self.overhead_us = 0.0
        self.without = judge.without
        """Layers of defence that are left out, in a test of the harness."""
        self.given: PlacedCall | None = None
        """Where fresh inputs are left out, what every call gets."""
        self._asked = {"own_clock": True} if defences.CLOCK in judge.without else {}

    def time_case(self, case: Case, against: str, known: LibraryTimes | None = None) -> Timing:
        """Raises WorkerFailed where a worker fails, BenchFailed where a timed output is wrong, Unmeasurable where there
        is no time, DeviceBusy where there is none now.

        With ``known``, only the candidate is timed, in windows of as many calls.
        """
        layout = WindowLayout(self.judge, self.given or self.judge.place(case, self.generator), self.given is not None)
        run = _Case(case, layout, queued=self.cuda and defences.CLOCK not in self.without, known=known)
        # What lies in the host's memory travels before any window's values are drawn.
        if defences.VALUES not in self.without and not any(c.is_on_host for c in layout.first.inputs.chunks.values()):
            run.others = in_other_values(self.judge.overload, case)
        most = max(1, min(MAX_CALLS, self.budget.memory_bytes // layout.stride))
        self._direct_calls(run, most)
        with self.turns.turn():
            self.timing, started = True, time.monotonic()
            try:
                overhead = self._overhead(run)
                calls = self._known_calls(run)
                call_us = self._direct_calls(run, most)
                if run.known is None:
                    calls = self._choose_calls(run, most, call_us, overhead)
                pairs = self._pairs(run, calls, overhead, started)
                singles = self._singles(run, overhead, pairs)
            finally:
                self.timing = False
                self._settle_library()
                # Only here does one referee at a time need that much.
                self.vault = torch.empty(0, dtype=torch.uint8, device=self.judge.device)
                self._give_back_memory()
        self._settle("candidate")
        self._verify_kept(run)
        self._pass(run, self.judge.conclude())
        return self._timing(run, pairs, singles, call_us, against)

    def run_once(self, case: Case, calls: int) -> None:
        """A window of the candidate's that nobody times and whose outputs are judged. Raises like ``time_case``."""
        layout = WindowLayout(self.judge, self.judge.place(case, self.generator))
        run = _Case(case, layout, queued=False)
        self._prepare(run, "candidate", calls)
        self._window(run, "candidate", calls, layout.draw(calls, self.generator), queued=False, kind="watched")
        self._settle("candidate")
        self._pass(run, self.judge.conclude())

    def release(self) -> None:
        """Give back the memory that only timing needs."""
        self.scratch, self.vault = None, torch.empty(0, dtype=torch.uint8)
        self._settle_library()
        library = self.sides["library"]
        if library.handle.exit is None:
            with contextlib.suppress(WorkerFailed):
                library.unmap()
        self._give_back_memory()

    def _give_back_memory(self) -> None:
        """To the device, for other processes."""
        if self.cuda:
            torch.cuda.empty_cache()

    # --- one window ---

    def _prepare(self, run: _Case, name: str, calls: int) -> None:
        """Build the arguments on the worker's side; the places of a case never change, only what is in them."""
        if run.prepared.get(name, 0) >= calls:
            return
        self._settle(name)
        side, stride = self.sides[name], run.layout.stride
        side.ensure_arena(stride * calls)
        if self.vault.numel() < stride * calls:
            self.vault = torch.empty(stride * calls, dtype=torch.uint8, device=self.judge.device)
        call = self.judge.message(run.layout.first, name in self.references)
        request = {"op": "prepare", "call": call, "calls": calls, "stride": stride}
        side.handle.request(request, self.budget.window_deadline_s, f"case {run.case.id}, preparing")
        run.prepared[name] = calls

    def _window(
        self,
        run: _Case,
        name: str,
        calls: int,
        inputs: WindowInputs | None,
        queued: bool | None = None,
        kind: str = "window",
        spoilt: WindowInputs | None = None,
    ) -> Window:
        """One window of one side while the candidate, if it is the other, is stopped; keeps a choice of its outputs.

        With ``spoilt``, these take the inputs' place as soon as the worker says that its calls are done.
        """
        if name == "library" and run.known is not None and kind in ("window", "single"):
            return self._replay(run, run.known, kind)
        side, clock, candidate = self.sides[name], self.clocks[name], self.sides["candidate"].handle
        queued = run.queued if queued is None else queued
        what = f"case {run.case.id}, timing"
        if self.turns.now() > self.deadline:
            candidate.kill("deadline")
            raise WorkerFailed(candidate, Outcome.TIMEOUT, f"{what}: the whole evaluation took too long", "")
        self._settle(name)
        hostile = side.handle is candidate
        if not hostile:
            self._freeze(candidate)
            self._await_quiet()
        self._open_window(side, clock, calls, queued, kind == "overhead", what)
        if queued and hostile:
            # All that is left is the device's work: nobody on the worker's side can raise a mark any more.
            self._freeze(candidate)
        if inputs is not None:
            inputs.fill(side)
        self._flush()
        done_us, released_ns = self._release(side, clock, what)
        if spoilt is not None:
            # Whoever still has to read them to make what it said was done will read these.
            self._freeze(candidate)
            spoilt.spoil(side)
            candidate.thaw()
        self._spin(side, clock.page.words, ControlPage.SECURED, clock.epoch, self._window_deadline(), what)
        if spoilt is not None and inputs is not None:
            inputs.spoil(side)
        stopping_ns = time.perf_counter_ns()
        if hostile:
            self._freeze(candidate)
        # Only the candidate is stopped, so that is not part of what is compared.
        stopping_ns = time.perf_counter_ns() - stopping_ns
        self._secure(run, side, 0 if inputs is None else calls)
        secured_us = (time.perf_counter_ns() - released_ns - stopping_ns) / 1e3
        self.owed[name] = clock.epoch
        if defences.CLOCK in self.without and inputs is not None:
            done_us = secured_us = self._own_word(name) + self.overhead_us
        if hostile and inputs is not None and kind != "spoilt":
            # Who takes the inputs away judges those calls itself, and no random operator's may be judged twice.
            run.timed += calls
            self._choose_kept(run, inputs, calls)
            if not self.timing:
                self._verify_kept(run)
        window = Window(name, kind, calls, done_us, secured_us)
        run.windows.append(window)
        return window

    def _freeze(self, candidate: WorkerHandle) -> None:
        if defences.FREEZING not in self.without and not candidate.is_frozen:
            candidate.freeze()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """A turn for what is not timed, and as far as that comes about a device that others are done with."""
        with self.turns.turn():
            self._is_quiet()
            yield

    def _await_quiet(self) -> None:
        """Wait for the end of what stopped processes have left on the device. Raises DeviceBusy."""
        if self.timing and defences.FREEZING not in self.without and not self._is_quiet():
            raise DeviceBusy

    def _is_quiet(self, deadline_s: float = QUIET_DEADLINE_S) -> bool:
        """Whether flushes soon take no longer than they have taken on this device: one that works for another process,
        too, takes turns of milliseconds."""
        in_a_row, until = 0, time.monotonic() + deadline_s
        while self.cuda and in_a_row < QUIET_FLUSHES:
            took_us, known = self._flush(), self.turns.page.quiet_us
            if not known or took_us < known:
                self.turns.page.quiet_us = took_us
            in_a_row = in_a_row + 1 if took_us <= QUIET_FACTOR * known + QUIET_US else 0
            if time.monotonic() > until:
                return False
        return True

    def end_who_stays_busy(self, what: str) -> NoReturn:
        """The device was never quiet: is that the candidate's doing? Its worker is killed to see.

        Raises WorkerFailed where the device is quiet without it, HarnessFailed where somebody else keeps it busy.
        """
        candidate = self.sides["candidate"].handle
        with self.turns.turn():
            candidate.kill("rejected")
            if self._is_quiet(LEFT_DEADLINE_S):
                words = f"{what}: {STAYS_BUSY}, and is quiet once this one has ended"
                raise WorkerFailed(candidate, Outcome.REJECTED, words, candidate.log_tail)
        raise HarnessFailed(f"{what}: {DeviceBusy()}; end what else uses the GPU, or take another by --device cuda:N")

    def _own_word(self, name: str) -> float:
        """What the worker says that a window took; believed in a test of the harness alone."""
        side, epoch = self.sides[name], self.owed.pop(name)
        if side.handle.is_frozen:
            side.handle.thaw()
        elapsed_us = side.handle.reply(epoch, self.budget.window_deadline_s, "timing").get("elapsed_us")
        return float(elapsed_us) if isinstance(elapsed_us, (int, float)) else 0.0

    def _settle(self, name: str) -> None:
        """Let a side go on and read the reply that it owes."""
        side = self.sides[name]
        if side.handle.is_frozen:
            side.handle.thaw()
        if name in self.owed:
            side.handle.reply(self.owed.pop(name), self.budget.window_deadline_s, "timing")

    def _settle_library(self) -> None:
        """However a turn ended, the library is ready for the next; if it fails here, its next request says so."""
        with contextlib.suppress(WorkerFailed):
            self._settle("library")

    def _open_window(self, side: Side, clock: Clock, calls: int, queued: bool, overhead: bool, what: str) -> None:
        """Have the worker queue its calls, or wait beside them, until the release. Raises WorkerFailed."""
        if not queued:
            self._post_window(side, clock, calls, False, overhead, what)
            side.handle.reply(clock.epoch, self.budget.window_deadline_s, what)
            return
        if any(self._queued(side, clock, calls, overhead, what) for _ in range(STALLS)):
            return
        side.handle.kill("deadline")
        words = (
            f"{what}: {STALLS} times a queue of calls waited for the device in the middle; what compiles or loads "
            "a kernel, allocates past PyTorch's cache or synchronises belongs into the first calls of a shape"
        )
        raise WorkerFailed(side.handle, Outcome.TIMEOUT, words, side.handle.log_tail)

    def _queued(self, side: Side, clock: Clock, calls: int, overhead: bool, what: str) -> bool:
        """Have the worker queue its calls behind the flag. False if it waits for the device in between, which waits
        for the flag: the calls are let go then, and are nobody's time."""
        self._post_window(side, clock, calls, True, overhead, what)
        ready = select.select([side.handle.channel, side.handle.control], [], [], QUEUE_DEADLINE_S)[0]
        if not ready:
            clock.page.words[ControlPage.RELEASE] = clock.epoch
        side.handle.reply(clock.epoch, self.budget.window_deadline_s, what)
        if not ready:
            side.handle.reply(clock.epoch, self.budget.window_deadline_s, what)
        return bool(ready)

    def _post_window(self, side: Side, clock: Clock, calls: int, queued: bool, overhead: bool, what: str) -> None:
        clock.epoch += 1
        numbers = {"id": clock.epoch, "epoch": clock.epoch, "calls": calls}
        side.handle.post({"op": "window", **numbers, "queued": queued, "overhead": overhead, **self._asked}, what)

    def _release(self, side: Side, clock: Clock, what: str) -> tuple[float, int]:
        """Let the window run; microseconds to the mark behind its last call, and when it was released."""
        words, epoch = clock.page.words, clock.epoch
        deadline = self._window_deadline()
        released_ns = time.perf_counter_ns()
        words[ControlPage.RELEASE] = epoch
        self._spin(side, words, ControlPage.DONE, epoch, deadline, what)
        return (time.perf_counter_ns() - released_ns) / 1e3, released_ns

    def _window_deadline(self) -> float:
        return self.turns.now() + self.budget.window_deadline_s

    def _spin(self, side: Side, words: Any, word: int, epoch: int, deadline: float, what: str) -> None:
        """Wait for a mark; looks up now and then whether the worker has failed instead. Raises WorkerFailed."""
        spins = 0
        held_until = self.turns.now() + HOLD_S
        while words[word] != epoch:
            spins += 1
            if not self.cuda:
                # The worker needs the core more than this loop does.
                time.sleep(20e-6)
            if spins % (20_000 if self.cuda else 200) == 0:
                if self.turns.now() > held_until and side.handle.is_frozen:
                    # A device fault is told by the worker alone, and only when it runs.
                    side.handle.thaw()
                if self.turns.now() > deadline:
                    side.handle.kill("deadline")
                    limit = self.budget.window_deadline_s
                    words = f"{what}: window not done within {limit:g} s"
                    raise WorkerFailed(side.handle, Outcome.TIMEOUT, words, side.handle.log_tail)
                ready = select.select([side.handle.channel, side.handle.control], [], [], 0)[0]
                if ready and words[word] != epoch:
                    # An error frame or the news of its end; either raises.
                    side.handle.reply(epoch, 1.0, what)

    def _secure(self, run: _Case, side: Side, calls: int) -> None:
        """Copy all calls into the vault, in random order so that no call is known to have more time than another."""
        self.order = self.choose.sample(range(calls), calls)
        if calls:
            assert side.arena is not None
            stride = run.layout.stride
            rows = side.arena.bytes_at(0, calls * stride).view(torch.int64).view(calls, -1)
            order = torch.tensor(self.order, device=self.judge.device)
            torch.index_select(rows, 0, order, out=self.vault[: calls * stride].view(torch.int64).view(calls, -1))
        if self.cuda:
            torch.cuda.synchronize()

    def _choose_kept(self, run: _Case, inputs: WindowInputs, calls: int) -> None:
        """Keep a random choice of a window's calls, made after they were secured, to be judged after the turn."""
        if defences.FRESH in self.without:
            return
        affordable = VERIFY_S / self.oracle_s if self.oracle_s else 1.0
        count = int(affordable) + (self.choose.random() < affordable % 1)
        if run.verified + len(run.kept) == 0:
            count = max(count, 1)
        room = max(KEPT_LEAST, KEPT_BYTES["cuda" if self.cuda else "cpu"] // run.layout.stride)
        for i in self.choose.sample(range(calls), min(calls, count)):
            run.offered += 1
            if len(run.kept) == room and (place := self.choose.randrange(run.offered)) < room:
                run.kept[place] = self._kept(run, inputs, i)
            elif len(run.kept) < room:
                run.kept.append(self._kept(run, inputs, i))

    def _kept(self, run: _Case, inputs: WindowInputs, i: int) -> tuple[PlacedCall, torch.Tensor]:
        stride, place = run.layout.stride, self.order.index(i)
        return inputs.kept(i), self.vault[place * stride : (place + 1) * stride].clone()

    def _verify_kept(self, run: _Case) -> None:
        """Judge what was kept. Raises BenchFailed."""
        kept, run.kept, run.offered = run.kept, [], 0
        for call, secured in kept:
            started = time.perf_counter()
            verdict = self.judge.judge(call, secured)
            self.oracle_s = time.perf_counter() - started
            if verdict is PASSED or not self._library_fails_too(run, call):
                self._pass(run, verdict)
            run.verified += 1

    def _library_fails_too(self, run: _Case, call: PlacedCall) -> bool:
        """Whether that may be the values' doing, which are for smaller sizes: more of a sum may overflow on its way."""
        if call.inputs.bound.case == run.case:
            return False
        self._settle("library")
        asked = "library" in self.references
        limit_s = self.budget.window_deadline_s
        verdict = self.judge.check(self.sides["library"], run.case, call, self.generator, limit_s, asked)
        return verdict is not PASSED

    def _pass(self, run: _Case, verdict: Verdict) -> None:
        """Raises BenchFailed where something was wrong."""
        if verdict is not PASSED:
            reason = f"in a timed window of case {run.case.id}: {verdict.reason}"
            raise BenchFailed(Verdict(verdict.outcome, reason, verdict.mismatch))

    def _flush(self) -> float:
        """Push inputs and outputs out of the cache, so that every call starts cold; the microseconds that it took."""
        begun_ns = time.perf_counter_ns()
        if self.scratch is not None:
            self.scratch.fill_(self.choose.randrange(256))
            torch.cuda.synchronize()
        return (time.perf_counter_ns() - begun_ns) / 1e3

    # --- one case ---

    def _direct_calls(self, run: _Case, most: int) -> dict[str, float]:
        """Time per call with its launch in µs, after a first round that compiles, autotunes and fills caches."""
        # Outside the turn others have warm-up windows in the device's memory, too.
        calls = max(1, min(most, WARM_CALLS, WARM_BYTES // run.layout.stride))
        call_us = {}
        if run.known is not None:
            call_us["library"] = run.known.call_us
        for name in self._timed_sides(run):
            self._prepare(run, name, calls)
            if not self.timing:
                self._window(run, name, calls, run.layout.draw(calls, self.generator), queued=False, kind="warm")
            window = self._window(run, name, calls, run.layout.draw(calls, self.generator), queued=False, kind="warm")
            call_us[name] = window.done_us / calls
        return call_us

    def _timed_sides(self, run: _Case) -> list[str]:
        return [name for name in self.sides if run.known is None or name == "candidate"]

    def _known_calls(self, run: _Case) -> int:
        """As many calls as the known windows have; where the candidate cannot queue them, nothing is known."""
        known = run.known
        if known is None:
            return 0
        run.queued = known.queued
        if run.queued and not self._can_queue(run, known.calls):
            run.known, run.queued = None, False
        return known.calls

    def _replay(self, run: _Case, known: LibraryTimes, kind: str) -> Window:
        """The next known window of the library, as it would be with what a window costs now."""
        windows = [window for window in known.windows if window.kind == kind]
        number = run.replayed.get(kind, 0)
        run.replayed[kind] = number + 1
        window = windows[number % len(windows)]
        shift = self.overhead_us - known.overhead_us
        return replace(window, done_us=window.done_us + shift, secured_us=window.secured_us + shift)

    def _choose_calls(self, run: _Case, most: int, call_us: dict[str, float], overhead: float) -> int:
        """How many calls fill a window, and whether they can be queued."""
        calls = max(1, min(most, round(self.budget.window_us / max(*call_us.values(), 1.0))))
        if run.queued:
            run.queued = self._can_queue(run, calls)
        if run.queued and calls < most:
            # Direct calls include launches; a queued one may be far shorter.
            probe = self._window(run, "library", calls, run.layout.draw(calls, self.generator))
            wanted = min(most, round(self.budget.window_us / max(per_call(probe, overhead), 2.0)))
            if wanted > calls:
                calls = wanted
                run.queued = self._can_queue(run, calls)
        return calls

    def _can_queue(self, run: _Case, calls: int) -> bool:
        """Whether both sides can queue this many calls without waiting for the device."""
        inputs = run.layout.draw(calls, self.generator)
        for name in self._timed_sides(run):
            side = self.sides[name]
            self._prepare(run, name, calls)
            self._settle(name)
            inputs.fill(side)
            self._flush()
            clock = self.clocks[name]
            if not self._queued(side, clock, calls, False, "queueing"):
                return False
            clock.page.words[ControlPage.RELEASE] = clock.epoch
            side.handle.reply(clock.epoch, self.budget.window_deadline_s, "queueing")
        return True

    def _overhead(self, run: _Case) -> float:
        """What a window without calls takes, in µs: the library's, for both sides."""
        found = least([self._window(run, "library", 1, None, kind="overhead") for _ in range(OVERHEAD_WINDOWS)])
        if not self.cuda:
            # Cores are shared with whatever else this machine does, so the shortest ever is the true one.
            found = min(found, self.turns.page.empty_us or found)
            self.turns.page.empty_us = found
        self.overhead_us = found
        return found

    def _pairs(self, run: _Case, calls: int, overhead: float, started: float) -> list[tuple[Window, Window]]:
        """Alternating windows in ABBA order, both of a pair on the same values, until the interval is narrow."""
        for name in self._timed_sides(run):
            self._prepare(run, name, calls)
        pairs: list[tuple[Window, Window]] = []
        while len(pairs) < MAX_PAIRS:
            order = ("library", "candidate") if len(pairs) % 2 == 0 else ("candidate", "library")
            inputs = run.layout.draw(calls, self.generator)
            got = {name: self._window(run, name, calls, inputs) for name in order}
            pairs.append((got["library"], got["candidate"]))
            if self.choose.random() < SPOILT_SHARE:
                self._take_inputs_away(run, calls, pairs)
            late = time.monotonic() - started > self.budget.case_s
            if len(pairs) % 2 == 0 and (
                (len(pairs) >= MIN_PAIRS and half_width(log_ratios(pairs, overhead)) < TARGET_HALF_WIDTH)
                or (late and len(pairs) >= 2)
            ):
                break
        self._take_inputs_away(run, calls, pairs)
        return pairs

    def _take_inputs_away(self, run: _Case, calls: int, pairs: list[tuple[Window, Window]]) -> None:
        """A window like any other, until the worker says that its calls are done. Raises BenchFailed.

        The stub copies outputs out behind the mark, and shares a process with the candidate: who does the work there,
        straight into its place, takes no longer than an honest copy. On a GPU such a window lacks its kernels. Its
        values are drawn otherwise where they can be, on a GPU, too: who knows a timed window may not be careless in it.
        """
        without = self.without & {defences.FRESH, defences.CLOCK, defences.FREEZING}
        slow = statistics.median(b.done_us / a.done_us for a, b in pairs) > SLOW
        if without or slow or (self.cuda and not run.others):
            return
        if any(promise.shares for promise in run.layout.first.promises):
            return
        layout = run.layout
        if run.others:
            layout = WindowLayout(self.judge, self.judge.place(self.choose.choice(run.others), self.generator))
        inputs = layout.draw(calls, self.generator)
        spoilt = None if self.cuda else run.layout.draw(calls, self.generator)
        run.windows.remove(self._window(run, "candidate", calls, inputs, kind="spoilt", spoilt=spoilt))
        for i in self.choose.sample(range(calls), 1 if self.cuda else min(calls, SPOILT_CALLS)):
            call, secured = self._kept(run, inputs, i)
            if self.cuda:
                run.kept.append((call, secured))
                continue
            verdict = self.judge.judge(call, secured)
            if verdict is not PASSED and not self._library_fails_too(run, call):
                words = f"its inputs were taken away when it said that its calls were done: {verdict.reason}"
                self._pass(run, replace(verdict, reason=words))

    def _singles(self, run: _Case, overhead: float, pairs: list[tuple[Window, Window]]) -> tuple[float, float] | None:
        """Least times of one call handed out alone, (library, candidate) in µs, if the candidate's stands out."""
        if defences.SINGLES in self.without:
            return None
        times: dict[str, list[float]] = {name: [] for name in self.sides}
        for step in range(SINGLE_STEPS):
            inputs = run.layout.draw(1, self.generator)
            for name in ("library", "candidate") if step % 2 else ("candidate", "library"):
                window = self._window(run, name, 1, inputs, kind="single")
                times[name].append(window.done_us - overhead)
        # The least of several: doing the work of many calls in one makes every single call slow.
        library, candidate = (max(min(times[name]), 1e-3) for name in ("library", "candidate"))
        window_library = statistics.median(per_call(a, overhead) for a, _ in pairs)
        window_candidate = statistics.median(per_call(b, overhead) for _, b in pairs)
        excess = (candidate - window_candidate) - (library - window_library)
        if pairs[0][0].calls > 1 and excess > max(0.25 * window_candidate, 10.0 if self.cuda else 200.0):
            return max(library, window_library), candidate
        return None

    def _timing(
        self,
        run: _Case,
        pairs: list[tuple[Window, Window]],
        singles: tuple[float, float] | None,
        call_us: dict[str, float],
        against: str,
    ) -> Timing:
        self.first, overhead = run.layout.first, self.overhead_us
        logs = log_ratios(pairs, overhead)
        library = statistics.median(per_call(a, overhead) for a, _ in pairs)
        candidate = statistics.median(per_call(b, overhead) for _, b in pairs)
        late_us = securing_excess(pairs) / pairs[0][1].calls
        scored_by, note, shift = "window", "", 0.0
        if singles is not None:
            scored_by, shift = "single", statistics.median(logs) - math.log(singles[0] / singles[1])
            library, candidate = singles
            note = "one call alone takes longer than its share of a window"
        elif late_us > 0:
            scored_by, shift = "secured", math.log((candidate + late_us) / candidate)
            candidate += late_us
            note = f"outputs were there {late_us:.1f} µs per call later than the mark said"
        if min(library, candidate) <= LEAST_US:
            # A ratio of what cannot be seen would be no finding, however large it is.
            raise Unmeasurable(f"windows of {run.windows[-1].calls} calls took no longer than one without calls")
        noise, noise_source = null_noise("cuda" if self.cuda else "cpu", library, run.queued, self.noise)
        ratio, low, high = interval([value - shift for value in logs], noise)
        return Timing(
            library_us=library,
            candidate_us=candidate,
            ratio=ratio,
            low=low,
            high=high,
            scored_by=scored_by,
            launch_bound=library < LAUNCH_BOUND_US,
            queued=run.queued,
            call_us=call_us["candidate"],
            library_call_us=call_us["library"],
            outputs_verified=run.verified,
            outputs_timed=run.timed,
            note=note,
            windows=tuple(window for window in run.windows if window.kind != "warm"),
            against=against,
            library_shared=run.known is not None,
            noise=noise,
            noise_source=noise_source,
        )


def least(windows: list[Window]) -> float:
    """The shortest time to the mark, in µs: what is on top of it is disturbance."""
    return min(window.done_us for window in windows)


def per_call(window: Window, overhead_us: float) -> float:
    """Device time of one call in µs; at least a nanosecond, so that a ratio exists."""
    return max((window.done_us - overhead_us) / window.calls, LEAST_US)


def log_ratios(pairs: list[tuple[Window, Window]], overhead_us: float) -> list[float]:
    """log(library / candidate) of each pair of windows."""
    return [math.log(per_call(library, overhead_us) / per_call(candidate, overhead_us)) for library, candidate in pairs]


def securing_excess(pairs: list[tuple[Window, Window]]) -> float:
    """How much longer than the library's the candidate's outputs took to secure after the mark, in µs per window.

    0 where the difference is within its own noise, 5 % of the window and 50 µs: an honest kernel's.
    """
    differences = [(b.secured_us - b.done_us) - (a.secured_us - a.done_us) for a, b in pairs]
    excess = statistics.median(differences)
    spread = statistics.median(abs(value - excess) for value in differences)
    noise = 3 * 1.5 * spread / math.sqrt(len(differences))
    done = statistics.median(b.done_us for _, b in pairs)
    return excess if excess > noise + 0.05 * done + 50.0 else 0.0
