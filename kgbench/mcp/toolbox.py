"""The tools without the protocol. One evaluator is kept open between calls.

Everything said about a verdict comes from ``prompts/feedback.py``, as between two rounds of a model: no input, no
expected value, no size of a hidden call, no tolerance.
"""

from __future__ import annotations

import secrets
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kgbench.core.errors import UsageError
from kgbench.core.figures import ratio_text
from kgbench.core.outcomes import Group, Outcome
from kgbench.core.types import first_failure
from kgbench.evaluation.evaluator import Checked, Evaluator
from kgbench.harness.session.cancellation import Cancellation
from kgbench.llm.conversation import MAX_SOURCE_BYTES
from kgbench.policy.hints import hints
from kgbench.problem.model import Problem
from kgbench.problem.problem_cache import ProblemCache
from kgbench.problem.registry import load_summary
from kgbench.prompts.facts import torch_facts
from kgbench.prompts.feedback import verdict_words
from kgbench.prompts.render import LANGUAGES, PromptOptions, prompt_for

KEPT: Final = 256
"""Verdicts that can be explained; older ones are forgotten."""
MOST_LISTED: Final = 200
"""Problems that one call lists at most."""
MOST_HINTS: Final = 5
"""Most lines of a kernel that an explanation says to be a library's work."""

_NEXT: Final = {
    Group.WRONG: "Compare with a plain PyTorch expression of your own, on small, empty, strided and special inputs. "
    "The problem's text says which sizes, dtypes, strides and values may come.",
    Group.BROKEN: "Start at the first line of your own in the message.",
    Group.LIMIT: "Look for loops that depend on sizes, for too many compiled variants, and for temporary tensors.",
    Group.REJECTED: "The kernel itself must do the work: launch your own kernels and leave the arithmetic to no "
    "library. The problem's text says what may be called.",
    Group.NONE: "Give the whole text of one Python file that defines the entry.",
    Group.UNJUDGED: "Nothing is known about it here. Write it without what cannot run here, or judge it on a GPU.",
    Group.OURS: "This is no fault of the kernel. Try again; if it stays, tell the server's operator.",
}
"""Advice for the author, by the sort of outcome."""

Say = Callable[[str], None]
"""Called with a word for what is being done, from the thread that does it."""


@dataclass(frozen=True)
class Judged:
    """One verdict, kept so that it can be explained."""

    id: str
    problem: Problem
    code: str
    result: Checked

    @property
    def words(self) -> str:
        return verdict_words(self.problem, self.result, code=self.code)

    def facts(self) -> dict[str, Any]:
        """JSON-ready: what a program reads instead of the words."""
        right = self.result.outcome is Outcome.PASSED
        return {
            "verdict": self.id,
            "problem": self.problem.id,
            "outcome": str(self.result.outcome),
            "right": right,
            "speedup": self.result.speedup if right else None,
        }


