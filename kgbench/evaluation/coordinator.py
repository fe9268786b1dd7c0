"""The coordinator: judges every candidate through one session, and stores each result at once.

Never imports torch. Judging is left to the session (``harness/session``), storing to ``store/writer.py``, display to
``progress.py``.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import queue
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Protocol

from rich.console import Console

from kgbench import __version__
from kgbench.core.errors import KgbenchError, MachineError
from kgbench.core.interruption import ended_by_signals
from kgbench.core.types import Key, Result
from kgbench.evaluation.progress import Display, display
from kgbench.evaluation.request import RunRequest
from kgbench.evaluation.schedule import known_durations, longest_first, remember_durations
from kgbench.evaluation.shard import Shard
from kgbench.harness.machine.settings import Deadlines, Job
from kgbench.harness.session.retry import without_evaluation
from kgbench.models.candidate_queue import Feed, ListFeed, Work
from kgbench.models.generation import Chain, ModelProvider
from kgbench.models.provider import Provider
from kgbench.problem.model import Problem
from kgbench.problem.problem_set import sha256_of
from kgbench.problem.registry import declared_sizes, problem_folders
from kgbench.problem.suites import Suite, with_suite
from kgbench.scores.light import LEAST_VERSION, least_times
from kgbench.store.encoding import json_text
from kgbench.store.errors import WriteError
from kgbench.store.writer import RunStore

_PACKAGES: Final = ("torch", "triton", "numpy", "vllm", "scipy-openblas32", "nvidia-cublas", "nvidia-cublas-cu12")
_OF_THE_LAST_SEGMENT: Final = (
    "kgbench", "deadlines", "machine", "packages", "declared", "problem_set_sha256", "problems",
)  # fmt: skip
"""Keys of run.json that describe a continued run as it is now, not as it was when it was started."""
MOST_AT_ONCE: Final = 4096
"""Most threads that wait for verdicts, each started when it is needed: a cluster can grow while a run goes on."""
ENDING_S: Final = 60.0
"""Seconds in which candidates that are at work when no device is left may end, or notice it."""
_Events = queue.SimpleQueue[tuple[Work, Future[Result]] | None]
"""A verdict; or None, where the feed may have something new."""


class Judge(Protocol):
    """What the coordinator needs of a session."""

    @property
    def facts(self) -> Mapping[str, Any]: ...

    @property
    def jobs(self) -> int: ...

    @property
    def most(self) -> int: ...

    @property
    def timed_s(self) -> float: ...

    def close(self) -> None: ...

    def evaluate(self, job: Job, on_event: Callable[[str, str], None]) -> Result: ...


@dataclass(frozen=True)
class Plan:
    """What a run was asked for, with everything looked up."""

    problems: tuple[Problem, ...]
    provider: Provider | ModelProvider
    command: tuple[str, ...]
    seed: str
    seed_is_secret: bool
    """False when it came from the command line, where a candidate's author may have seen it."""
    out: Path
    run_id: str
    started: datetime
    deadlines: Deadlines
    request: RunRequest = field(default_factory=RunRequest)
    suite: Suite | None = None
    """The suite that replaces the problems' own cases; None without one."""
    done: Mapping[Key, Result] = field(default_factory=dict)
    """Results that exist already."""
    suspects: Set[Key] = frozenset()
    """Candidates that were judged when a device stopped working; each is judged alone on its device."""
    shard: Shard | None = None
    """The shard that is judged here; None for the whole run."""

    @property
    def rounds(self) -> int:
        """Replies that a model may give in each sample; 1 where no model is asked."""
        return self.provider.asking.rounds if isinstance(self.provider, ModelProvider) else 1

    @cached_property
    def chains(self) -> Sequence[Chain]:
        """Problem and sample of every candidate that is judged here."""
        problems = self.problems
        chains = [(each.id, sample) for each in problems for sample in range(self.provider.samples_of(each.id))]
        return chains if self.shard is None else self.shard.of(chains)

    @property
    def is_timed(self) -> bool:
        """Something is timed, and not only judged for correctness."""
        return self.provider.timed and (self.suite is None or self.suite.is_timed)

    @cached_property
    def missing(self) -> frozenset[Key]:
        """Candidates without a verdict."""
        model, rounds = self.provider.model, range(self.rounds)
        keys = ((problem, model, sample, number) for problem, sample in self.chains for number in rounds)
        return frozenset(key for key in keys if key not in self.done)

    @property
    def questions(self) -> dict[str, int]:
        """Number of missing candidates by source; empty where no model is asked."""
        if not isinstance(self.provider, ModelProvider):
            return {}
        sources = {problem.id: problem.source for problem in self.problems}
        return dict(Counter(sources[problem] for problem, *_ in self.missing))

    def feed(self, store: RunStore, seconds: Mapping[str, float]) -> Feed:
        """The candidates without a verdict, the longest first. ``seconds``: what problems took before."""
        if isinstance(self.provider, ModelProvider):
            return self.provider.feed(self.problems, self.done, store, self.chains)
        return ListFeed(self.provider, longest_first(self.problems, seconds), self.missing)


