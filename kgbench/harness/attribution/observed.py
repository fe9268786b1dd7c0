"""Whose work it was: what a candidate was seen to do, held against the policy. Referee side.

Each first call of a case is watched for operators, which costs a millisecond. What is suspicious there is watched again
once the candidate is right and has been timed, on a GPU together with the bench cases and with the device's kernels:
only what is seen then, in calls on new values that are judged like any other, decides. What a worker says about itself
is not proof of innocence: on a GPU its kernels must account for the time that the referee measured.
"""

from __future__ import annotations

import contextlib
import math
import random
import re
import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kgbench.core.types import Evidence, Timing
from kgbench.harness.attribution import text_pages
from kgbench.harness.clock.bench import Bench
from kgbench.harness.clock.outputs import BenchFailed
from kgbench.harness.machine import processes
from kgbench.harness.workers.handle import WorkerFailed
from kgbench.harness.workers.started import Side, Worker
from kgbench.policy.rules import (
    GROUPS,
    HARMLESS_KERNELS,
    LIBRARIES,
    LIBRARY_MARKS,
    MOVING_KERNELS,
    WORK,
    allowed,
    family,
    group_of,
    module_rule,
    own_operators,
    whose_kernel,
)
from kgbench.problem.cases import Case
from kgbench.problem.model import Problem

LEAST_SHARE: Final = 0.01
"""Of the device's time: what takes less is no part of the work."""
HOST_SHARE: Final = 0.2
HOST_US: Final = 50.0
"""Of a call's time on the host, and per call: a sum over a shape is nobody's kernel."""
HOST_DIFFERENCE: Final = 3.0
HOST_SLACK_US: Final = 3000.0
"""On the CPU a watched window may take so many times what it took when it was timed, and this more. The tracer costs a
microsecond an operator."""
OTHERS_SHARE: Final = 0.005
OTHERS_US: Final = 300.0
"""Of the time in which calls are watched, most of which is spent drawing and judging, and at least: what other
processes of a candidate's work. Whoever has some that only wait does not come near."""
DIFFERENCE: Final = 1.15
"""Device times with and without an observer may differ by this factor, and by what follows."""
SLACK_US: Final = 3.0
GAP_US: Final = 6.0
"""Between two things that a device does one after the other, at most: a launch, a copy, streams that are joined."""
HOST_NAMES: Final = {
    "add.accumulate": "cumsum", "add.reduce": "sum", "arccosh": "acosh", "arcsin": "asin", "argsort": "sort",
    "bitwise_invert": "bitwise_not", "concatenate": "cat", "divide": "div", "equal": "eq", "greater": "gt",
    "invert": "bitwise_not", "less_equal": "le", "maximum.reduce": "amax", "min": "amin", "minimum.reduce": "amin",
    "multiply": "mul", "negative": "neg", "power": "pow", "sign": "sgn", "subtract": "sub", "take": "index_select",
    "take_along_axis": "gather", "true_divide": "div",
}  # fmt: skip
"""Functions of numpy's that have other names than the operator that they are."""
SUSPECTS: Final = 4
"""Of an overload's check cases in which something was seen, so many are watched again."""
DRAWN: Final = 2
"""So many further check cases of an overload, nobody knows which."""
MOST_CALLS: Final = 32
TRIES: Final = 3
"""Of a case whose device time is another than that which was scored; all but the first while everybody else stands
still."""
KEPT: Final = 12
"""Pieces of evidence that are kept of what is allowed, by kind."""
WAIT_S: Final = 60.0


