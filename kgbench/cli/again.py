"""Stored candidates judged once more, with new seeds, for ``kgbench verify`` and ``kgbench reproduce``."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kgbench.cli.options import deadline_overrides, deadlines_on
from kgbench.core.errors import UsageError, numbered
from kgbench.core.kinds import PolicyMode

_LOOKS: Final = 10
"""Most further looks at whether a GPU is idle: the driver's samples are up to a second old."""
_LOOK_S: Final = 0.5
"""Seconds between two of these looks."""
_NAMED: Final = 5
"""Most candidates that one line names; it counts the others."""

if TYPE_CHECKING:
    from rich.console import Console

    from kgbench.core.types import Result
    from kgbench.harness.machine.settings import Job
    from kgbench.harness.session.session import Session, Settings
    from kgbench.store.reader import StoredRun


@dataclass(frozen=True)
class Measured:
    """The machine on which stored candidates were judged again."""

    seed_sha256: str
    at: str
    device: str
    busy_before: float | None
    """Load of the device in percent right before, without anything of kgbench; None where unknown."""
    busy_after: float | None


def chosen(stored: StoredRun, results: Sequence[Result], sources: Sequence[str], globs: Sequence[str]) -> list[Result]:
    """The results of these problems. Raises UsageError where a name or a pattern is of none."""
    from kgbench.problem.registry import Registry, problem_folders

    folders = [Path(each) for each in (stored.info.get("asked") or {}).get("problem_dirs", ())]
    of_these = {*Registry(problem_folders(folders)).select(sources, globs)} if sources or globs else None
    return [result for result in results if of_these is None or result.problem in of_these]


def jobs_of(stored: StoredRun, results: Iterable[Result]) -> list[tuple[Result, Job]]:
    """Jobs for the candidates that can be judged again; stderr says why others cannot."""
    from kgbench.reports.words import numbered_as

    found, left_out = [], dict[str, list[str]]()
    for result, job in _jobs(stored, results):
        if isinstance(job, str):
            left_out.setdefault(job, []).append(result.problem + numbered_as(result.sample, result.round))
        else:
            found.append((result, job))
    for why, names in left_out.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        words = f"{', '.join(names[:_NAMED])}{more} {'is' if len(names) == 1 else 'are'} left out: {why}"
        click.echo(f"kgbench: {numbered('KGB620', words)}", err=True)
    return found


def _jobs(stored: StoredRun, results: Iterable[Result]) -> Iterable[tuple[Result, Job | str]]:
    """The job for each result, or why there is none."""
    from kgbench.core import user_modules
    from kgbench.harness.machine.settings import Job
    from kgbench.problem.kernelbench import registry_of
    from kgbench.problem.suites import read_suite, with_suite
    from kgbench.store.encoding import sha256
    from kgbench.store.layout import candidate_path

    asked = stored.info.get("asked") or {}
    folders = asked.get("problem_dirs", ())
    user_modules.offer(folders)
    suite = read_suite(stored.path)
    registry = registry_of(asked.get("suite"), folders, asked.get("against") or "")
    for result in results:
        path = candidate_path(stored.path, result.problem, result.sample, result.round)
        if result.problem not in registry.paths:
            yield result, "its problem is gone"
        elif (problem := registry.load([result.problem])[0]).sha256 != result.problem_sha256:
            yield result, "its problem's file has changed since the run"
        elif not path.exists():
            yield result, "the run has no text of it"
        elif sha256(text := path.read_text(encoding="utf-8")) != result.candidate_sha256:
            yield result, "the stored text is not the one that was judged"
        else:
            is_suite = suite is not None and bool(suite.shares)
            yield result, Job(
                with_suite(problem, suite) if suite is not None and is_suite else problem, result.model,
                result.sample, text, round=result.round, suite=is_suite, timing=stored.info.get("timed", True),
                adapted=result.adapted,
            )  # fmt: skip


