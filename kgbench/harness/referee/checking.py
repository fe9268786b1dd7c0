"""Whether a candidate is correct: every case of an overload once, then some again with new values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

import torch

from kgbench.core.details.absence import NotApplicable
from kgbench.core.details.failures import Deadline, Limit, Raised
from kgbench.core.details.values import Mismatch, RootMeanSquare
from kgbench.core.details.where import Purpose, Where
from kgbench.core.kinds import DeviceKind, Phase
from kgbench.core.outcomes import Outcome
from kgbench.core.verdicts import PASSED, Verdict
from kgbench.harness.machine import trace
from kgbench.harness.mutants.applicability import why_not
from kgbench.harness.referee.evaluation import Evaluation, JudgedCase, Report
from kgbench.harness.referee.large_calls import call_bytes, lacks_memory, needed_gb
from kgbench.harness.referee.resources import Resources
from kgbench.harness.referee.room import (
    CROWDED_PAUSES,
    give_back,
    is_costly,
    most_room,
    room,
    room_of_module,
    tried_again,
)
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.verdict.repeat import can_repeat, judge_repetition
from kgbench.harness.wire.device import GPU
from kgbench.harness.workers.handle import WorkerFailed
from kgbench.harness.workers.started import Worker
from kgbench.problem.cases import BoundCase, Case, bind, choose_preset
from kgbench.problem.model import Access, Overload

ALONE_BYTES: Final = 1 << 30
"""Bytes that a large call takes and returns from which on it reserves room."""
CACHED_DEVICE_BYTES: Final = 1 << 30
"""Device memory, in bytes, that PyTorch may keep cached in a referee between two cases."""


class Checker:
    """Judges calls of one overload in one worker."""

    def __init__(
        self, resources: Resources, evaluation: Evaluation, overload: Overload, worker: Worker, report: Report
    ) -> None:
        self.resources = resources
        self.evaluation = evaluation
        self.overload = overload
        self.worker = worker
        self.report = report
        self.judge = evaluation.judge(overload)

    def check(self) -> Verdict:
        """Every check, fuzz and bench case of the overload, until one fails; of a suite, and of an installed package's
        kernel, every call.
        """
        evaluation, overload = self.evaluation, self.overload
        kind, memory_gb = DeviceKind(self.resources.device.type), self.resources.memory_gb
        if words := why_not(evaluation.job.mutant, overload) or self.judge.unjudgeable:
            return Verdict(Outcome.SKIPPED, NotApplicable(words))
        cases = evaluation.defences.cases.all_of(overload, kind, memory_gb, evaluation.seeds.shared("cases"))
        evaluation.preset = evaluation.preset or choose_preset(overload, kind, memory_gb)
        goes_on = bool(evaluation.job.suite or evaluation.job.adapted)
        failed: Verdict | None = None
        lacking: Verdict | None = None
        for number, case in enumerate(self._as_there_is_room(cases), 1):
            label = f"{overload.name} {case.id}".strip()
            self.report("check", f"{label} ({number}/{len(cases)})")
            begun = evaluation.now()
            with evaluation.phase("check", case=label):
                verdict = self._judged(case)
            evaluation.cases.append(JudgedCase(case, verdict, evaluation.now() - begun))
            if evaluation.is_not_offered(verdict):
                lacking = lacking or verdict
            elif verdict is not PASSED and not (case.phase is Phase.LARGE and verdict.outcome is Outcome.SKIPPED):
                failed = failed or verdict
                if not goes_on or verdict.outcome.facts.ends_suite or not self.worker.handle.alive():
                    return failed
        judged = evaluation.repeatable_cases_of(overload)
        offered = [each.case for each in judged if lacking is None or each.verdict is PASSED]
        failed = failed or (self._recheck(offered) if offered else PASSED)
        return lacking if lacking is not None and failed is PASSED else failed

    def _recheck(self, cases: list[Case]) -> Verdict:
        """Repeat cases that were correct, with new values and in secret number and order.

        Without it a kernel that answers from memory (same shape, same address) or only works for its first calls would
        pass where nothing is timed.
        """
        evaluation = self.evaluation
        choose = evaluation.seeds.chooser(f"again/{self.overload.name}")
        costly = partial(is_costly, self.overload)
        again = evaluation.defences.cases.rechecks(cases, self.judge.other_values, choose, costly)
        twice = {0, 1, *[index for index, case in enumerate(again) if case.phase == Phase.BENCH][:1]}
        for number, case in enumerate(again, 1):
            self.report("check", f"{self.overload.name} again ({number}/{len(again)})".strip())
            with evaluation.phase("check", case=f"{self.overload.name} {case.id} again/{number}".strip()):
                verdict = self._check_case(case, number, number - 1 in twice)
            if verdict is PASSED or evaluation.is_not_offered(verdict):
                continue
            # Their values are for smaller sizes: more of a sum may overflow on its way.
            if case not in cases and self._library_fails_too(case, number, verdict):
                continue
            judged = next(each for each in evaluation.cases_of(self.overload) if each.case.id == case.id)
            judged.case, judged.verdict = case, verdict
            return verdict
        return PASSED

    def _library_fails_too(self, case: Case, again: int, verdict: Verdict) -> bool:
        """Whether the library fails the very same call too, or there is no library."""
        if verdict.outcome is not Outcome.WRONG_VALUE:
            return False
        library = self.resources.library.worker
        if library is None:
            return True
        deadlines = self.evaluation.settings.deadlines
        limit_s = deadlines.case_s + deadlines.compile_s
        generator = self._generator(case, again)
        call = self.judge.place(case, generator)
        try:
            return self.judge.check(library.side, case, call, generator, limit_s, False) is not PASSED
        except WorkerFailed as failure:
            self.evaluation.library = self.resources.library.lose(failure)
            return True

    # --- one call ---

    def _judged(self, case: Case) -> Verdict:
        """One call; where the candidate lacks memory, once more while no other large call is made on the device."""
        verdict = self._check_large(case) if case.phase is Phase.LARGE else self._check_case(case)
        resources = self.resources
        if not verdict.outcome.facts.may_be_crowded or resources.turns.is_alone or not self.worker.handle.alive():
            return verdict
        with trace.span("again with all room", case=case.id), room(resources, self.worker, most_room(resources)):
            return self._check_once(case, attempt=len(CROWDED_PAUSES) + 1)

    def _as_there_is_room(self, cases: Iterable[Case]) -> Iterator[Case]:
        """All of them; large calls for which others have the memory now come after the rest."""
        later = []
        for case in cases:
            nbytes = self._room_bytes(bind(self.overload, case)) if case.phase is Phase.LARGE else 0.0
            if nbytes and not self.resources.turns.has_room(nbytes, most_room(self.resources)):
                later.append(case)
            else:
                yield case
        yield from later

    def _room_bytes(self, bound: BoundCase) -> float:
        """Bytes of the device's memory that judging a large call reserves; 0 where it reserves none."""
        return 0.0 if call_bytes(self.judge, bound) < ALONE_BYTES else 1e9 * needed_gb(self.judge, bound)

    def _check_large(self, case: Case) -> Verdict:
        """One call that may need a good part of the device's memory, which it reserves."""
        bound = bind(self.overload, case)
        if lacking := lacks_memory(self.judge, bound, self.resources.memory_gb):
            return Verdict(Outcome.SKIPPED, lacking, Where(Purpose.CALL, case.overload, case.id))
        nbytes = self._room_bytes(bound)
        if not nbytes:
            return self._check_case(case)
        with room(self.resources, self.worker, nbytes):
            return self._attempts(case)

    def _check_case(self, case: Case, again: int = 0, twice: bool = False) -> Verdict:
        """One call of a case, tried again where others hold the memory that judging it takes. ``again``: which of the
        later ones, with its own values; 0 for the first, which all get. ``twice``: made again with the same values.
        """
        with room_of_module(self.resources, self.worker, self.overload, [case]):
            return self._attempts(case, again, twice)

    def _attempts(self, case: Case, again: int = 0, twice: bool = False) -> Verdict:
        attempt = partial(self._check_once, case, again, twice)
        return tried_again(self.resources.turns, attempt, partial(give_back, self.resources, self.worker))

    def _check_once(self, case: Case, again: int = 0, twice: bool = False, attempt: int = 0) -> Verdict:
        """One call of a case. ``attempt``: how often it found no memory before."""
        evaluation = self.evaluation
        remaining_s = evaluation.deadlines.whole_s - (evaluation.now() - evaluation.started)
        if remaining_s <= 0:
            late = Deadline(Limit.EVALUATION, evaluation.deadlines.whole_s)
            return _at(Verdict(Outcome.TIMEOUT, late), case, again)
        generator = self._generator(case, again)
        first_calls = self.resources.first_calls
        call = self.judge.place(case, generator) if again else first_calls.of(evaluation, self.judge, case)
        if attempt:
            # With the seeds of the attempt before, a random operator would repeat the numbers that were seen then.
            generator = self._generator(case, again, attempt)
        try:
            limit_s = min(self._allowed_s(case), remaining_s)
            verdict = self._run(call, generator, limit_s, watched=not again, twice=twice)
        except WorkerFailed as failure:
            evaluation.keep_log(failure)
            verdict = evaluation.said(failure)
            if self.resources.device.type == "cuda" and may_be_device_fault(verdict):
                # It leaves the worker's CUDA context unusable.
                self.worker.handle.kill()
            return _at(verdict, case, again)
        if _writes(call):
            self.worker.side.warm.add(self._compile_class(case))
        if self.resources.device.type == "cuda" and GPU.cached_bytes() > CACHED_DEVICE_BYTES:
            # Others on this device need it, too.
            GPU.release_cached()
        return verdict if verdict is PASSED else _at(verdict, case, again)

    def _run(self, call: PlacedCall, generator: torch.Generator, limit_s: float, watched: bool, twice: bool) -> Verdict:
        """Have the worker make the call. Raises WorkerFailed."""
        evaluation, side, case = self.evaluation, self.worker.side, call.case
        as_reference = evaluation.job.as_reference
        twice = twice and not as_reference and can_repeat(self.judge, call)
        call = replace(call, remembers=True) if twice else call
        watch = evaluation.attribution if watched else None
        with contextlib.nullcontext() if watch is None else watch.first_call(side, case):
            verdict = self.judge.check(side, case, call, generator, limit_s, as_reference)
        if verdict is PASSED and twice:
            verdict, same = judge_repetition(self.judge, side, case, call, generator, limit_s)
            evaluation.note_bits(same)
        return verdict

    def _allowed_s(self, case: Case) -> float:
        """Seconds that a call of the case may take, which may have to compile."""
        deadlines = self.evaluation.deadlines
        first = self._compile_class(case) not in self.worker.side.warm
        # A library may come without code for this GPU, and a case may be the first that has the driver translate some.
        # An installed package may compile for each shape.
        job = self.evaluation.job
        translates = first or job.trusted == "baseline" or bool(job.adapted)
        return deadlines.case_s + (deadlines.compile_s if translates else 0.0)

    def _compile_class(self, case: Case) -> str:
        """The class of a call; calls of one class are assumed to share compiled code."""
        return f"{self.overload.name}/{case.dtype}"

    def _generator(self, case: Case, again: int, attempt: int = 0) -> torch.Generator:
        values = f"again/{again}" if again else ""
        seeds = f"/attempt/{attempt}" if attempt else ""
        return self.evaluation.seeds.generator(f"{self.overload.name}/{case.id}/{values}{seeds}")


