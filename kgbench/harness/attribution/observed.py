"""Whose work it was: what a candidate was seen to do, held against the policy. Referee side.

Each first call of a case is watched for operators, which costs a millisecond. What is suspicious there is watched again
once the candidate is correct and has been timed, on a GPU together with the bench cases and with the device's kernels:
only what is seen then, in calls on new values that are judged like any other, decides. What a worker says about itself
is not proof of innocence: on a GPU its kernels must account for the time that the referee measured.
"""

from __future__ import annotations

import contextlib
import functools
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from kgbench.core.details.failures import Evidence
from kgbench.core.kinds import Phase
from kgbench.core.types import Timing
from kgbench.harness.attribution import built, libraries, text_pages
from kgbench.harness.attribution.account import Observation, watching
from kgbench.harness.attribution.code import Code, is_others
from kgbench.harness.attribution.copies import library_of
from kgbench.harness.attribution.findings import Findings
from kgbench.harness.attribution.same_time import unlike, unlike_on_host, window_calls
from kgbench.harness.attribution.samples import CALL_RATE_HZ, RATE_HZ, Mappings, Sampler, can_sample, mappings
from kgbench.harness.attribution.timed_code import TimedCode
from kgbench.harness.attribution.whose_code import INTERPRETED_SHARE, STRANGE_SHARE, strangers, unwatched
from kgbench.harness.clock.bench import Bench
from kgbench.harness.clock.outputs import BenchFailed
from kgbench.harness.machine import processes
from kgbench.harness.machine.languages import uses_of
from kgbench.harness.workers.started import WorkerSide
from kgbench.policy.own_kernels import OwnKernels
from kgbench.policy.tables import LIBRARIES
from kgbench.problem.cases import Case
from kgbench.problem.model import Problem

OTHERS_SHARE: Final = 0.005
"""Share of the watched time above which a candidate's helper processes count as doing its work; most of that time is
spent drawing and judging, and idle helpers stay far below."""
OTHERS_US: Final = 300.0
"""Time in µs of CPU above which a candidate's helper processes count as doing its work."""
SUSPECTS: Final = 4
"""Check cases per overload, out of those whose first call did something that is not allowed, that are watched again."""
DRAWN: Final = 2
"""Check cases per overload, drawn from all, that are watched again; a candidate does not know which."""
TRIES: Final = 3
"""Watched windows per timed case while its time is not the one that was scored, all but the first while everybody else
stands still; and repetitions of watched calls in which a library's code must run each time."""
SAMPLED_WINDOWS: Final = 6
"""Windows of a timed case at most that are sampled on the CPU."""
LEAST_FOUND_RUNNING: Final = 3
"""Samples in a library of the host's in watched calls, some 0.1 ms, from which it did their work: nothing else there
needs one."""
KEPT: Final = 12
"""Pieces of evidence of each kind that are kept of what is allowed."""
KEPT_REFUSED: Final = 50
"""Pieces of evidence of each kind that are kept of what is not allowed."""
MOST_NAMES: Final = 5000
"""Different pieces of evidence on one candidate at most; beyond it only what is known already is counted."""


