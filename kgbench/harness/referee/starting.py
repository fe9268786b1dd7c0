"""Starts workers for a referee: trusted ones for the library, and those that have a candidate loaded."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from kgbench.core.details.absence import NoLibrary
from kgbench.core.details.failures import Breach, NoEntry, RuleBroken
from kgbench.core.details.where import Purpose, Where
from kgbench.core.kinds import DeviceKind
from kgbench.core.outcomes import Outcome
from kgbench.core.text import told
from kgbench.harness.clock.library import LibrarySide
from kgbench.harness.clock.modules import load_trusted, make_candidate
from kgbench.harness.machine.languages import lacking, machine_of
from kgbench.harness.machine.settings import RefereeSettings
from kgbench.harness.machine.timing_lock import TimingLock
from kgbench.harness.referee.confinement import Confinement
from kgbench.harness.referee.evaluation import Evaluation, Report
from kgbench.harness.sandbox.plan import Plan
from kgbench.harness.verdict.reference import reference_spec
from kgbench.harness.wire.buffers import ControlPage
from kgbench.harness.wire.device import GPU
from kgbench.harness.wire.forks import WorkerLimits, WorkerSpec
from kgbench.harness.wire.protocol import Channel
from kgbench.harness.wire.requests import Hello, LoadCandidate, LoadLibrary, LoadReference, Request
from kgbench.harness.workers.handle import TRUSTED_STUB, HarnessFailed, Role, WorkerFailed, WorkerHandle
from kgbench.harness.workers.started import Clock, Worker, WorkerSide
from kgbench.problem.entry_names import entry_names
from kgbench.problem.model import module_of


class Starter:
    """Has the fork server start workers on one device."""

    def __init__(self, server: Channel, settings: RefereeSettings, plan: Plan, turns: TimingLock) -> None:
        self.server = server
        self.settings = settings
        self.plan = plan
        self.turns = turns

    def start_trusted(self, role: Role) -> Worker:
        """A worker that runs no candidate and has its device up. Raises HarnessFailed."""
        return self._start(role, TRUSTED_STUB, Confinement.of(self.settings, self.plan))

    def _start(self, role: Role, stub: str, confinement: Confinement) -> Worker:
        settings = self.settings
        spec = WorkerSpec(
            role,
            stub,
            settings.device_kind,
            settings.device_uuid,
            confinement.plan.to_json(),
            # Trusted roles see baselines and the user's own references; a candidate sees neither.
            hidden=list(confinement.hidden) if role == Role.CANDIDATE else [],
            modules=[] if role == Role.CANDIDATE else list(settings.modules),
            limits=WorkerLimits(**confinement.limits),
        )
        handle = WorkerHandle(self.server, spec, self.turns)
        page = ControlPage.create()
        try:
            handle.request(Hello(), 60.0, Where(Purpose.START), (page.fd,))
        except WorkerFailed as failure:
            handle.kill()
            # No candidate code has run yet, so this is ours.
            raise HarnessFailed(f"worker did not start: {failure.reason}\n{failure.log}") from None
        finally:
            # Both sides have mapped it.
            os.close(page.fd)
        handle.allow_compiling(page, settings.deadlines.compile_s)
        return Worker(handle, WorkerSide(handle, settings.device_kind, 0), Clock(page))

    def start_candidate(self, evaluation: Evaluation, library: LibrarySide, report: Report) -> Worker:
        """A fresh worker with the candidate loaded. Raises WorkerFailed, HarnessFailed."""
        report("start", "")
        role = {None: Role.CANDIDATE, "baseline": Role.LIBRARY}.get(evaluation.job.trusted, Role.REFERENCE)
        with evaluation.phase("start"):
            if role == Role.CANDIDATE:
                chosen = evaluation.defences
                confinement = chosen.confine(self.settings, self.plan)
                if package := evaluation.job.adapted:
                    confinement = confinement.showing(package.split()[0])
                worker = self._start(role, chosen.stub, confinement)
            else:
                worker = self.start_trusted(role)
        if evaluation.attribution is not None:
            evaluation.attribution.before_import(worker.handle.supervisor_pid)
        report("import", "")
        try:
            with evaluation.phase("import"):
                _load(worker, evaluation, library)
        except BaseException:
            worker.close()
            evaluation.peak_mb = worker.handle.peak_mb
            evaluation.log = worker.handle.log_tail
            raise
        return worker


def _load(worker: Worker, evaluation: Evaluation, library: LibrarySide) -> None:
    """Load the job's candidate, or what stands in its place. Raises WorkerFailed."""
    if evaluation.job.trusted is not None and (module := library.module) is not None:
        load_trusted(worker, module, evaluation.deadlines)
        return
    request = _what_to_load(worker, evaluation, library)
    with _compiled(evaluation.job.compiled) as fds:
        reply = worker.handle.request(request, evaluation.deadlines.import_s, Where(Purpose.IMPORT), fds)
    if evaluation.job.trusted is None:
        _check_entries(worker, evaluation, reply)
        if library.module is not None:
            make_candidate(worker, library.module, evaluation.deadlines)
    elif "unavailable" in reply:
        raise WorkerFailed(worker.handle, Outcome.SKIPPED, NoLibrary(str(reply["unavailable"])))


@contextlib.contextmanager
def _compiled(path: str) -> Iterator[tuple[int, ...]]:
    """The descriptor of what is compiled ahead, for the worker that has a copy of it then; none where nothing is."""
    fds: tuple[int, ...] = ()
    if path:
        with contextlib.suppress(OSError):
            fds = (os.open(path, os.O_RDONLY),)
    try:
        yield fds
    finally:
        for fd in fds:
            os.close(fd)


def _what_to_load(worker: Worker, evaluation: Evaluation, library: LibrarySide) -> Request:
    """What the worker is to load. Raises WorkerFailed where this machine cannot run it."""
    job, problem = evaluation.job, evaluation.problem
    if job.trusted == "baseline":
        targets = library.targets(problem)
        if not all(targets.values()):
            none = NoLibrary(f"the problem names no library for device {evaluation.device.type}")
            raise WorkerFailed(worker.handle, Outcome.SKIPPED, none)
        return LoadLibrary(targets)
    if job.as_reference:
        references = {
            o.name: {"reference": reference_spec(o), "parameters": [p.name for p in o.signature.parameters]}
            for o in problem.judged
        }
        return LoadReference(references, job.mutant)
    source = str(job.source)
    if lacks := lacking(source, machine_of(DeviceKind(evaluation.device.type), GPU.version())):
        raise WorkerFailed(worker.handle, Outcome.SKIPPED, lacks)
    watched = evaluation.attribution is not None
    return LoadCandidate(source, entry_names(problem, source), watched, library.module is not None)


def _check_entries(worker: Worker, evaluation: Evaluation, reply: dict[str, Any]) -> None:
    """The candidate's file defines every function that is required. Raises WorkerFailed."""
    missing, defines = reply.get("missing"), reply.get("defines")
    if not isinstance(missing, list) or not isinstance(defines, list):
        raise WorkerFailed(worker.handle, Outcome.REJECTED, RuleBroken(Breach.MALFORMED), Where(Purpose.IMPORT))
    required = [overload.signature.name for overload in evaluation.problem.overloads if overload.required]
    wanted = next((name for name in required if name in missing), None)
    if wanted is not None:
        is_class = module_of(evaluation.problem) is not None
        none = NoEntry(wanted, tuple(map(told, defines[:20])), is_class)
        raise WorkerFailed(worker.handle, Outcome.COMPILE_ERROR, none)