@dataclass
class Seen:
    """A worker's own account of the calls in which it was watched."""

    calls: int = 0
    lost: bool = True
    """The observer was switched off meanwhile, or does not work."""
    wall_us: float = 0.0
    cpu_us: float = 0.0
    """In which the worker's threads were at work, summed: others' programs do not make it longer."""
    busy_us: float = 0.0
    """In which the device did anything."""
    records: int = 0
    operators: dict[str, tuple[int, float, float]] = field(default_factory=dict)
    """By name: count, µs on the host, on the device."""
    kernels: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    """By name and operator that launched it: count, µs."""
    launched: dict[str, int] = field(default_factory=dict)
    host: dict[str, int] = field(default_factory=dict)

    @classmethod
    def from_reply(cls, reply: Mapping[str, Any]) -> Seen:
        """From an answer that may be anything; what has another form than an honest one is as good as none."""
        try:
            return cls(
                _count(reply["calls"]),
                reply["lost"] is not False,
                _time(reply["wall_us"]),
                _time(reply["cpu_us"]),
                _time(reply["busy_us"]),
                _count(reply["records"]),
                {_text(name): (_count(n), _time(host), _time(device)) for name, n, host, device in reply["operators"]},
                {(_text(name), _text(by)): (_count(n), _time(us)) for name, by, n, us in reply["kernels"]},
                {_text(name): _count(n) for name, n in reply["launched"].items()},
                {_text(name): _count(n) for name, n in reply["host"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            return cls()


@contextlib.contextmanager
def watching(side: Side, kernels: bool) -> Iterator[Seen]:
    """Calls inside the block are watched; afterwards the account is filled in. Raises WorkerFailed."""
    seen = Seen()
    side.handle.request({"op": "observe", "kernels": kernels, "mark": secrets.token_hex(8)}, WAIT_S, "observing")
    yield seen
    told = Seen.from_reply(side.handle.request({"op": "observed"}, WAIT_S, "observing"))
    seen.__dict__.update(told.__dict__)


class Attribution:
    """What is known of one candidate."""

    def __init__(self, problem: Problem, cuda: bool) -> None:
        self.problem = problem
        self.cuda = cuda
        self.evidence: dict[tuple[str, str], Evidence] = {}
        self.suspects: dict[str, list[Case]] = {}
        """By overload, cases whose first call did something that is not allowed."""
        self.mapped: frozenset[str] = frozenset()
        self.known: frozenset[int] = frozenset()
        """Processes from before the candidate was loaded."""
        self.programs: frozenset[str] = frozenset()
        """What these had mapped to run."""
        self.interpreted = False
        """Triton's interpreter was at work."""
        self.lost = False
        """In calls that decide, the observer saw nothing."""

    def before_import(self, keeper: int) -> None:
        """Note what a worker is like that has not seen its candidate."""
        self.mapped, self.known = mapped(keeper), frozenset(processes.descendants(keeper))
        self.programs = frozenset().union(*map(text_pages.programs, self.known))

    @contextlib.contextmanager
    def first_call(self, side: Side, case: Case) -> Iterator[None]:
        """The first call of a case: what it did is suspicion, since it may have prepared for all later ones."""
        with watching(side, kernels=False) as seen:
            yield
        found = self.judged(seen, label(case), host_counts=True)
        if seen.lost or not all(each.allowed for each in found):
            self.suspects.setdefault(case.overload, []).append(case)
        for each in found:
            if each.allowed and not self.cuda:
                # On a GPU what decides is watched anyhow, with the device's time.
                self.add(each)

    def timed_case(self, bench: Bench, side: Side, case: Case, timing: Timing) -> None:
        """Watch a window of a case that was timed. Raises WorkerFailed."""
        difference, calls = "", window_calls(timing)
        for attempt in range(TRIES):
            # Others' work makes kernels look slow, so who looks slow beside them is watched alone.
            with bench.device.alone() if attempt else contextlib.nullcontext(), watching(side, self.cuda) as seen:
                try:
                    bench.run_once(case, calls)
                except BenchFailed as failure:
                    return self.add(refusal(failure.verdict.reason))
            self.take(seen, case, does_work=True)
            for each in self._moved(seen, label(case)):
                self.add(each)
            difference = unlike(seen, calls, timing) if self.cuda else unlike_on_host(seen, calls, timing)
            if not difference:
                return None
        return self.add(Evidence("time", "behaves differently when observed", label(case), 1, None, False, difference))

    @contextlib.contextmanager
    def others(self, keeper: int) -> Iterator[None]:
        """What other processes of the candidate's do inside the block is seen from outside."""
        pids = set(processes.descendants(keeper)) - self.known
        before_us, begun_ns = processes.worked_us(pids), time.perf_counter_ns()
        yield
        worked_us = processes.worked_us(pids) - before_us
        share = worked_us / ((time.perf_counter_ns() - begun_ns) / 1e3)
        if worked_us >= OTHERS_US and share >= OTHERS_SHARE:
            why = f"they worked for {worked_us / 1e3:.1f} ms while calls were watched, where no operator is seen"
            self.add(Evidence("process", "others of its own", "", len(pids), min(share, 1.0), False, why))

    def libraries(self, keeper: int, watch: Callable[[], None]) -> None:
        """On the CPU, what was watched is watched again where a library's code has been in use, to see whether it is.

        Triton's interpreter multiplies by numpy, and what it takes is no time.
        """
        used = frozenset() if self.cuda or self.interpreted else self._libraries_in_use(keeper)
        for _ in range(TRIES):
            if not used:
                return
            for pid in processes.descendants(keeper):
                text_pages.forget(pid)
            watch()
            # Another process that ends just now can mark pages, too, but hardly each time.
            used &= frozenset().union(*map(text_pages.ran, processes.descendants(keeper)))
        for path in used:
            why = "its code ran in the calls that were watched"
            name = Path(path).name
            self.evidence["library", name] = Evidence("library", name, "", 1, None, False, why)

    def _libraries_in_use(self, keeper: int) -> frozenset[str]:
        """Paths of libraries, by their names and, of what came with the candidate, by what is in them."""

        def is_one(pid: int, path: str) -> bool:
            if LIBRARIES.search(Path(path).name):
                return text_pages.touched(pid, path)
            if path in self.programs or not text_pages.touched(pid, path):
                return False
            return text_pages.holds(pid, path, LIBRARY_MARKS)

        pids = processes.descendants(keeper)
        return frozenset(path for pid in pids for path in text_pages.programs(pid) if is_one(pid, path))

    def blind(self, works: bool) -> Evidence:
        """Nothing was seen in calls that decide."""
        if works:
            return refusal("the observer was switched off during its calls")
        return Evidence("observer", "not available", why="PyTorch's tracer sees nothing on this machine")

    def take(self, seen: Seen, case: Case, does_work: bool) -> None:
        """Enter what a watched call did."""
        self.lost |= seen.lost
        self.interpreted |= not self.cuda and bool(seen.launched)
        found = self.judged(seen, label(case), host_counts=not self.cuda)
        if self.cuda and does_work:
            found += self._idle(seen, label(case))
        for each in found:
            self.add(each)

    def add(self, new: Evidence) -> None:
        """Keep the worst of each name, and count."""
        old = self.evidence.get((new.kind, new.name))
        if old is None:
            self.evidence[new.kind, new.name] = new
            return
        worse = max(old, new, key=lambda each: (not each.allowed, each.share or 0.0))
        self.evidence[new.kind, new.name] = replace(worse, count=old.count + new.count)

    def add_libraries(self, keeper: int) -> None:
        """What was mapped since the candidate was loaded, as far as it could do the work: a hint."""
        for name in sorted(mapped(keeper) - self.mapped):
            if LIBRARIES.search(name) and ("library", name) not in self.evidence:
                self.add(Evidence("library", name, count=1, why="a hint: it may be mapped without being used"))

    @property
    def refused(self) -> Evidence | None:
        """What the candidate may not do and did most of."""
        bad = [each for each in self.evidence.values() if not each.allowed]
        return max(bad, key=lambda each: (each.kind == "operator", each.share or 0.0), default=None)

    def kept(self) -> tuple[Evidence, ...]:
        """What is worth keeping: all that is not allowed, and the most of what is."""
        found = sorted(self.evidence.values(), key=lambda each: (each.allowed, each.kind, -(each.share or 0.0)))
        by_kind: dict[str, int] = {}
        chosen = []
        for each in found:
            by_kind[each.kind] = by_kind.get(each.kind, 0) + each.allowed
            if by_kind[each.kind] <= KEPT:
                chosen.append(replace(each, share=None if each.share is None else round(each.share, 4)))
        return tuple(chosen)

    # --- one account ---

    def judged(self, seen: Seen, where: str, host_counts: bool) -> list[Evidence]:
        """Everything in an account. ``host_counts``: an operator counts however little it does."""
        device_us = sum(us for _, us in seen.kernels.values())
        return [
            *self._operators(seen, where, device_us, host_counts),
            *(self._kernel(name, by, n, us / device_us if device_us else 0.0, where)
              for (name, by), (n, us) in seen.kernels.items()),
            *(self._package(module, n, where) for module, n in seen.launched.items() if module_rule(module)),
            *(self._host(name, n, where, host_counts) for name, n in seen.host.items()),
        ]  # fmt: skip

    def _host(self, name: str, count: int, where: str, counts: bool) -> Evidence:
        """A function of numpy's: a product, the problem's own operator, or a part of somebody's own work."""
        if why := module_rule(name):
            return Evidence("host", name, where, count, None, not counts, why)
        function = name.removeprefix("numpy.")
        own = {family(each) for each in own_operators(self.problem)}
        is_own = family(HOST_NAMES.get(function, function)) in own
        why = f"it is numpy's {self.problem.id}" if is_own else "on the host"
        return Evidence("host", name, where, count, None, not (counts and is_own), why)

    def _operators(self, seen: Seen, where: str, device_us: float, host_counts: bool) -> Iterator[Evidence]:
        verdicts = {name: allowed(self.problem, name) for name in seen.operators if _is_operator(name)}
        on_device = sum(seen.operators[name][2] for name, verdict in verdicts.items() if not verdict.allowed)
        for name, verdict in verdicts.items():
            count, host, device = seen.operators[name]
            share = device / device_us if device_us and (device or on_device) else host / max(seen.wall_us, 1e-3)
            # A view of the problem's own takes no time, and a copy of it does the work under the copy's name.
            counts = host_counts or _is_view(name) or device / max(device_us, 1e-3) >= LEAST_SHARE
            if not on_device and share >= HOST_SHARE and host >= HOST_US * max(seen.calls, 1):
                counts = True
            may = verdict.allowed or not counts
            why = verdict.why if verdict.allowed or not may else f"{verdict.why}; too little to count"
            yield Evidence("operator", name, where, count, min(share, 1.0), may, why if may else verdict.why)

    def _kernel(self, name: str, by: str, count: int, share: float, where: str) -> Evidence:
        whose = whose_kernel(name)
        if whose == "PyTorch's" and self._is_its_operators(name, by):
            whose = ""
        if not whose or share < LEAST_SHARE:
            return Evidence("kernel", name, where, count, share, True, f"{whose}; too little to count" if whose else "")
        return Evidence("kernel", name, where, count, share, False, f"by its name it is {whose}")

    def _is_its_operators(self, name: str, by: str) -> bool:
        """Whether a kernel of PyTorch's is judged with the operator that launched it, as far as its name fits.

        Around what an observer was told not to record, anybody can write the name of another operator.
        """
        if not by.startswith("aten::"):
            return HARMLESS_KERNELS.search(name) is not None
        return not allowed(self.problem, by).allowed or MOVING_KERNELS.search(name) is not None

    def _package(self, module: str, count: int, where: str) -> Evidence:
        return Evidence("package", module, where, count, None, False, module_rule(module))

    @property
    def _copies(self) -> bool:
        """The problem itself is a fill or a copy."""
        moving = {family(each) for group in WORK for each in GROUPS[group]}
        return any(family(own) in moving for own in own_operators(self.problem))

    def _moved(self, seen: Seen, where: str) -> list[Evidence]:
        """PyTorch alone did what a timed call does: by fills and copies, each of which may be had."""
        own = [name for name, by in seen.kernels if not by.startswith("aten::") and whose_kernel(name) != "PyTorch's"]
        if own or not seen.kernels or seen.lost or self._copies or self.problem.kind != "compute":
            return []
        words = "nothing but PyTorch's kernels ran on the device, and yet there was a result"
        count = sum(n for n, _ in seen.kernels.values())
        return [Evidence("kernel", "PyTorch's alone", where, count, 1.0, False, words)]

    def _idle(self, seen: Seen, where: str) -> list[Evidence]:
        """Results without kernels: somebody computed them on the host, or nobody may see who did."""
        names = [name for name, _ in seen.kernels]
        computed = [name for name in names if not name.startswith(("Memcpy", "Memset"))]
        if seen.lost or computed or self._copies or self.problem.kind != "compute":
            return []
        if names and not any("DtoH" in name for name in names):
            return []
        words = "nothing but copies ran on the device" if names else "nothing was seen to run on the device"
        return [Evidence("kernel", "none", where, 0, None, False, f"{words}, and yet there was a result")]


def unlike(seen: Seen, calls: int, timing: Timing) -> str:
    """How the device's time in a watched window of so many calls differs from what was scored; empty where it does
    not.
    """
    scored = window_us(timing)
    if scored is None or seen.lost:
        return ""
    busy, records = seen.busy_us / calls, seen.records / calls
    if busy > DIFFERENCE * scored + SLACK_US:
        return f"its device time is {busy:.1f} µs per call when observed, {scored:.1f} µs when timed"
    explained = busy if timing.queued else max(busy, seen.wall_us / calls)
    if scored > DIFFERENCE * explained + SLACK_US + GAP_US * (records + 1):
        return f"what was seen on the device accounts for {explained:.1f} of {scored:.1f} µs per call"
    return ""


def unlike_on_host(seen: Seen, calls: int, timing: Timing) -> str:
    """How much longer a watched window of so many calls took on the CPU than one that was scored; empty where it did
    not.
    """
    scored, took = window_us(timing), min(seen.wall_us, seen.cpu_us)
    if scored is None or seen.lost or took <= HOST_DIFFERENCE * scored * calls + HOST_SLACK_US:
        return ""
    return f"a call takes {took / calls:.1f} µs when observed, {scored:.1f} µs when timed"


def window_us(timing: Timing) -> float | None:
    """Device time of one candidate's call in windows of several, in µs, whatever was scored in the end."""
    mine = [window for window in timing.windows if window.side == "candidate" and window.kind == "window"]
    overheads = [window.done_us for window in timing.windows if window.kind == "overhead"]
    if not mine or not overheads:
        return None
    return statistics.median((window.done_us - min(overheads)) / window.calls for window in mine)


def window_calls(timing: Timing) -> int:
    """How many calls its windows had, as far as they are watched."""
    return min(MOST_CALLS, max(window.calls for window in timing.windows if window.kind == "window"))


def mapped(keeper: int) -> frozenset[str]:
    """File names of the shared libraries that a keeper's processes have in their memory, read from outside."""
    found = set()
    for pid in processes.descendants(keeper):
        with contextlib.suppress(OSError):
            maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
            found |= set(re.findall(r"/([^/\n]+\.so[^/\n]*)$", maps, re.MULTILINE))
    return frozenset(found)


def drawn(cases: Sequence[Case], suspects: Sequence[Case], choose: random.Random, bench: bool) -> list[Case]:
    """Which cases are watched beside the timed ones: suspicious and other ones by lot, and with ``bench`` those."""
    others = [case for case in cases if case.phase != "bench"]
    found = [
        *choose.sample(suspects, min(SUSPECTS, len(suspects))),
        *([case for case in cases if case.phase == "bench"] if bench else []),
        *choose.sample(others, min(DRAWN, len(others))),
    ]
    return list({case.id: case for case in found}.values())


def tracer_works(start: Callable[[], Worker], kernels: bool) -> bool:
    """Whether a fresh worker's observer sees anything. ``start`` starts one. Raises HarnessFailed."""
    worker = start()
    try:
        mark = {"op": "observe", "kernels": kernels, "mark": secrets.token_hex(8)}
        return worker.handle.request(mark, WAIT_S, "observing").get("works") is True
    except WorkerFailed:
        return False
    finally:
        worker.close()


def label(case: Case) -> str:
    return f"{case.overload} {case.id}".strip()


def refusal(reason: str) -> Evidence:
    """What a candidate did that fails only when it is watched."""
    return Evidence("observer", "behaves differently when observed", allowed=False, why=reason)


def _is_operator(name: str) -> bool:
    return re.fullmatch(r"\w+::\w+(?:\.\w+)?", name) is not None


def _is_view(name: str) -> bool:
    return group_of(name.removeprefix("aten::").partition(".")[0]) == "views"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value[:300]


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise TypeError
    return value


def _time(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise TypeError
    return float(value)
