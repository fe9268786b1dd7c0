"""Threads that take submissions from the queue and have them judged; a verdict is kept before anybody hears of it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final, Protocol

from kgbench.core.details.absence import Fault, HarnessTrouble
from kgbench.core.errors import to_stderr
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.harness.machine.settings import Job
from kgbench.harness.session.errors import SessionClosed
from kgbench.harness.session.retry import without_evaluation
from kgbench.problem.model import Problem
from kgbench.service.changes import Changes
from kgbench.service.errors import ServiceError
from kgbench.service.problems import Problems
from kgbench.service.queue import MOST_ATTEMPTS, Queue, Submission
from kgbench.service.verdicts import public_result, verdict_json
from kgbench.store.encoding import json_text, sha256

PHASES: Final = frozenset(("library", "start", "import", "check", "bench", "observe"))
"""Phases of judging that a submitter is told of. What is judged in them is not told."""
_IDLE_S: Final = 1.0
"""Seconds after which a thread without work looks again, since another process may have made a token good; and after
which it is looked whether more can be judged at once."""
_AGAIN_S: Final = 5.0
"""Seconds between two tries to keep a verdict that cannot be written, on a full disk for example."""


class Backend(Protocol):
    """The interface of a judging session, of this machine or elsewhere."""

    @property
    def facts(self) -> Mapping[str, Any]: ...

    @property
    def jobs(self) -> int:
        """How many candidates may be at work at once."""

    def close(self) -> None:
        """Ends what is at work; ``evaluate`` in other threads raises SessionClosed."""

    def evaluate(self, job: Job, on_event: Callable[[str, str], None]) -> Result: ...


OpenBackend = Callable[[], AbstractContextManager[Backend]]


class Judging:
    """The threads, from opening the backend to its end."""

    def __init__(self, queue: Queue, problems: Problems, changes: Changes, open_backend: OpenBackend) -> None:
        self._queue = queue
        self._problems = problems
        self._changes = changes
        self._open_backend = open_backend
        self._stop = threading.Event()
        self._work = threading.Condition()
        self._main = threading.Thread(target=self._run, name="kgbench-judging", daemon=True)
        self.state = "starting"
        """``starting``, ``ready``, ``failed`` or ``ended``."""
        self.facts: Mapping[str, Any] = {}
        self.jobs = 0
        self.error: BaseException | None = None
        """The error that ended judging early."""
        self.on_failure: Callable[[], None] = lambda: None
        self.on_verdict: Callable[[float], None] = lambda seconds: None
        """Told how long a submission waited for its verdict."""

    def start(self) -> None:
        self._main.start()

    def wake(self) -> None:
        """Wake a thread for new work; from any thread."""
        with self._work:
            self._work.notify_all()

    def close(self) -> None:
        """Ends what is being judged, which is queued again; returns when all threads are gone."""
        self._stop.set()
        self.wake()
        if self._main.is_alive():
            self._main.join()

    def _run(self) -> None:
        try:
            with self._open_backend() as backend:
                self.facts, self.jobs = dict(backend.facts), backend.jobs
                self.state = "ready"
                self._judge_all(backend)
            self.state = "ended"
        except Exception as error:
            self.error, self.state = error, "failed"
            self.on_failure()

    def _judge_all(self, backend: Backend) -> None:
        threads: list[threading.Thread] = []
        while True:
            # A cluster has more places once a node has joined.
            self.jobs = max(1, backend.jobs)
            for number in range(len(threads), self.jobs):
                name = f"kgbench-judge-{number}"
                threads.append(threading.Thread(target=self._judge_some, args=(backend,), name=name, daemon=True))
                threads[-1].start()
            if self._stop.wait(_IDLE_S):
                break
        backend.close()
        for thread in threads:
            thread.join()
        if self.error is not None:
            raise self.error

    def _judge_some(self, backend: Backend) -> None:
        while not self._stop.is_set():
            try:
                submission = self._queue.claim()
            except ServiceError as error:
                to_stderr(error.printed)
                self._stop.wait(_AGAIN_S)
                continue
            if submission is None:
                with self._work:
                    self._work.wait(_IDLE_S)
                continue
            try:
                self._judge(backend, submission)
            except SessionClosed:
                self._put_back(submission)
            except Exception as error:
                # No device works any more, or a bug of ours: nothing is judged until somebody has looked.
                self._put_back(submission)
                self.error = self.error or error
                self._stop.set()

    def _put_back(self, submission: Submission) -> None:
        with contextlib.suppress(ServiceError):
            self._queue.put_back(submission)

    def _judge(self, backend: Backend, submission: Submission) -> None:
        result = self._result(backend, submission)
        verdict = json_text(verdict_json(result))
        while True:
            try:
                kept = self._queue.finish(submission, str(result.outcome), verdict)
                break
            except ServiceError as error:
                to_stderr(error.printed)
                if self._stop.wait(_AGAIN_S):
                    return
        if kept:
            self.on_verdict(max(0.0, time.time() - submission.submitted))
            self._changes.tell(submission.id, submission.batch, "done")

    def _result(self, backend: Backend, submission: Submission) -> Result:
        """The result as its author may see it. Raises SessionClosed, MachineError."""

        def on_event(phase: str, detail: str) -> None:
            if phase in PHASES:
                self._changes.tell(submission.id, submission.batch, phase)

        problem = self._problems.load(submission.problem)
        job = _job(submission, problem)
        if submission.attempts > MOST_ATTEMPTS:
            words = f"the service ended {submission.attempts - 1} times while it judged this, and tries no more"
            trouble = HarnessTrouble(Fault.LOST, words)
            found = without_evaluation(job, Outcome.HARNESS_ERROR, trouble, str(backend.facts.get("kind", "")))
        else:
            found = backend.evaluate(job, on_event)
        named = replace(found, model=submission.model, sample=submission.sample, round=submission.round)
        named = replace(named, seed=sha256(str(getattr(backend, "seed", ""))))
        return public_result(problem, submission.source, named, peaks=backend.facts.get("peaks"))


def _job(submission: Submission, problem: Problem) -> Job:
    """Every submission draws inputs of its own, whatever its author calls it."""
    return Job(
        problem,
        model=f"service:{submission.id}",
        source=submission.source,
        practice=submission.practice,
        timing=submission.timing,
    )