def _writes(call: PlacedCall) -> bool:
    """Whether a call has results with elements; one without launches nothing, so that nothing is compiled for it."""
    written = any(spec.elements for spec in call.inputs.bound.specs if spec.access is not Access.READ)
    return written or any(spec.elements for spec in call.specs)


def may_be_device_fault(verdict: Verdict) -> bool:
    """By the exception's words: PyTorch, Triton and cupy say CUDA then. Who hides one fails the next call."""
    raised = verdict.detail
    words = f"{raised.name} {raised.message}" if isinstance(raised, Raised) else "CUDA"
    return verdict.outcome is Outcome.RUNTIME_ERROR and "cuda" in words.lower()


def _at(verdict: Verdict, case: Case, again: int) -> Verdict:
    """The failure with its place, and with the case's sizes where values are wrong."""
    repeated = verdict.where is not None and verdict.where.repeated
    sizes = _sizes(case) if isinstance(verdict.detail, Mismatch | RootMeanSquare) else {}
    purpose = Purpose.AGAIN if again else Purpose.CALL
    return replace(verdict, where=Where(purpose, case.overload, case.id, again, repeated, sizes))


def _sizes(case: Case) -> dict[str, int | float | str | bool]:
    return {name: value for name, value in case.variables.items() if isinstance(value, (int, float, str, bool))}