def measure(
    stored: StoredRun, jobs: Sequence[Job], device: str, most: int, file: str, told: Callable[[str], None]
) -> Measured | None:
    """Judge all; each result is appended to ``file`` in the run's folder at once. None where there is no job.

    ``told`` is first called with the differences from the run's machine. Raises UsageError on another kind of device.
    """
    from concurrent.futures import ThreadPoolExecutor, as_completed

    from rich.console import Console

    from kgbench.core.interruption import ended_by_signals
    from kgbench.evaluation.coordinator import opened
    from kgbench.harness.machine.devices import busy_percent, find_devices
    from kgbench.harness.session.session import Session
    from kgbench.reports.words import result_line
    from kgbench.store import verification
    from kgbench.store.encoding import sha256

    if not jobs:
        return None
    before = stored.info.get("device") or {}
    found = find_devices(device)
    kind = found[0].kind
    if before.get("kind") not in (None, kind):
        raise UsageError(
            "KGB161", f"the run was made on {before['kind']}, and this is {kind}: times cannot be compared; --device"
        )
    console = Console(stderr=True, highlight=False)
    seed = secrets.token_hex(16)
    settings = _settings(stored, device, most, seed, console)
    busy = {each.uuid: busy_percent(each.uuid) for each in found if each.uuid}
    with ended_by_signals(), opened(Session(settings), console) as session:
        where = {"at": datetime.now(UTC).isoformat(timespec="seconds"), **_machine(session)}
        where["busy_percent_before"] = busy.get(uuid := one_device(session.facts))
        for words in _differences(before, session.facts):
            click.echo(f"kgbench: {numbered('KGB621', words)}", err=True)
            told(words)
        with ThreadPoolExecutor(session.jobs) as pool:
            try:
                running = [pool.submit(session.evaluate, job, lambda phase, detail: None) for job in jobs]
                for done in as_completed(running):
                    result = done.result()
                    verification.append(stored.path, result, sha256(seed), where, file)
                    console.print(f"{result.problem} {result_line(result)}", markup=False, soft_wrap=True)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
    return Measured(sha256(seed), where["at"], str(where["device"]), where["busy_percent_before"], _idle_percent(uuid))


def one_device(facts: Mapping[str, Any]) -> str:
    """UUID of the GPU that a session uses; empty of a CPU and where it uses several."""
    return str(facts.get("uuid") or "") if len(facts.get("devices") or ()) <= 1 else ""


def _idle_percent(uuid: str) -> float | None:
    """Load of a GPU in percent, without what has just ended; None unless it is one GPU."""
    from kgbench.harness.machine.devices import busy_percent

    busy = busy_percent(uuid) if uuid else None
    for _ in range(_LOOKS):
        if not busy:
            break
        time.sleep(_LOOK_S)
        busy = busy_percent(uuid)
    return busy


def _settings(stored: StoredRun, device: str, most: int, seed: str, console: Console) -> Settings:
    """The run's own deadlines and policy; device, number of jobs and seed are new."""
    from kgbench.core.paths import hidden_dirs
    from kgbench.harness.session.session import Settings

    asked = stored.info.get("asked") or {}
    return Settings(
        device=device,
        jobs=most,
        seed=seed,
        deadlines=deadlines_on(device, deadline_overrides(asked.get("deadlines") or (), None)),
        hidden=hidden_dirs(stored.path.parent, *asked.get("problem_dirs", ())),
        policy=PolicyMode(asked.get("policy") or PolicyMode.OFF),
        say=lambda words: console.print(words, soft_wrap=True, markup=False),
    )


def _machine(session: Session | Any) -> dict[str, Any]:
    return {"device": session.facts.get("name"), "driver": session.facts.get("driver")}


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterable[str]:
    """Differences from the run's machine, which may change speedups."""
    if not before.get("name"):
        yield "the run does not say on which device it was made"
    for key, what in (("name", "device"), ("driver", "driver")):
        if before.get(key) and before[key] != now.get(key):
            yield f"the run was made with {what} {before[key]}, this is {now.get(key)}"
    versions, here = before.get("versions") or {}, now.get("versions") or {}
    for name, version in versions.items():
        if here.get(name) != version:
            yield f"the run was made with {name} {version}, here is {here.get(name)}"
