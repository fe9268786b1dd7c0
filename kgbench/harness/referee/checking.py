"""Whether a candidate is right: every case of an overload once, then some again with new values."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Final

import torch

from kgbench.core.kinds import DeviceKind, Phase
from kgbench.core.outcomes import Outcome
from kgbench.harness.mutants.applicability import why_not
from kgbench.harness.referee.evaluation import Evaluation, JudgedCase, Report
from kgbench.harness.referee.resources import Resources
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.verdict.repeat import can_repeat, judge_repetition
from kgbench.harness.verdict.verdicts import PASSED, Verdict
from kgbench.harness.workers.handle import WorkerFailed
from kgbench.harness.workers.started import Worker
from kgbench.problem.cases import BoundCase, Case, bind, case_bytes, choose_preset
from kgbench.problem.model import Overload

COPIES: Final = 5
"""Copies of a call's tensors that judging it takes at most: drawn, handed over, secured, compared, and the answer."""
LARGE_SHARE: Final = 0.5
"""Share of a device's memory that a call of phase ``large`` may take with all copies."""
ALONE_BYTES: Final = 1 << 30
"""Bytes of a large call's tensors from which on nobody else may work on the device meanwhile."""
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
        """Every check, fuzz and bench case of the overload, until one fails; of a suite every call."""
        evaluation, overload = self.evaluation, self.overload
        if words := why_not(evaluation.job.mutant, overload):
            return Verdict(Outcome.SKIPPED, words)
        kind, memory_gb = DeviceKind(self.resources.device.type), self.resources.memory_gb
        cases = evaluation.defences.cases.all_of(overload, kind, memory_gb, evaluation.seeds.shared("cases"))
        evaluation.preset = evaluation.preset or choose_preset(overload, kind, memory_gb)
        failed: Verdict | None = None
        for number, case in enumerate(cases, 1):
            label = f"{overload.name} {case.id}".strip()
            self.report("check", f"{label} ({number}/{len(cases)})")
            begun = evaluation.now()
            with evaluation.phase("check", case=label):
                verdict = self._check_large(case) if case.phase is Phase.LARGE else self._check_case(case)
            evaluation.cases.append(JudgedCase(case, verdict, evaluation.now() - begun))
            if verdict is not PASSED and not (case.phase is Phase.LARGE and verdict.outcome is Outcome.SKIPPED):
                failed = failed or verdict
                if not evaluation.job.suite or verdict.outcome.facts.ends_suite or not self.worker.handle.alive():
                    return failed
        return failed or self._recheck([case for case in cases if case.phase is not Phase.LARGE])

    def _recheck(self, cases: list[Case]) -> Verdict:
        """Repeat cases that were right, with new values and in secret number and order.

        Without it a kernel that answers from memory (same shape, same address) or only works for its first calls would
        pass where nothing is timed.
        """
        evaluation = self.evaluation
        choose = evaluation.seeds.chooser(f"again/{self.overload.name}")
        again = evaluation.defences.cases.rechecks(cases, self.judge.other_values, choose)
        twice = {0, 1, *[index for index, case in enumerate(again) if case.phase == Phase.BENCH][:1]}
        for number, case in enumerate(again, 1):
            self.report("check", f"{self.overload.name} again ({number}/{len(again)})".strip())
            purpose = f"again/{number}"
            with evaluation.phase("check", case=f"{self.overload.name} {case.id} {purpose}".strip()):
                verdict = self._check_case(case, purpose, number - 1 in twice)
            if verdict is PASSED:
                continue
            # Their values are for smaller sizes: more of a sum may overflow on its way.
            if case not in cases and self._library_fails_too(case, purpose, verdict):
                continue
            judged = next(each for each in evaluation.cases_of(self.overload) if each.case.id == case.id)
            judged.case, judged.verdict = case, verdict
            return replace(verdict, reason=f"right at first, then wrong: {verdict.reason}")
        return PASSED

    def _library_fails_too(self, case: Case, purpose: str, verdict: Verdict) -> bool:
        """Whether the library gets the very same call wrong as well, or nobody can be asked."""
        if verdict.outcome is not Outcome.WRONG_VALUE:
            return False
        library = self.resources.library.worker
        if library is None:
            return True
        deadlines = self.evaluation.settings.deadlines
        limit_s = deadlines.case_s + deadlines.compile_s
        generator = self._generator(case, purpose)
        call = self.judge.place(case, generator)
        try:
            return self.judge.check(library.side, case, call, generator, limit_s, False) is not PASSED
        except WorkerFailed as failure:
            self.evaluation.library = self.resources.library.lose(failure)
            return True

    # --- one call ---

    def _check_large(self, case: Case) -> Verdict:
        """One call that may need a good part of the device's memory; then nobody else works there."""
        bound, memory_gb = bind(self.overload, case), self.resources.memory_gb
        if words := lacks_memory(bound, memory_gb):
            return Verdict(Outcome.SKIPPED, words)
        if case_bytes(bound) < ALONE_BYTES:
            return self._check_case(case)
        with self.resources.turns.turn():
            verdict = self._check_case(case)
            if self.worker.handle.alive():
                self.worker.side.unmap()
            if self.resources.device.type == "cuda":
                torch.cuda.empty_cache()
        return verdict

    def _check_case(self, case: Case, purpose: str = "", twice: bool = False) -> Verdict:
        """One call of a case. ``purpose`` names its values; the first call, which all candidates get, has none.

        ``twice``: made again with the same values.
        """
        evaluation = self.evaluation
        remaining_s = evaluation.deadlines.whole_s - (evaluation.now() - evaluation.started)
        if remaining_s <= 0:
            words = f"case {case.id}: whole evaluation took over {evaluation.deadlines.whole_s:g} s"
            return Verdict(Outcome.TIMEOUT, words)
        generator = self._generator(case, purpose)
        first_calls = self.resources.first_calls
        call = self.judge.place(case, generator) if purpose else first_calls.of(evaluation, self.judge, case)
        try:
            limit_s = min(self._allowed_s(case), remaining_s)
            verdict = self._run(call, generator, limit_s, watched=not purpose, twice=twice)
        except WorkerFailed as failure:
            evaluation.keep_log(failure)
            if self.resources.device.type == "cuda" and failure.outcome is Outcome.RUNTIME_ERROR:
                # A device fault leaves the worker's CUDA context unusable.
                self.worker.handle.kill()
            return Verdict(failure.outcome, failure.reason)
        self.worker.side.warm.add(self._compile_class(case))
        if self.resources.device.type == "cuda" and torch.cuda.memory_reserved() > CACHED_DEVICE_BYTES:
            # Others on this device need it, too.
            torch.cuda.empty_cache()
        return verdict if verdict is PASSED else _with_case(verdict, case)

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
        translates = first or self.evaluation.job.trusted == "baseline"
        return deadlines.case_s + (deadlines.compile_s if translates else 0.0)

    def _compile_class(self, case: Case) -> str:
        """Calls of one class are taken to share what they compile."""
        return f"{self.overload.name}/{case.dtype}"

    def _generator(self, case: Case, purpose: str) -> torch.Generator:
        return self.evaluation.seeds.generator(f"{self.overload.name}/{case.id}/{purpose}")


def _with_case(verdict: Verdict, case: Case) -> Verdict:
    """The failure, with words that name the case, and its sizes where values are wrong."""
    sizes = "" if verdict.mismatch is None else f" {_sizes(case)}"
    return replace(verdict, reason=f"case {case.id}{sizes}: {verdict.reason}")


def _sizes(case: Case) -> str:
    shown = {name: value for name, value in case.variables.items() if isinstance(value, (int, float, str, bool))}
    return "(" + ", ".join(f"{name}={value}" for name, value in list(shown.items())[:12]) + ")"


def lacks_memory(bound: BoundCase, memory_gb: float) -> str:
    """Why a device of so much memory, in 10^9 bytes, cannot hold a large call; empty where it can."""
    needed_gb = COPIES * case_bytes(bound) / 1e9
    if needed_gb <= LARGE_SHARE * memory_gb:
        return ""
    return f"needs a GPU with {needed_gb / LARGE_SHARE:.0f} GB, this one has {memory_gb:.0f} GB"