@dataclass(frozen=True)
class Ending:
    """How a run ended: its folder, and what cut it short."""

    path: Path
    interrupted: bool = False
    error: KgbenchError | None = None
    left: str = ""
    """Questions without a reply, in words; empty where all were answered."""


def new_run_id(now: datetime, token: str) -> str:
    """``20260131T235959Z-<token>``: sorts by time and does not collide."""
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{token}"


def run(
    plan: Plan,
    open_session: Callable[[RunStore], contextlib.AbstractContextManager[Judge]],
    console: Console,
    reopened: RunStore | None = None,
) -> Ending:
    """Evaluate the plan, or what is missing of it in a run that was reopened.

    SIGINT, SIGTERM and SIGHUP end it early and keep what is finished.

    Raises StoreError when the run's folder cannot be made, and MachineError when no session can be had; nothing is left
    then. Anything that ends the run after that is in the Ending. An exception that is not a KgbenchError is a bug: the
    run is marked as failed, then it is raised.
    """
    with ended_by_signals() as no_more_signals:
        store = _begun(plan, reopened)
        status, error, begun, left = "failed", None, False, ""
        spent: dict[str, float] = {}
        try:
            if plan.suite is not None and reopened is None:
                store.save_suite(json_text(plan.suite.to_json()))
            with opened(open_session(store), console) as session:
                begun = True
                least_us = least_times(plan.problems, session.facts)
                bounds = {"least_us": least_us, "least_version": LEAST_VERSION}
                store.update({"device": dict(session.facts), **bounds})
                with display(console, len(plan.missing), plan.questions) as shown:
                    since = time.monotonic()
                    try:
                        left = _evaluate_all(plan, session, store, shown)
                    finally:
                        spent = _spent(store, session, time.monotonic() - since)
                no_more_signals()
                store.update({"device": dict(session.facts)})  # devices may have joined meanwhile
            status = "incomplete" if left else "finished"
        except KeyboardInterrupt:
            status = "interrupted"
        except KgbenchError as cause:
            error = cause
        finally:
            if error and not begun:
                store.discard()
                raise error
            with contextlib.suppress(WriteError) if error else contextlib.nullcontext():
                store.update(spent)
                store.finish(status, finished=datetime.now(UTC).isoformat(timespec="seconds"), seed=plan.seed)
    return Ending(store.path, status == "interrupted", error, left)


def _begun(plan: Plan, reopened: RunStore | None) -> RunStore:
    """The run's folder with a segment that has just begun. Raises StoreError, WriteError."""
    info = run_facts(plan)
    if reopened is None:
        return RunStore.create(plan.out, plan.run_id, info, seed=plan.seed)
    changes = {name: info[name] for name in _OF_THE_LAST_SEGMENT}
    reopened.begin(changes, seed=plan.seed, started=info["started"], command=plan.command)
    return reopened


def _spent(store: RunStore, session: Judge, wall_s: float) -> dict[str, float]:
    """Seconds of this segment and of those before, as run.json has them."""
    spent = {"timed_s": session.timed_s, "wall_s": wall_s}
    return {name: round(store.info.get(name, 0.0) + value, 3) for name, value in spent.items()}


@contextlib.contextmanager
def opened(session: contextlib.AbstractContextManager[Judge], console: Console) -> Iterator[Judge]:
    """Enter the session; on a terminal a spinner runs meanwhile, since that takes seconds."""
    with contextlib.ExitStack() as stack:
        waiting = (
            console.status("starting fork server and referee") if console.is_terminal else contextlib.nullcontext()
        )
        with waiting:
            judge = stack.enter_context(session)
        yield judge