class Attribution:
    """What is known about whose work one candidate's is."""

    def __init__(self, problem: Problem, cuda: bool, source: str) -> None:
        self.own = OwnKernels(source)
        self.findings = Findings(problem, self.own)
        self.cuda = cuda
        self.evidence: dict[tuple[str, str], Evidence] = {}
        self.suspects: dict[str, list[Case]] = {}
        """Cases whose first call did something that is not allowed, by overload."""
        self.mapped: frozenset[str] = frozenset()
        self.known: frozenset[int] = frozenset()
        """Processes from before the candidate was loaded."""
        self.programs: frozenset[str] = frozenset()
        """Executable files that those processes had mapped."""
        self.is_for_triton = not cuda and "triton" in uses_of(source).mentioned
        """Whether Triton's interpreter may run the candidate, by its text, which is why it is not timed either."""
        self.interpreted = False
        """True where Triton's interpreter ran the candidate, which its process alone may not say."""
        self.lost = False
        """True where the observer saw nothing in calls that decide."""
        self.found: Mapping[str, int] = {}
        """Samples of the call that is watched just now, by file."""
        self.in_calls: Counter[str] = Counter()
        """Samples of all calls that were watched one by one, by file."""
        self.timed_code: dict[str, Code] = {}
        """What ran in windows that nobody in the process can tell from timed ones, by case."""
        self.can_sample = False
        """Its threads could be sampled before the candidate was loaded: if they cannot be later, it is its doing."""
        self.mappings: Mappings = ()
        """What the worker had mapped to run before the candidate was loaded."""

    def before_import(self, supervisor: int) -> None:
        """Record a worker's processes and libraries before the candidate is loaded."""
        self.mapped, self.known = libraries.mapped(supervisor), frozenset(processes.descendants(supervisor))
        self.programs = frozenset().union(*map(text_pages.programs, self.known))
        self.mappings = sorted(mapping for pid in self.known for mapping in mappings(pid))
        self.can_sample = not self.cuda and can_sample(supervisor)
        self.own.is_built = functools.partial(built.is_built, supervisor)

    @contextlib.contextmanager
    def first_call(self, side: WorkerSide, case: Case) -> Iterator[None]:
        """Watch the first call of a case. What it did only raises suspicion, since it may have prepared for all later
        calls.
        """
        with watching(side, kernels=False, places=False) as seen:
            yield
        found = self.findings.judged(seen, label(case), host_counts=True)
        if seen.lost or not all(each.allowed for each in found):
            self.suspects.setdefault(case.overload, []).append(case)
        for each in found:
            if each.allowed and not self.cuda:
                # On a GPU what decides is watched anyhow, with the device's time.
                self.add(each)

    def timed_case(self, bench: Bench, side: WorkerSide, case: Case, timing: Timing) -> str:
        """Watch a window of a case that was timed. Raises WorkerFailed.

        Returns:
            How its time differs from what was scored; empty where it does not.
        """
        difference, calls = "", window_calls(timing)
        for attempt in range(TRIES):
            # Others' work makes kernels look slow, so who looks slow beside them is watched alone.
            with bench.device.alone() if attempt else contextlib.nullcontext(), watching(side, self.cuda) as seen:
                try:
                    with self._code_of(side, calls) as (sampler, watched):
                        bench.run_once(case, calls, sampler)
                except BenchFailed as failure:
                    self.add(refusal(failure.verdict.reason))
                    return ""
            self.take(seen, case, does_work=True)
            for each in self.findings.moved(seen, label(case)):
                self.add(each)
            difference = unlike(seen, calls, timing) if self.cuda else unlike_on_host(seen, calls, timing)
            if not difference:
                if not self.cuda:
                    self._sampled_windows(bench, side, case, calls, seen, watched)
                break
        return difference

    def add_other_time(self, case: Case, difference: str) -> None:
        """Enter that a window took another time when it was watched, as ``timed_case`` says it."""
        self.add(Evidence("time", "behaves differently when observed", label(case), 1, None, False, difference))

    def probing(self, side: WorkerSide) -> TimedCode | None:
        """What samples windows in the midst of timed ones; None where times are a device's."""
        return None if self.cuda else TimedCode(side, self.mappings, self.timed_code)

    @contextlib.contextmanager
    def _code_of(self, side: WorkerSide, calls: int, rate_hz: int = RATE_HZ) -> Iterator[tuple[Sampler | None, Code]]:
        """What samples a window on the CPU, where this machine gives samples, and what takes them."""
        sampler, code = None, Code()
        if not self.cuda:
            with contextlib.suppress(OSError):
                sampler = Sampler(side.handle.supervisor_pid, self.mappings, rate_hz)
        if sampler is None:
            yield None, code
            return
        with contextlib.closing(sampler):
            yield sampler, code
            code.add(sampler.found(calls))

    def _sampled_windows(
        self, bench: Bench, side: WorkerSide, case: Case, calls: int, seen: Observation, watched: Code
    ) -> None:
        """Windows that nobody in the candidate's process watches: in whose code is it found? Raises WorkerFailed.

        Those in the midst of timed ones say it, where they were long enough.
        """
        code = self.timed_code.setdefault(label(case), Code())
        try:
            for _ in range(SAMPLED_WINDOWS):
                if code.is_enough:
                    break
                with contextlib.closing(Sampler(side.handle.supervisor_pid, self.mappings)) as sampler:
                    bench.run_once(case, calls, sampler)
                    code.add(sampler.found(calls))
            # The observer's work is in the one, and values that take longer may be in the other.
            took_us = min(code.call_us * calls, seen.cpu_us)
            found = strangers(code.files, seen, took_us, STRANGE_SHARE, label(case))
            found += unwatched(code, watched, label(case))
            for each in (*found, *self.findings.moved_on_host(code.files, label(case))):
                self.add(each)
            self._copied(side, code, label(case))
        except BenchFailed as failure:
            self.add(refusal(failure.verdict.reason))
        except OSError as error:
            code.failure = str(error)
        if code.failure and self.can_sample:
            self.add(refusal(f"its threads could not be sampled any more: {code.failure}"))
        elif code.failure:
            self.add(Evidence("code", "not sampled", why=f"this machine gives no samples: {code.failure}"))

    def _copied(self, side: WorkerSide, code: Code, where: str) -> None:
        """Whether what is taken for the candidate's own code is a library's under another name, or none."""
        if self.interpreted or code.own_share < STRANGE_SHARE:
            return
        pids = processes.descendants(side.handle.supervisor_pid)[:1]
        path = library_of(code.spots, [(pid, path) for pid in pids for path in self.programs if is_others(path)])
        if path:
            why = f"machine code of {Path(path).name} ran in memory or a file of its own"
            self.add(Evidence("code", f"a copy of {Path(path).name}", where, 1, code.own_share, False, why))

    @contextlib.contextmanager
    def sampled(self, side: WorkerSide) -> Iterator[None]:
        """A watched call on the CPU is sampled."""
        # What Triton interprets takes so long that its samples would not all fit.
        rate_hz = RATE_HZ if self.is_for_triton else CALL_RATE_HZ
        with self._code_of(side, 1, rate_hz) as (sampler, code):
            if sampler is not None:
                sampler.start()
            yield
            if sampler is not None:
                sampler.stop()
        self.found = code.files
        self.in_calls.update(self.found)

    @contextlib.contextmanager
    def others(self, supervisor: int) -> Iterator[None]:
        """Measure from outside what the candidate's other processes do inside the block."""
        pids = set(processes.descendants(supervisor)) - self.known
        before_us, begun_ns = processes.worked_us(pids), time.perf_counter_ns()
        yield
        worked_us = processes.worked_us(pids) - before_us
        share = worked_us / ((time.perf_counter_ns() - begun_ns) / 1e3)
        if worked_us >= OTHERS_US and share >= OTHERS_SHARE:
            why = f"they worked for {worked_us / 1e3:.1f} ms while calls were watched, where no operator is seen"
            self.add(Evidence("process", "others of its own", "", len(pids), min(share, 1.0), False, why))

    def libraries(self, supervisor: int, watch: Callable[[], None]) -> None:
        """CPU only: watch calls again where a library's code has run before, to see whether it runs in every call.

        Triton's interpreter multiplies by numpy, and its time says nothing.
        """
        if self.cuda or self.interpreted:
            return
        used = libraries.in_use(supervisor, self.programs)
        for _ in range(TRIES):
            if not used and not self._found_running(1):
                return
            for pid in processes.descendants(supervisor):
                text_pages.forget(pid)
            watch()
            # Another process that ends just now can mark pages, too, but hardly each time.
            used &= frozenset().union(*map(text_pages.ran, processes.descendants(supervisor)))
        # The process itself can take marks of its pages back; samples it cannot.
        used |= self._found_running(LEAST_FOUND_RUNNING)
        for path in used:
            why = "its code ran in the calls that were watched"
            name = Path(path).name
            self.evidence["library", name] = Evidence("library", name, "", 1, None, False, why)

    def _found_running(self, least: int) -> frozenset[str]:
        """Libraries of the host's in which at least so many samples of watched calls lie."""
        found = (path for path, count in self.in_calls.items() if count >= least)
        return frozenset(path for path in found if LIBRARIES.search(Path(path).name))

    def blind(self, works: bool) -> Evidence:
        """Whether nothing was seen in calls that decide."""
        if works:
            return refusal("the observer was switched off during its calls")
        return Evidence("observer", "not available", why="PyTorch's tracer sees nothing on this machine")

    def take(self, seen: Observation, case: Case, does_work: bool) -> None:
        """Add what a watched call did."""
        self.lost |= seen.lost
        if seen.impossible:
            self.add(Evidence("observer", "an account that cannot be", label(case), 1, None, False, seen.impossible))
        self.interpreted |= self.is_for_triton and bool(seen.launched)
        found = self.findings.judged(seen, label(case), host_counts=not self.cuda)
        if self.cuda and does_work:
            found += self.findings.idle(seen, label(case))
        sampled, self.found = self.found, {}
        if self.interpreted:
            # What numpy does within a launch is the candidate's.
            known = replace(seen, host_us=seen.host_us + seen.launched_us)
            found += strangers(sampled, known, seen.cpu_us, INTERPRETED_SHARE, label(case))
        for each in found:
            self.add(each)

    def add(self, new: Evidence) -> None:
        """Add evidence: of each name the worst is kept, and occurrences are counted."""
        old = self.evidence.get((new.kind, new.name))
        if old is None:
            if len(self.evidence) < MOST_NAMES or (not new.allowed and self.refused is None):
                self.evidence[new.kind, new.name] = new
            return
        worse = max(old, new, key=lambda each: (not each.allowed, each.share or 0.0))
        self.evidence[new.kind, new.name] = replace(worse, count=old.count + new.count)

    def add_libraries(self, supervisor: int) -> None:
        """Add libraries that were mapped since the candidate was loaded and could do the work: a hint."""
        for name in sorted(libraries.mapped(supervisor) - self.mapped):
            if LIBRARIES.search(name) and ("library", name) not in self.evidence:
                self.add(Evidence("library", name, count=1, why="a hint: it may be mapped without being used"))

    @property
    def refused(self) -> Evidence | None:
        """The forbidden thing that the candidate did most."""
        bad = [each for each in self.evidence.values() if not each.allowed]
        return max(bad, key=lambda each: (each.kind == "operator", each.share or 0.0), default=None)

    def kept(self) -> tuple[Evidence, ...]:
        """The evidence to store: the most frequent forbidden things, then the most frequent allowed ones."""
        found = sorted(self.evidence.values(), key=lambda each: (each.allowed, each.kind, -(each.share or 0.0)))
        by_kind: dict[tuple[str, bool], int] = {}
        chosen = []
        for each in found:
            key = each.kind, each.allowed
            by_kind[key] = by_kind.get(key, 0) + 1
            if by_kind[key] <= (KEPT if each.allowed else KEPT_REFUSED):
                chosen.append(replace(each, share=None if each.share is None else round(each.share, 4)))
        return tuple(chosen)


def drawn(cases: Sequence[Case], suspects: Sequence[Case], choose: random.Random, bench: bool) -> list[Case]:
    """Cases that are watched besides the timed ones: suspicious ones and randomly drawn others; with ``bench`` the
    timed ones too.
    """
    others = [case for case in cases if case.phase != Phase.BENCH]
    found = [
        *choose.sample(suspects, min(SUSPECTS, len(suspects))),
        *([case for case in cases if case.phase == Phase.BENCH] if bench else []),
        *choose.sample(others, min(DRAWN, len(others))),
    ]
    return list({case.id: case for case in found}.values())


def label(case: Case) -> str:
    return f"{case.overload} {case.id}".strip()


def refusal(reason: str) -> Evidence:
    """What a candidate did that fails only when it is watched."""
    return Evidence("observer", "behaves differently when observed", allowed=False, why=reason)
