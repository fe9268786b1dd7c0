"""The in-process baseline judge: no trust split. ``naive.py`` starts it as a process."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, Final

import torch

from kgbench.baselines.registry import load_baseline
from kgbench.core.kinds import DeviceKind, Phase
from kgbench.harness.candidate.source import load_source
from kgbench.harness.verdict.inputs import make_inputs
from kgbench.harness.wire.device import GPU
from kgbench.problem.cases import bind, expand_cases
from kgbench.problem.registry import load_problem

REPETITIONS: Final = 20
"""Timed calls of each side."""
SEED: Final = 42
"""Seed of every input; as in many benchmarks it is known."""


def is_right(output: Any, expected: Any) -> bool:
    """Compares as others do."""
    return bool(torch.allclose(output, expected, rtol=1e-2, atol=1e-2))


def correct(entry: Any, library: Any, arguments: list[Any], reference_first: bool) -> bool:
    """One call of each on the same arguments, in one of the two orders."""
    if not reference_first:
        output = entry(*arguments)
        return is_right(output, library(*arguments))
    # What was copied goes back to the allocator.
    expected = library(*arguments).clone()
    return is_right(entry(*arguments), expected)


def elapsed_us(call: Any, arguments: list[Any], device_kind: DeviceKind) -> float:
    """The shortest of several times, by this process's own clock, in µs."""
    times = []
    for _ in range(REPETITIONS):
        if device_kind == DeviceKind.CUDA:
            GPU.wait()
            begin, end = GPU.events()
            begin.record()
            call(*arguments)
            end.record()
            GPU.wait()
            times.append(float(begin.elapsed_time(end)) * 1e3)
        else:
            begun = time.perf_counter()
            call(*arguments)
            times.append((time.perf_counter() - begun) * 1e6)
    return min(times)


def main(kernel: str, problem_path: str, device_kind: DeviceKind) -> None:
    """Judge one candidate by the first case that is timed on a CPU, and say so on stdout."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    overload = load_problem(Path(problem_path)).overloads[0]
    case = next(case for case in expand_cases(overload, DeviceKind.CPU, None, "") if case.phase == Phase.BENCH)
    text = Path(kernel).read_text(encoding="utf-8")
    library = load_baseline(overload.baseline[device_kind], device_kind).call

    def drawn() -> list[Any]:
        inputs = make_inputs(overload, bind(overload, case), torch.default_generator)
        values = inputs.arguments().values()
        return [value.clone().to(device_kind) if isinstance(value, torch.Tensor) else value for value in values]

    # Some take the library's time before they have a candidate, some beside it.
    before = elapsed_us(library, drawn(), device_kind)
    module = load_source(text, Path(kernel).parent)
    entry = getattr(module, overload.signature.name)
    passed = False
    for reference_first in (True, False):
        torch.manual_seed(SEED)
        passed = passed or correct(entry, library, drawn(), reference_first)
    speedup = None
    if passed:
        arguments = drawn()
        own = elapsed_us(entry, arguments, device_kind)
        beside = elapsed_us(_library_of_now(overload, library), arguments, device_kind)
        # A time of nothing is the best there is.
        speedup = max(before, beside) / max(own, 1e-3)
    print(json.dumps({"passed": passed, "speedup": speedup}), flush=True)


def _library_of_now(overload: Any, library: Any) -> Any:
    """The library's function by its name, as a script would write it."""
    return getattr(torch, overload.signature.name, library)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], DeviceKind(sys.argv[3]))