def _evaluate_all(plan: Plan, session: Judge, store: RunStore, shown: Display) -> str:
    """As many candidates at once as the session takes, each as soon as it is there; what is left without a reply.

    Only this thread writes results. Where no device is left, those at work still end, and MachineError is raised then.
    """
    suite = plan.suite if plan.suite is not None and plan.suite.shares else None
    as_judged = {each.id: each if suite is None else with_suite(each, suite) for each in plan.problems}
    events: _Events = queue.SimpleQueue()
    feed = plan.feed(store, known_durations(session.facts))
    judged: list[Result] = []
    at_work = 0
    failure: MachineError | None = None
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        try:
            feed.start(lambda: events.put(None), shown, lambda *asked: _practise(session, *asked))
            while True:
                # Further candidates are taken only when there is somebody to judge them, or to say that nobody is.
                while failure is None and at_work < max(1, session.most) and (work := feed.take()) is not None:
                    _begin(work, store, shown)
                    problem, is_suspected = as_judged[work.problem.id], work.key in plan.suspects
                    job = _job(work, problem, is_suite=suite is not None, is_suspected=is_suspected)
                    future = pool.submit(_evaluate, work, job, session, shown)
                    future.add_done_callback(functools.partial(_report_to, events, work))
                    at_work += 1
                if not at_work and (failure is not None or feed.finished):
                    break
                try:
                    event = events.get(timeout=None if failure is None else ENDING_S)
                    if event is not None:
                        at_work -= 1
                        judged.append(_store(*event, feed, store, shown))
                except queue.Empty:
                    break
                except MachineError as error:
                    if session.jobs:
                        raise
                    failure = failure or error
            if failure is not None:
                raise failure
            feed.close()
            remember_durations(session.facts, judged)
            return feed.left
        except BaseException:
            # The threads wait for their referees; those are gone now.
            session.close()
            with contextlib.suppress(KgbenchError):
                feed.close()
            pool.shutdown(cancel_futures=True)
            raise


def _report_to(events: _Events, work: Work, done: Future[Result]) -> None:
    events.put((work, done))


def _begin(work: Work, store: RunStore, shown: Display) -> None:
    candidate = work.candidate
    if candidate.source_text is not None:
        store.save_candidate(work.problem.id, candidate.sample, candidate.source_text, candidate.round)
    shown.started(work.problem.id)


def _store(work: Work, future: Future[Result], feed: Feed, store: RunStore, shown: Display) -> Result:
    """Store one verdict. Raises what its evaluation raised."""
    # What only the run knows; all else is in it already. A service draws from a seed of its own.
    found = future.result()
    seed = found.seed if found.told else store.seed_sha256
    result = replace(found, generation=work.candidate.generation, seed=seed)
    store.append(result)
    shown.finished(result)
    feed.judged(work, result)
    return result


def _practise(session: Judge, problem: Problem, text: str, by: str) -> Result:
    """The verdict that an agent gets on a trial text, with inputs that no verdict uses."""
    job = Job(problem, model=by, source=text, practice=True)
    return session.evaluate(job, on_event=lambda phase, detail: None)


def _job(work: Work, problem: Problem, *, is_suite: bool, is_suspected: bool) -> Job:
    """``problem`` is the work's, with the cases that it is judged by."""
    candidate = work.candidate
    return Job(
        problem,
        model=candidate.model,
        sample=candidate.sample,
        round=candidate.round,
        source=candidate.source_text,
        trusted=candidate.trusted,
        adapted=candidate.adapted,
        suite=is_suite,
        suspected=is_suspected,
    )


def _evaluate(work: Work, job: Job, session: Judge, shown: Display) -> Result:
    candidate = work.candidate
    if candidate.outcome is not None:
        return without_evaluation(job, candidate.outcome, candidate.detail, str(session.facts.get("kind", "")))
    return session.evaluate(job, on_event=lambda phase, detail: shown.phase(job.problem_id, phase, detail))


def run_facts(plan: Plan) -> dict[str, Any]:
    """The content of run.json before the run begins."""
    problems = [
        {
            "id": problem.id,
            "kind": problem.kind,
            "category": problem.category,
            "sha256": problem.sha256,
            "own": is_own(problem),
            "overloads": [overload.name for overload in problem.overloads if overload.required],
        }
        for problem in plan.problems
    ]
    return {
        "status": "running",
        "started": plan.started.astimezone(UTC).isoformat(timespec="seconds"),
        "finished": None,
        "kgbench": __version__,
        "command": list(plan.command),
        "model": plan.provider.model,
        "asked": plan.request.to_json(),
        "samples": plan.provider.asking.samples if isinstance(plan.provider, ModelProvider) else None,
        "rounds": plan.rounds,
        "timed": plan.is_timed,
        "suite": plan.suite.name if plan.suite is not None else None,
        "seed_is_secret": plan.seed_is_secret,
        "deadlines": asdict(plan.deadlines),
        "machine": _machine(),
        "packages": installed_versions(_PACKAGES),
        "device": None,
        "declared": declared_sizes(),
        "problem_set_sha256": sha256_of((problem.id, problem.sha256) for problem in plan.problems),
        "problems": problems,
    }


def is_own(problem: Problem) -> bool:
    """Whether the problem is the user's own, neither the benchmark's nor an installed package's."""
    return not any(problem.path.resolve().is_relative_to(folder) for folder in problem_folders())


def _machine() -> dict[str, Any]:
    return {
        "name": platform.node(),
        "system": platform.platform(),
        "architecture": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
    }


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of the installed packages among these, from their metadata: nothing is imported."""
    versions = {}
    for name in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions
