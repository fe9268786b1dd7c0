"""The library that candidates are compared with, in a worker that is kept from candidate to candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kgbench.core.details.where import Purpose, Where
from kgbench.core.kinds import DeviceKind
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Library
from kgbench.harness.clock.modules import RunModule, load_trusted
from kgbench.harness.machine.settings import Deadlines
from kgbench.harness.wire.requests import LoadLibrary
from kgbench.harness.workers.handle import WorkerFailed
from kgbench.harness.workers.started import Worker
from kgbench.problem import blas
from kgbench.problem.model import Problem


def crash_advice(failure: WorkerFailed, problem_id: str, targets: Mapping[str, str]) -> str:
    """Which call of which problem crashed and where it is described, as the end of a sentence; else nothing."""
    if failure.outcome is not Outcome.CRASHED:
        return ""
    calls = " and ".join(dict.fromkeys(targets.values()))
    places = ", ".join(dict.fromkeys(filter(None, map(_where_to_look, targets.values()))))
    return f"; {problem_id} calls {calls}" + (f": {places}" if places else "")


def _where_to_look(target: str) -> str:
    """Where it stands how a target is called, for somebody whose call of it crashed; empty for PyTorch's own."""
    owner, _, name = target.partition(":")
    if owner == "aten":
        return ""
    if owner != "vllm" and not blas.is_routine(target):
        return f"look at {target}"
    short, own = blas.split(name)
    table = "vllm_operators.py" if owner == "vllm" else "routines.py"
    return f"look at {'the key signature in its file' if own else f'the row of {short} in baselines/{table}'}"


class LibrarySide:
    """The library worker of one referee."""

    def __init__(self, start: Callable[[], Worker], device_kind: DeviceKind, deadlines: Deadlines) -> None:
        """``start`` starts a trusted worker."""
        self._start, self._device_kind, self._deadlines = start, device_kind, deadlines
        self._worker: Worker | None = None
        self._prepared_for = ("", "")
        """The problem's id, and the secret of a module's parameters."""
        self._targets: dict[str, str] = {}
        self.module: RunModule | None = None
        """The module that the problem is; None where it is none."""
        self._is_loaded = False
        self.against = "library"
        """``library``, or ``fallback`` where the library does not run here."""
        self.record: Library | None = None
        """What the result says of it."""

    @property
    def worker(self) -> Worker | None:
        """The library's worker; None where there is nothing to compare with."""
        return self._worker if self._is_loaded else None

    def prepare(self, problem: Problem, module: RunModule | None = None) -> None:
        """Make the worker ready for a problem, which may be a module. Raises HarnessFailed where no worker starts."""
        wanted = (problem.id, module.weights if module is not None else "")
        if self._prepared_for == wanted:
            return
        self._prepared_for, self.against, self.module = wanted, "library", module
        targets = self.targets(problem)
        reason = f"the problem names no library for device {self._device_kind}"
        if all(targets.values()):
            reason = self._load(targets)
            if not reason:
                return
        fallbacks = {o.name: o.fallback or "" for o in problem.overloads if o.required}
        notes = {}
        if all(fallbacks.values()):
            self.against = "fallback"
            why = self._load(fallbacks)
            reason += f"; the fallback failed: {why}" if why else ""
            notes = {} if why else {"fallback": "plain torch"}
        self._is_loaded = bool(notes)
        self.record = Library("", reason, notes)

    def targets(self, problem: Problem) -> dict[str, str]:
        """The library's target of each required overload on this device; empty where the file names none."""
        return {o.name: o.baseline.get(self._device_kind, "") for o in problem.overloads if o.required}

    def lose(self, failure: WorkerFailed) -> Library:
        """Record that the library failed. The next candidate gets a new worker; returns what this candidate's result
        says.
        """
        self.drop()
        advice = crash_advice(failure, self._prepared_for[0], self._targets)
        self._prepared_for = ("", "")
        return Library("", f"the library failed: {failure.outcome}: {failure.reason}{advice}", failed=True)

    def drop(self) -> None:
        """End its worker."""
        worker, self._worker = self._worker, None
        self._is_loaded = False
        if worker is not None:
            worker.close()

    def _load(self, targets: dict[str, str]) -> str:
        """Load these in the worker, a new one if there is none; what went wrong, or nothing."""
        self._is_loaded, self._targets = False, targets
        if self._worker is None or not self._worker.handle.alive():
            self.drop()
            self._worker = self._start()
        self._worker.side.warm.clear()
        try:
            if self.module is not None:
                load_trusted(self._worker, self.module, self._deadlines)
                self.record, self._is_loaded = self.module.library(), True
                return ""
            reply = self._worker.handle.request(LoadLibrary(targets), self._deadlines.import_s, Where(Purpose.LIBRARY))
        except WorkerFailed as failure:
            self.drop()
            return failure.reason + crash_advice(failure, self._prepared_for[0], targets)
        if "unavailable" in reply:
            return str(reply["unavailable"])
        self.record = Library(str(reply["library"]), "", dict(reply["notes"]))
        self._is_loaded = True
        return ""
