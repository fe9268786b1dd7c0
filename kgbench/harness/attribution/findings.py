"""What in a worker's account the policy allows, and what it does not. Pure: no process is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from kgbench.core.details.failures import Evidence
from kgbench.core.kinds import Kind
from kgbench.harness.attribution.account import Observation
from kgbench.harness.attribution.code import owners
from kgbench.harness.attribution.whose_code import LEAST_SAMPLES
from kgbench.policy.own_kernels import OwnKernels
from kgbench.policy.rules import allowed, family, group_of, module_rule, own_operators, whose_kernel
from kgbench.policy.tables import GROUPS, HARMLESS_KERNELS, ITS_KERNELS, MOVING_KERNELS, WORK
from kgbench.problem.model import Problem

LEAST_SHARE: Final = 0.01
"""Share of the device's time below which an operator or a kernel is no part of the work."""
HOST_SHARE: Final = 0.2
"""Share of a call's time on the host from which an operator that ran there counts, given HOST_US."""
HOST_US: Final = 50.0
"""Time in µs per call on the host from which an operator that ran there counts: a sum over a shape takes less."""
ALONE_SHARE: Final = 0.42
"""Share of the samples on the CPU in PyTorch's code from which it did the work if nobody else did OTHERS_SHARE."""
OTHERS_SHARE: Final = 0.06
"""Share of the samples in the candidate's own code and in libraries that it may use from which that worked, too."""
PLACING: Final = ("metadata", "allocation", "views", "copies")
"""Groups of operators that copy outputs."""
HOST_NAMES: Final = {
    "add.accumulate": "cumsum", "add.reduce": "sum", "arccosh": "acosh", "arcsin": "asin", "argsort": "sort",
    "bitwise_invert": "bitwise_not", "concatenate": "cat", "divide": "div", "equal": "eq", "greater": "gt",
    "invert": "bitwise_not", "less_equal": "le", "maximum.reduce": "amax", "min": "amin", "minimum.reduce": "amin",
    "multiply": "mul", "negative": "neg", "power": "pow", "sign": "sgn", "subtract": "sub", "take": "index_select",
    "take_along_axis": "gather", "true_divide": "div",
}  # fmt: skip
"""Operators by the names of numpy's functions that do their work, where the two differ."""


