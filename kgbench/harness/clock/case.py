"""Timing one case: warm-up, how many calls fill a window, pairs of windows, single calls, probes."""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import torch

from kgbench.core.details.failures import Deadline, Limit
from kgbench.core.details.where import Purpose, Where
from kgbench.core.kinds import DeviceKind
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Window
from kgbench.core.verdicts import PASSED
from kgbench.harness.clock.budget import Budget
from kgbench.harness.clock.compared import COMPARED_CALLS, compared_calls
from kgbench.harness.clock.estimate import (
    MIN_PAIRS,
    Pair,
    disagree,
    enough,
    is_followed,
    is_slow,
    medians,
    overhead,
    per_call,
    single_calls,
)
from kgbench.harness.clock.library_times import LibraryTimes
from kgbench.harness.clock.outputs import KeptCalls, OutputChecks
from kgbench.harness.clock.statistics import null_noise
from kgbench.harness.clock.window import OverheadWindow, ProbeWindow, Probing, TimedWindow, WindowRunner
from kgbench.harness.clock.window_inputs import WindowInputs, WindowLayout
from kgbench.harness.machine import trace
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.wire.forks import EndCause
from kgbench.harness.workers.handle import WorkerFailed
from kgbench.problem.cases import Case

MAX_CALLS: Final = 128
"""Calls of a window at most: a CUDA channel takes about a thousand launches before it blocks; a call may be several."""
WARM_CALLS: Final = 3
"""Calls of a warm-up window at most."""
WARM_BYTES: Final = 512 << 20
"""Bytes of a warm-up window's calls at most, unless one call is larger."""
SINGLE_STEPS: Final = 4
"""Single-call windows per side and case, at most."""
LEAST_SINGLE_STEPS: Final = 2
"""Those after which there are no more once the candidate's call does not stand out."""
OVERHEAD_WINDOWS: Final = 3
"""Windows without calls per case, of which the shortest counts."""
MORE_OVERHEAD_WINDOWS: Final = 6
"""The same on top, on a GPU, where those disagree."""
PROBE_PROBABILITY: Final = 0.2
"""Chance that a pair of windows is followed by an unscored probe window; one more follows the last pair."""
PROBE_CALLS: Final = 3
"""Calls judged per probe window on the CPU; on a GPU it is one."""
MORE_PROBES: Final = 3
"""Probe windows on top, at most, where those before were too short to say whose code they ran."""
LEAST_CALL_US: Final = 1.0
"""Time in µs that a call counts as at least when the number of calls is chosen from direct calls."""
LEAST_QUEUED_CALL_US: Final = 2.0
"""Time in µs that a call counts as at least when the number of calls is chosen from a queued window."""


@dataclass(frozen=True)
class Measured:
    """What the windows of one case showed."""

    pairs: list[Pair]
    singles: tuple[float, float] | None
    """The result of ``single_calls``."""
    call_us: dict[str, float]
    """Time of a call with its launch in µs, by side."""


