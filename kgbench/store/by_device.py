"""A run that devices of several models judged, as one run per model: their speeds never make one score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kgbench.core.errors import UsageError
from kgbench.core.types import Result
from kgbench.problem.problem_set import sha256_of
from kgbench.store.reader import StoredRun


def models_in(results: Iterable[Result]) -> tuple[str, ...]:
    """Names of the devices that judged, sorted; none where run.json has the only one."""
    return tuple(sorted({result.device_name for result in results} - {""}))


def by_device(run: StoredRun) -> tuple[StoredRun, ...]:
    """The run itself, or one for each model of its devices.

    Each of several has the problems and samples that its device judged, and all that nobody did.
    """
    models = models_in(run.results)
    return (run,) if len(models) < 2 else tuple(_part(run, model) for model in models)


def on_device(run: StoredRun, model: str) -> StoredRun:
    """What a model of device judged; with an empty ``model`` the run, whose devices are alike then.

    Raises UsageError where the run has no such device, or several and none is named.
    """
    models = models_in(run.results)
    known = models or (str((run.info.get("device") or {}).get("name")),)
    if len(models) > 1 and not model:
        words = f"{run.path} was judged on {' and '.join(models)}, whose speeds make no one score"
        raise UsageError("KGB156", f"{words}; say which: --on '{models[0]}'")
    if model and model not in known:
        raise UsageError("KGB156", f"{run.path} was not judged on {model!r}; there is {', '.join(known)}")
    return _part(run, model) if len(models) > 1 else run


def _part(run: StoredRun, model: str) -> StoredRun:
    device = run.info.get("device") or {}
    own = str(device.get("name"))
    results = [each for each in run.results if _whose(each, own) in (model, "")]
    judged = {each.problem for each in run.results}
    samples = Counter(problem for problem, _ in {(each.problem, each.sample) for each in results})
    problems = [
        {**each, "samples": samples[each["id"]]} if each["id"] in judged else each
        for each in run.info.get("problems", ())
        if each["id"] in samples or each["id"] not in judged
    ]
    facts: dict[str, Any] = {**device, "name": model}
    facts["devices"] = [each for each in device.get("devices") or () if each.get("name") == model]
    if model != own:
        facts.pop("peaks", None)
    sha256 = sha256_of((each["id"], each.get("sha256")) for each in problems)
    info = {**run.info, "device": facts, "problems": problems, "problem_set_sha256": sha256}
    if model != own:
        info.pop("least_us", None)  # they are of the other one's peaks
    return replace(run, info=info, results=tuple(results))


def _whose(result: Result, own: str) -> str:
    """The device that judged it; empty where nobody had to."""
    return result.device_name or (own if result.seconds else "")