class Findings:
    """Holds accounts of a problem's calls against the policy."""

    def __init__(self, problem: Problem, own: OwnKernels) -> None:
        self.problem = problem
        self.own = own

    def judged(self, seen: Observation, where: str, host_counts: bool) -> list[Evidence]:
        """Everything in an account. ``host_counts``: an operator counts however little it does."""
        device_us = sum(us for _, us in seen.kernels.values())
        self.own.add(seen.compiled)
        return [
            *self._operators(seen, where, device_us, host_counts),
            *(self._kernel(name, by, n, us / device_us if device_us else 0.0, where)
              for (name, by), (n, us) in seen.kernels.items()),
            *(self._package(module, n, where) for module, n in seen.launched.items() if module_rule(module)),
            *(self._host(name, n, where, host_counts) for name, n in seen.host.items()),
            *(each for name, n in seen.placing.items() if (each := self._placing(name, n, where)) is not None),
        ]  # fmt: skip

    def _placing(self, name: str, count: int, where: str) -> Evidence | None:
        """What ran while the harness copied outputs, as evidence; None for the harness's own copies."""
        why = "it ran after the calls, where only copies of the outputs run"
        if _is_operator(name):
            harmless = group_of(name.partition("::")[2].partition(".")[0]) in PLACING
            return None if harmless else Evidence("operator", name, where, count, None, False, why)
        if name.startswith(("Memcpy", "Memset")) or HARMLESS_KERNELS.search(name):
            return None
        return Evidence("kernel", name, where, count, None, False, why)

    def _host(self, name: str, count: int, where: str, counts: bool) -> Evidence:
        """A function of numpy's: a product, the problem's own operator, or a part of somebody's own work."""
        if why := module_rule(name):
            return Evidence("host", name, where, count, None, not counts, why)
        function = name.removeprefix("numpy.")
        own = {family(each) for each in own_operators(self.problem)}
        is_own = family(HOST_NAMES.get(function, function)) in own
        why = f"it is numpy's {self.problem.id}" if is_own else "on the host"
        return Evidence("host", name, where, count, None, not (counts and is_own), why)

    def _operators(self, seen: Observation, where: str, device_us: float, host_counts: bool) -> Iterator[Evidence]:
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
        why = f"by its name it is {whose}"
        if whose == "PyTorch's" and self._is_its_operators(name, by):
            whose = ""
        elif not whose and not self.own.has(name):
            # Operators that may be called launch nothing but PyTorch's kernels, which are known by name.
            whose, why = "somebody's", "its code is not known to come from what the candidate wrote and compiled"
        if not whose or share < LEAST_SHARE:
            return Evidence("kernel", name, where, count, share, True, f"{whose}; too little to count" if whose else "")
        return Evidence("kernel", name, where, count, share, False, why)

    def _is_its_operators(self, name: str, by: str) -> bool:
        """Whether a kernel of PyTorch belongs to the operator that launched it, as far as its name shows.

        A candidate can fake the operator's name around calls that the observer was told not to record.
        """
        if not by.startswith("aten::"):
            doing = {family(own) for own in own_operators(self.problem)} & ITS_KERNELS.keys()
            is_the_work = any(re.search(ITS_KERNELS[each], name) for each in doing)
            return not is_the_work and HARMLESS_KERNELS.search(name) is not None
        return not allowed(self.problem, by).allowed or MOVING_KERNELS.search(name) is not None

    def _package(self, module: str, count: int, where: str) -> Evidence:
        return Evidence("package", module, where, count, None, False, module_rule(module))

    @property
    def _copies(self) -> bool:
        """True where the problem itself is a fill or a copy."""
        moving = {family(each) for group in WORK for each in GROUPS[group]}
        return any(family(own) in moving for own in own_operators(self.problem))

    def moved(self, seen: Observation, where: str) -> list[Evidence]:
        """Evidence that PyTorch alone did the work of a timed call, by fills and copies that are each allowed."""
        own = [name for name, by in seen.kernels if not by.startswith("aten::") and whose_kernel(name) != "PyTorch's"]
        if own or not seen.kernels or seen.lost or self._copies or self.problem.kind != Kind.COMPUTE:
            return []
        words = "nothing but PyTorch's kernels ran on the device, and yet there was a result"
        count = sum(n for n, _ in seen.kernels.values())
        return [Evidence("kernel", "PyTorch's alone", where, count, 1.0, False, words)]

    def moved_on_host(self, found: Mapping[str, int], where: str) -> list[Evidence]:
        """The same of windows on the CPU, by the files that samples lie in: PyTorch's code ran, and Python's."""
        total = sum(found.values())
        if total < LEAST_SAMPLES or self._copies or self.problem.kind != Kind.COMPUTE:
            return []
        by_owner = owners(found)
        share = by_owner["PyTorch's"] / total
        rest = sum(count for owner, count in by_owner.items() if owner not in ("PyTorch's", "Python's", "the system's"))
        if share < ALONE_SHARE or rest >= OTHERS_SHARE * total:
            return []
        words = f"PyTorch's code ran for {share:.0%} of the time, which only helps, and yet there was a result"
        return [Evidence("code", "PyTorch's alone", where, 1, share, False, words)]

    def idle(self, seen: Observation, where: str) -> list[Evidence]:
        """Evidence that a result came without any kernel: it was computed on the host, or the kernel was hidden."""
        names = [name for name, _ in seen.kernels]
        computed = [name for name in names if not name.startswith(("Memcpy", "Memset"))]
        if seen.lost or computed or self._copies or self.problem.kind != Kind.COMPUTE:
            return []
        if names and not any("DtoH" in name for name in names):
            return []
        words = "nothing but copies ran on the device" if names else "nothing was seen to run on the device"
        return [Evidence("kernel", "none", where, 0, None, False, f"{words}, and yet there was a result")]


def _is_operator(name: str) -> bool:
    return re.fullmatch(r"\w+::\w+(?:\.\w+)?", name) is not None


def _is_view(name: str) -> bool:
    return group_of(name.removeprefix("aten::").partition(".")[0]) in ("views", "lazy bits")
