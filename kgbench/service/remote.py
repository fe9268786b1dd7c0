"""Judges on a service instead of in a session: for ``kgbench run --server`` and for Python."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final

from kgbench.core.details.absence import NoCandidate
from kgbench.core.errors import MachineError, UsageError
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result, result_from_json
from kgbench.evaluation.evaluator import Checked
from kgbench.harness.machine.settings import Job
from kgbench.harness.session.cancellation import Cancellation, Cancelled
from kgbench.harness.session.retry import without_evaluation
from kgbench.problem.model import Problem
from kgbench.problem.problem_cache import ProblemCache
from kgbench.service.client import Client
from kgbench.store.encoding import sha256, with_floats

_WAIT_S: Final = 25
"""Seconds that one poll waits for a verdict."""
_CANCELLED_S: Final = 1
"""The same where it may be cancelled meanwhile."""
_STARTING_S: Final = 0.5
"""Seconds between two questions whether a service has begun."""
_MOST_JOBS: Final = 64
"""Most candidates in flight."""
_AHEAD: Final = 2
"""Candidates in flight for each that the service judges at once, so that it never waits for the network."""


class RemoteSession:
    """Judges by asking a service; one of ``coordinator.Judge``."""

    def __init__(self, client: Client, run_id: str = "") -> None:
        """``run_id``: the same candidate of the same run is one submission, so that a run may be continued.

        Waits until the service has begun. Raises TokenRefused, ServiceError, MachineError.
        """
        self._client = client
        self._run_id = run_id or secrets.token_hex(16)
        while True:
            about = client.ask("GET", "/v1/service")
            if about["state"] != "starting":
                break
            client.pause(_STARTING_S)
        if about["state"] != "ready":
            raise MachineError("KGB733", f"{client.url}: the service cannot judge any more; its operator has to look")
        self._facts: Mapping[str, Any] = {**about["device"], "service": client.url}
        self._jobs: int = max(1, min(_AHEAD * about["jobs"], _MOST_JOBS, about["queue"]))

    def __enter__(self) -> RemoteSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """What was submitted is judged all the same; who waits for it raises SessionClosed."""
        self._client.close()

    @property
    def facts(self) -> Mapping[str, Any]:
        """Of the device that judges, and the service's address."""
        return self._facts

    @property
    def jobs(self) -> int:
        return self._jobs

    @property
    def most(self) -> int:
        """``jobs``: what waits longer is not compiled ahead from here."""
        return self.jobs

    @property
    def timed_s(self) -> float:
        """0: the service does not say."""
        return 0.0

    def evaluate(self, job: Job, on_event: Callable[[str, str], None]) -> Result:
        """Raises UsageError for what no service judges; TokenRefused, ServiceError, MachineError, SessionClosed."""
        if job.trusted is not None or job.suite:
            what = "a suite's calls" if job.suite else "the library itself"
            raise UsageError("KGB732", f"--server: a service judges kernels' text, not {what}; leave --server out")
        if job.source is None:
            none = NoCandidate("no candidate was submitted for this problem")
            return without_evaluation(job, Outcome.NO_CANDIDATE, none, str(self._facts.get("kind", "")))
        wanted = {
            "problem": job.problem_id,
            "problem_sha256": job.problem.sha256,
            "source": job.source,
            "model": job.model[:200],
            "sample": job.sample,
            "round": job.round,
            "practice": job.practice,
            "timing": job.timing,
        }
        found = self.judged(wanted, on_event)
        return dataclasses.replace(found, model=job.model, sample=job.sample, round=job.round)

    def judged(
        self,
        wanted: Mapping[str, Any],
        on_event: Callable[[str, str], None],
        cancellation: Cancellation | None = None,
    ) -> Result:
        """Submits and waits. ``wanted`` is in the form of ``models.Submit`` without a key. Raises Cancelled."""
        status = self._submitted(wanted)
        said, wait_s = "", _WAIT_S if cancellation is None else _CANCELLED_S
        while status["state"] != "done":
            if cancellation is not None and cancellation.is_cancelled:
                raise Cancelled
            if status["state"] != said:
                said = status["state"]
                on_event(said, "")
            status = self._client.ask("GET", f"/v1/submissions/{status['id']}?wait={wait_s}")
        return _result(status["verdict"])

    def _submitted(self, wanted: Mapping[str, Any]) -> Any:
        """Submit; the same submission of this run is not judged twice, unless the service itself failed on it."""
        base = sha256("\n".join([self._run_id, *(f"{name}={wanted[name]}" for name in sorted(wanted))]))
        attempt = 0
        while True:
            status = self._client.ask("POST", "/v1/submissions", {**wanted, "key": f"{base}-{attempt}"})
            if status["new"] or status["outcome"] != Outcome.HARNESS_ERROR:
                return status
            attempt += 1


class RemoteEvaluator:
    """Judges kernels on a service, with the interface of ``Evaluator``. May be used from many threads at once.

    Args:
        url: of ``kgbench serve``, such as ``https://judge.example:8650``.
        token: None takes the variable KGBENCH_TOKEN; a service on this machine's loopback needs none.

    A result has what a kernel's author may know: outcome, ``told`` in words, timed calls; no hidden case and no
    evidence. Raises MachineError where nobody answers, TokenRefused where the token is no good.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self._session = RemoteSession(Client(url, token))
        self._problems = ProblemCache()

    def __enter__(self) -> RemoteEvaluator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """A check that another thread waits for raises SessionClosed; the service judges it all the same."""
        self._session.close()

    @property
    def facts(self) -> Mapping[str, Any]:
        """The device of the service, its software and the sandbox's level."""
        return self._session.facts

    @property
    def jobs(self) -> int:
        """How many checks keep the service busy; further ones wait there."""
        return self._session.jobs

    def check(
        self,
        problem: str,
        source: str,
        *,
        timing: bool = True,
        on_event: Callable[[str, str], None] = lambda phase, detail: None,
        cancellation: Cancellation | None = None,
    ) -> Checked:
        """Judge one kernel there. The same text gets other inputs each time.

        Args:
            problem: an id such as ``cublas/cublasSgemm_v2``, or a name that ``kgbench show`` takes.
            source: the text of a Python file that defines the problem's entry.
            timing: False judges only the correctness of this one, where the service times.
            on_event: told ``queued`` and ``judging``, from this thread.
            cancellation: its ``cancel()``, called from another thread, ends this check within a second; the service
                judges the kernel all the same.

        Raises ServiceError with the service's number and words, also for a problem that there is not; TokenRefused
        when the token was withdrawn, MachineError when nobody answers for two minutes, SessionClosed after ``close``,
        Cancelled.
        """
        # The model's name is drawn, so that each check is a submission of its own.
        name = f"evaluator {secrets.token_hex(8)}"
        wanted = {"problem": problem, "source": source, "model": name, "timing": timing}
        result = self._session.judged(wanted, on_event, cancellation)
        return Checked(**{each.name: getattr(result, each.name) for each in dataclasses.fields(result)})

    def problem(self, name: str) -> Problem:
        """As this machine's kgbench has it. Raises UsageError where there is none."""
        return self._problems.load(name)


def _result(verdict: dict[str, Any]) -> Result:
    for case in verdict.get("cases", ()):
        if case.get("timing"):
            case["timing"] = with_floats(case["timing"])
    return result_from_json(verdict)
