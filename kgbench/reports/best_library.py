"""The fastest library of each timed case: that of the problem, or an installed package that was judged beside it.

A package's run has for each case how many times as fast as the library it is. It counts where that is above 1 by the
lower end of its interval. A kernel's speedup over the library divided by this is its speedup over the best library, so
both are compared with what ran beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgbench.core.kinds import DeviceKind
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.scores.samples import Selected, newest
from kgbench.scores.speedups import Faster, case_key, timed_cases
from kgbench.store.reader import StoredRun, problem_hashes


def packages_of(run: StoredRun) -> tuple[str, ...]:
    """The packages whose kernels a run has judged, as ``torch.compile:2.11.0``; empty where one is no package's."""
    judged = [result for result in run.results if result.candidate_sha256]
    return tuple(sorted({result.model for result in judged})) if all(result.adapted for result in judged) else ()


def beside(info: Mapping[str, Any], runs: Iterable[StoredRun]) -> tuple[StoredRun, ...]:
    """Those of packages that were judged on the GPU of the run with this run.json."""
    device = _gpu(info)
    return tuple(run for run in runs if device and packages_of(run) and _gpu(run.info) == device)


def with_best_libraries(
    selected: Sequence[Selected], info: Mapping[str, Any], runs: Iterable[StoredRun]
) -> tuple[Selected, ...]:
    """Each problem with the packages that are faster than the library, by timed case.

    Nothing changes where no package was judged on the same GPU. A problem whose file was another one there has the
    library alone.
    """
    known, hashes = beside(info, runs), problem_hashes(info)
    if not known:
        return tuple(selected)
    found: dict[str, dict[str, Faster]] = {}
    for result in (each for run in known for each in newest(run.results)):
        if result.problem_sha256 and result.problem_sha256 == hashes.get(result.problem):
            _keep_fastest(found.setdefault(result.problem, {}), result)
    return tuple(replace(each, faster=found.get(each.id, {})) for each in selected)


def _keep_fastest(by_case: dict[str, Faster], result: Result) -> None:
    """A package may be wrong in other calls: who needs a timed one that is correct has it there as fast.

    One that was rejected may have had its times by breaking a rule.
    """
    if result.outcome is Outcome.REJECTED or result.interpreted:
        return
    for case in timed_cases(result):
        timing, key = case.timing, case_key(case.overload, case.id)
        if timing is None or timing.against != "library" or not timing.low > 1:
            continue
        if key not in by_case or timing.ratio > by_case[key].ratio:
            by_case[key] = Faster(result.model, timing.ratio, timing.low, timing.high)


def _gpu(info: Mapping[str, Any]) -> str:
    """Its name; empty on a CPU and where several are named."""
    device = info.get("device") or {}
    names = {str(each.get("name") or "") for each in (device, *(device.get("devices") or ()))} - {""}
    return names.pop() if device.get("kind") == DeviceKind.CUDA and len(names) == 1 else ""
