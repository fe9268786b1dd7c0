"""Splits a run into one run per device model. Times of different device models never enter the same score."""

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
    """Sorted names of the device models in the results. Empty when no result names a device: run.json then names it."""
    return tuple(sorted({result.device_name for result in results} - {""}))


def by_device(run: StoredRun) -> tuple[StoredRun, ...]:
    """The run itself where one device model judged it, otherwise one run per device model.

    Each part has the problems and samples that were judged on its device model, and those that were not judged at all.
    """
    models = models_in(run.results)
    return (run,) if len(models) < 2 else tuple(_part(run, model) for model in models)


def on_device(run: StoredRun, model: str) -> StoredRun:
    """The part of a run that was judged on the device model ``model``. An empty ``model`` means the whole run.

    Raises UsageError when the run was not judged on ``model``, or when ``model`` is empty and the run has several
    device models.
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
        info.pop("least_us", None)  # computed from the peaks of the device in run.json
    return replace(run, info=info, results=tuple(results))


def _whose(result: Result, own: str) -> str:
    """Name of the device model that judged a result; empty when no candidate was run.

    own: the name of the device in run.json.
    """
    return result.device_name or (own if result.seconds else "")