class CaseTiming:
    """Times one case, or lets it run once. Methods that run windows raise WorkerFailed and BenchFailed."""

    def __init__(
        self,
        windows: WindowRunner,
        checks: OutputChecks,
        layout: WindowLayout,
        kept: KeptCalls,
        budget: Budget,
        generator: torch.Generator,
        references: frozenset[str],
        deadline: float,
    ) -> None:
        self.windows = windows
        self.checks = checks
        self.judge = checks.judge
        self.layout = layout
        self.kept = kept
        self.case = kept.case
        self.budget = budget
        self.generator = generator
        self.choose: random.Random = checks.choose
        self.references = references
        self.deadline = deadline
        self.cuda = windows.device.cuda
        self.most = max(1, min(MAX_CALLS, budget.memory_bytes // layout.stride))
        """Calls of a window at most."""
        self.compared = compared_calls(layout, checks.choose)
        self.ran: list[Window] = []
        """All windows so far, but for probes."""
        self.timed = 0
        """The candidate's calls in these windows."""
        self.queued = False
        """Windows are queued before their release, so that no launch is in the time."""
        self.known: LibraryTimes | None = None
        """Kept library times, used in place of new windows of the library."""
        self.noise: Mapping[str, float] = {}
        """Noise of a ratio that a null test on this device showed, by range of time as in NULL_NOISE."""
        self.others: list[Case] = []
        """The same case in other values, as check cases are drawn."""
        self.probing: Probing | None = None
        """Asks whose code probe windows run; None where nobody does."""
        self._windows_compared: set[int] = set()
        """Of each MIN_PAIRS windows beside known times, those that the library runs, too."""
        self._replayed: dict[str, int] = {}
        """Known windows used so far, by kind."""
        self._prepared: dict[str, int] = {}
        """Calls for which a side's worker has built arguments, by side."""

    # --- the order of things ---

    def measure(self) -> Measured:
        """Everything that happens while this referee holds the timing lock."""
        started = time.monotonic()
        self._measure_overhead()
        calls = self._known_calls()
        call_us = self.direct_calls()
        if self.known is None:
            calls = self._choose_calls(call_us)
        pairs = self._pairs(calls, started)
        return Measured(pairs, self.singles(pairs), call_us)

    def run_once(self, calls: int) -> None:
        """A window of the candidate's that nobody times and whose outputs are judged."""
        self._prepare("candidate", calls)
        self._timed_window("candidate", self._draw(calls), "watched", queued=False)

    def direct_calls(self) -> dict[str, float]:
        """Time per call with its launch in µs, after a first round that compiles, autotunes and fills caches."""
        # Outside the turn others have warm-up windows in the device's memory, too.
        calls = max(1, min(self.most, WARM_CALLS, WARM_BYTES // self.layout.stride))
        call_us = {}
        if self.known is not None:
            call_us["library"] = self.known.call_us
        for name in self._timed_sides():
            # Mapping takes milliseconds, so it is done before the turn, for all calls that a window may have.
            self._prepare(name, calls, room=self.most)
            if not self.windows.timing:
                self._timed_window(name, self._draw(calls), "warm", queued=False)
            window = self._timed_window(name, self._draw(calls), "warm", queued=False)
            call_us[name] = window.done_us / calls
        return call_us

    @trace.span("judge kept calls")
    def verify_kept(self) -> None:
        """Judge the outputs that were kept."""
        waiting, self.kept.waiting, self.kept.offered = self.kept.waiting, [], 0
        for call, secured in waiting:
            verdict = self.checks.judged(call, secured)
            if verdict is PASSED or not self._library_fails_too(call):
                self.kept.fail_unless_passed(verdict)
            self.kept.verified += 1

    @trace.span("judge a suspect")
    def verify_suspect(self) -> None:
        """Judge the timed call that stands out among those that were compared."""
        suspect = self.compared.suspect()
        if suspect is not None:
            sample = suspect.sample
            verdict = self.judge.judge_suspect(suspect.call, suspect.secured, sample.name, sample.logical)
            self.kept.verified += 1
            self.kept.fail_unless_passed(verdict)

    # --- windows ---

    def _draw(self, calls: int) -> WindowInputs:
        return self.layout.draw(calls, self.generator)

    def _prepare(self, name: str, calls: int, room: int = 0) -> None:
        """Build the arguments on the worker's side; the places of a case never change, only what is in them.

        ``room``: calls that the buffer is to hold, if more.
        """
        if self._prepared.get(name, 0) >= calls:
            return
        self.windows.settle(name)
        side, stride = self.windows.sides[name], self.layout.stride
        side.ensure_buffer(stride * max(calls, room))
        self.windows.outputs[name].make_room(stride * calls)
        request = self.judge.requests.prepare(self.layout.first, name in self.references, calls, stride)
        where = Where(Purpose.PREPARING, self.case.overload, self.case.id)
        side.handle.request(request, self.budget.window_deadline_s, where)
        self._prepared[name] = calls

    def _run(self, plan: OverheadWindow | TimedWindow, meanwhile: Callable[[], None] = lambda: None) -> Window:
        where = Where(Purpose.TIMING, self.case.overload, self.case.id)
        if self.windows.turns.now() > self.deadline:
            candidate = self.windows.candidate
            candidate.kill(EndCause.DEADLINE)
            raise WorkerFailed(candidate, Outcome.TIMEOUT, Deadline(Limit.EVALUATION), where)
        return self.windows.run(plan, where, meanwhile)

    def _timed_window(
        self, name: str, inputs: WindowInputs, kind: str, queued: bool, meanwhile: Callable[[], None] = lambda: None
    ) -> Window:
        """A window of one side; a choice of the candidate's outputs is kept. Known windows of the library are not run
        again."""
        if name == "library" and self.known is not None and kind in ("window", "single"):
            return self._replay(self.known, kind)
        window = self._run(TimedWindow(name, inputs, queued, kind), meanwhile)
        if name == "candidate":
            self.timed += window.calls
            self.checks.choose_kept(self.kept, inputs, window.calls)
            if not self.windows.timing:
                self.verify_kept()
        if kind in ("window", "single"):
            self.checks.compare(self.compared, name, inputs, self.windows.outputs)
        self.ran.append(window)
        return window

    def _replay(self, known: LibraryTimes, kind: str) -> Window:
        number = self._replayed.get(kind, 0)
        self._replayed[kind] = number + 1
        return known.replayed(kind, number, self.windows.overhead_us)

    def _timed_sides(self) -> list[str]:
        return [name for name in self.windows.sides if self.known is None or name == "candidate"]

    # --- steps ---

    def _measure_overhead(self) -> None:
        """Find what a window without calls takes: the library's, for both sides."""
        windows = [self._run(OverheadWindow("library", self.queued)) for _ in range(OVERHEAD_WINDOWS)]
        if self.queued and disagree(windows):
            windows += [self._run(OverheadWindow("library", self.queued)) for _ in range(MORE_OVERHEAD_WINDOWS)]
        self.ran += windows
        found = overhead(windows, self.queued)
        if not self.cuda:
            # Cores are shared with whatever else this machine does, so the shortest ever is the true one.
            page = self.windows.turns.page
            found = min(found, page.empty_us or found)
            page.empty_us = found
        self.windows.overhead_us = found

    def _known_calls(self) -> int:
        """As many calls as the known windows have; where the candidate cannot queue them, nothing is known."""
        known = self.known
        if known is None:
            return 0
        self.queued = known.queued
        if self.queued and not self._can_queue(known.calls):
            self.known, self.queued = None, False
        return known.calls

    def _choose_calls(self, call_us: dict[str, float]) -> int:
        """How many calls fill a window, and whether they can be queued."""
        most, window_us = self.most, self.budget.window_us
        calls = max(1, min(most, round(window_us / max(*call_us.values(), LEAST_CALL_US))))
        if self.queued:
            self.queued = self._can_queue(calls)
        if self.queued and calls < most:
            # Direct calls include launches; a queued one may be far shorter.
            window = self._timed_window("library", self._draw(calls), "window", self.queued)
            queued_us = max(per_call(window, self.windows.overhead_us), LEAST_QUEUED_CALL_US)
            wanted = min(most, round(window_us / queued_us))
            if wanted > calls:
                calls = wanted
                self.queued = self._can_queue(calls)
        return calls

    def _can_queue(self, calls: int) -> bool:
        """Whether both sides can queue this many calls without waiting for the device."""
        inputs = self._draw(calls)
        for name in self._timed_sides():
            self._prepare(name, calls)
            if not self.windows.can_queue(name, inputs):
                return False
        return True

    def _pairs(self, calls: int, started: float) -> list[Pair]:
        """Alternating windows in ABBA order, both of a pair on the same values, until the interval is narrow."""
        for name in self._timed_sides():
            self._prepare(name, calls)
        pairs: list[Pair] = []
        late = False
        ahead: list[WindowInputs] = []
        while not enough(pairs, self.windows.overhead_us, self._noise(pairs), late):
            first, second = ("library", "candidate") if len(pairs) % 2 == 0 else ("candidate", "library")
            inputs = ahead.pop() if ahead else self._draw(calls)
            got = {first: self._timed_window(first, inputs, "window", self.queued)}
            # Drawing takes as long as queueing, so the next pair's values are drawn beside it.
            following = self.queued and is_followed(len(pairs) + 1)
            draw = (lambda: ahead.append(self._draw(calls))) if following else (lambda: None)
            got[second] = self._timed_window(second, inputs, "window", self.queued, draw)
            if self.known is not None:
                self._compare_with_library(inputs, len(pairs))
            pairs.append((got["library"], got["candidate"]))
            if self.choose.random() < PROBE_PROBABILITY:
                self.probe(calls, pairs)
            late = time.monotonic() - started > self.budget.case_s
        self.probe(calls, pairs)
        for _ in range(MORE_PROBES):
            if self.probing is None or self.probing.is_enough(self.case):
                break
            self.probe(calls, pairs)
        return pairs

    def _compare_with_library(self, inputs: WindowInputs, pair: int) -> None:
        """Beside known times the library runs some windows all the same, so that calls can be compared with its own."""
        if pair % MIN_PAIRS == 0:
            wanted = math.ceil(COMPARED_CALLS / len(inputs.rows))
            self._windows_compared = {*self.choose.sample(range(MIN_PAIRS), min(wanted, MIN_PAIRS))}
        if pair % MIN_PAIRS in self._windows_compared:
            self._prepare("library", len(inputs.rows))
            self._run(TimedWindow("library", inputs, False, "compared"))
            self.checks.compare(self.compared, "library", inputs, self.windows.outputs)

    def _noise(self, pairs: list[Pair]) -> float:
        """Half-width of the null test's noise in the range of the library's time."""
        if not pairs:
            return 0.0
        library_us, _ = medians(pairs, self.windows.overhead_us)
        return null_noise(DeviceKind(self.judge.device.type), library_us, self.queued, self.noise)[0]

    def singles(self, pairs: list[Pair]) -> tuple[float, float] | None:
        """Least times of one call handed out alone, (library, candidate) in µs, if the candidate's stands out."""
        if pairs[0][0].calls == 1:
            # Windows of one call are single calls.
            return None
        times: dict[str, list[float]] = {name: [] for name in self.windows.sides}
        found: tuple[float, float] | None = None
        for step in range(SINGLE_STEPS):
            inputs = self._draw(1)
            for name in ("library", "candidate") if step % 2 else ("candidate", "library"):
                window = self._timed_window(name, inputs, "single", self.queued)
                times[name].append(window.done_us - self.windows.overhead_us)
            found = single_calls(times, pairs, self.windows.overhead_us, DeviceKind(self.judge.device.type))
            if found is None and step + 1 >= LEAST_SINGLE_STEPS:
                # More of them make its least time shorter, if anything.
                break
        return found

    # --- probes ---

    def probe(self, calls: int, pairs: list[Pair]) -> None:
        """An unscored window whose inputs are replaced as soon as the worker says that its calls are done.

        The stub copies outputs after the mark and shares a process with the candidate. A candidate that computes only
        then, straight into the output's place, takes no longer than an honest copy: here it would compute from replaced
        inputs. On a GPU such a window lacks its kernels. Where possible the values are drawn from another value set, so
        that a candidate which recognises timed windows cannot be careless in them.
        """
        if is_slow(pairs) or (self.cuda and not self.others):
            return
        if any(spec.shares for spec in self.layout.first.specs):
            return
        layout = self.layout
        if self.others:
            layout = WindowLayout.of(self.judge, self.choose.choice(self.others), self.generator)
        inputs = layout.draw(calls, self.generator)
        replacement = None if self.cuda else self._draw(calls)
        with contextlib.nullcontext() if self.probing is None else self.probing.sampled(self.case, calls) as sampler:
            self.windows.sampler = sampler
            try:
                self._run(ProbeWindow("candidate", inputs, self.queued, replacement=replacement))
            finally:
                self.windows.sampler = None
        # Judged here and not kept as well: the judge of a random operator may see no call twice.
        for i in self.choose.sample(range(calls), 1 if self.cuda else min(calls, PROBE_CALLS)):
            call, secured = self.checks.secured_call(inputs, i)
            if self.cuda:
                self.kept.waiting.append((call, secured))
                continue
            verdict = self.judge.judge(call, secured)
            if verdict is not PASSED and not self._library_fails_too(call):
                self.kept.fail_unless_passed(verdict, Purpose.PROBE)

    def _library_fails_too(self, call: PlacedCall) -> bool:
        """Whether the values may be to blame: they are meant for smaller sizes, and a longer sum may overflow."""
        if call.inputs.bound.case == self.case:
            return False
        self.windows.settle("library")
        asked, library = "library" in self.references, self.windows.sides["library"]
        limit_s = self.budget.window_deadline_s
        return self.judge.check(library, self.case, call, self.generator, limit_s, asked) is not PASSED