class Toolbox:
    """The tools. May be used from many threads; ``close`` ends what it has started.

    Args:
        evaluator: opens the evaluator when a kernel is judged for the first time, and again after ``idle_s``.
        problems: each is read once, so that all verdicts and explanations of a server are of one text.
        idle_s: seconds without a call after which the evaluator is closed, so that others get its GPU.
    """

    def __init__(self, evaluator: Callable[[], Evaluator], problems: ProblemCache, *, idle_s: float = 600.0) -> None:
        self._open = evaluator
        self._problems = problems
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._evaluator: Evaluator | None = None
        self._users = 0
        self._closed = False
        self._timer: threading.Timer | None = None
        self._kept: OrderedDict[str, Judged] = OrderedDict()

    def close(self) -> None:
        """End the evaluator with all its processes; whoever waits for a verdict gets SessionClosed."""
        with self._lock:
            self._closed = True
            self._end()

    # --- problems ---

    def list_problems(self, source: str, match: str, after: str, limit: int) -> dict[str, Any]:
        """Problems by id, behind ``after``. Raises UsageError for a source or pattern that fits none."""
        registry = self._problems.registry
        ids = sorted(registry.select((source,) if source else (), (match,) if match else ()))
        rest = [each for each in ids if each > after]
        shown = rest[: max(1, min(limit, MOST_LISTED))]
        found = [load_summary(registry.paths[each]) for each in shown]
        rows = [{"id": f.id, "kind": f.kind, "category": f.category, "summary": f.summary} for f in found]
        return {"problems": rows, "number": len(ids), "next": shown[-1] if len(shown) < len(rest) else None}

    def read_problem(self, name: str, language: str) -> str:
        """What a model is asked, as ``kgbench prompt`` prints it. Raises UsageError."""
        if language not in LANGUAGES:
            raise UsageError("KGB520", f"there is no language {language!r}; there is {', '.join(LANGUAGES)}")
        problem = self._problems.load(name)
        prompt = prompt_for(problem, PromptOptions(language), torch_facts([problem]))
        return "\n".join((prompt.system, *(turn.text for turn in prompt.turns)))

    # --- kernels ---

    def judge(self, name: str, code: str, *, timing: bool, say: Say, cancellation: Cancellation) -> Judged:
        """The verdict on a kernel's text. Raises UsageError, MachineError, Cancelled."""
        if len(code.encode(errors="replace")) > MAX_SOURCE_BYTES:
            raise UsageError("KGB176", f"the kernel has more than {MAX_SOURCE_BYTES} bytes; nothing was judged")
        if not code.strip():
            raise UsageError("KGB176", "the kernel is empty; give the whole text of its file")
        problem = self._problems.load(name)
        say("start")
        evaluator = self._taken()
        try:
            result = evaluator.check(
                problem.id, code, timing=timing, on_event=lambda phase, detail: say(phase), cancellation=cancellation
            )
        finally:
            self._given_back()
        judged = Judged(secrets.token_hex(4), problem, code, result)
        with self._lock:
            self._kept[judged.id] = judged
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return judged

    def explain(self, verdict: str) -> str:
        """A verdict at length, and what to do next. Raises UsageError for one that is not kept."""
        with self._lock:
            judged = self._kept.get(verdict)
        if judged is None:
            raise UsageError("KGB176", f"there is no verdict {verdict!r} here; judge the kernel again and take its id")
        return "\n".join(_explained(judged))

    # --- the evaluator ---

    def _taken(self) -> Evaluator:
        with self._lock:
            if self._closed:
                raise UsageError("KGB176", "the server is being ended")
            if self._timer is not None:
                self._timer.cancel()
            if self._evaluator is None:
                self._evaluator = self._open()
            self._users += 1
            return self._evaluator

    def _given_back(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users and not self._closed:
                self._timer = threading.Timer(self._idle_s, self._idle)
                self._timer.daemon = True
                self._timer.start()

    def _idle(self) -> None:
        with self._lock:
            if not self._users:
                self._end()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._evaluator is not None:
            self._evaluator.close()
            self._evaluator = None


def _explained(judged: Judged) -> Iterator[str]:
    result, problem = judged.result, judged.problem
    yield judged.words
    if result.outcome is Outcome.PASSED:
        slow = [case for case in result.cases if case.timing is not None and case.timing.ratio < 1]
        if slow:
            worst = min(case.timing.ratio for case in slow if case.timing is not None)
            yield f"Timed calls in which the library is faster: {len(slow)}; the worst is {ratio_text(worst)}x."
        return
    case = first_failure(result)
    if case is not None:
        entry = next((each for each in problem.overloads if each.name == case.overload), None)
        if entry is not None:
            yield f"\nThe entry: `{entry.signature.text}`"
        yield from _counted(judged)
    if result.outcome.facts.group in (Group.REJECTED, Group.WRONG):
        found = hints(problem, judged.code)
        if found:
            yield "\nWhat the text seems to leave to others, which may be wrong and decides nothing:"
            yield from (f"- {hint}" for hint in found[:MOST_HINTS])
    yield f"\nNext: {_NEXT[result.outcome.facts.group]}"


def _counted(judged: Judged) -> Iterator[str]:
    """Judged and correct calls per dtype: dtypes are no secret."""
    cases = judged.result.cases
    if len({case.dtype for case in cases}) < 2:
        return
    all_of = Counter(case.dtype for case in cases)
    right = Counter(case.dtype for case in cases if case.outcome is Outcome.PASSED)
    yield "Calls judged, by dtype: " + ", ".join(f"{name or 'other'} {right[name]} of {all_of[name]} correct"
                                                for name in sorted(all_of))  # fmt: skip
