"""All outcomes of a candidate, with every fact about each, in one table. It prints ``docs/outcomes.md``.

Code that treats outcomes differently asks ``outcome.facts``. A new outcome is one entry here.

``python -m kgbench.core.outcomes > docs/outcomes.md`` writes the document again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Group(StrEnum):
    """Outcomes of one colour, in the order in which a page sorts them."""

    RIGHT = "right"
    WRONG = "wrong"
    BROKEN = "broken"
    LIMIT = "limit"
    REJECTED = "rejected"
    NONE = "none"
    UNJUDGED = "unjudged"
    OURS = "ours"

    @property
    def style(self) -> str:
        """Its colour on a terminal, in rich's words; on a page the class ``o-GROUP`` of page.css has it."""
        return {Group.RIGHT: "green", Group.NONE: "yellow", Group.UNJUDGED: "yellow"}.get(self, "red")


class Blame(StrEnum):
    """Whose fault an outcome is."""

    NOBODY = "nobody"
    CANDIDATE = "candidate"
    MACHINE = "machine"
    HARNESS = "harness"


class Log(StrEnum):
    """Which part of a candidate's log its author may see."""

    NOTHING = "nothing"
    TRACEBACK = "traceback"
    """The message of a compiler or an exception, without what could be a hidden input."""
    STACK = "stack"
    """The names of the frames in which the process died."""


class Listed(StrEnum):
    """How a report names the candidates of an outcome."""

    NOT = "not"
    EACH = "each"
    """Each candidate by itself, with the case, what was wrong and the log's end."""
    BY_REASON = "by reason"
    """The problems in one line per reason: nothing ran."""
    COUNTED = "counted"
    """Only the number of problems."""


class CiState(StrEnum):
    """The state of a test in a CI system; the text is JUnit's tag."""

    PASSED = "passed"
    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that is known of one outcome."""

    group: Group
    blames: Blame
    meaning: str
    """What happened, as the end of a sentence about the kernel; authors are told these words."""
    listed: Listed = Listed.EACH
    ci: CiState = CiState.FAILURE
    counts: bool = True
    """It counts in the denominators of scores; otherwise it is reported apart, below the table."""
    has_code: bool = True
    """There was code to judge, so the problem counts as submitted."""
    called: bool = True
    """The kernel came as far as being called, so it counts as compiled."""
    log_says_more: bool = False
    """The log's end explains it better than the reason: reports print it, and authors are not told the reason."""
    author_sees: Log = Log.NOTHING
    catches_mutants: bool = False
    """A mutant with it is caught. Mutants compute like the reference, so any other failure is kgbench's."""
    ends_suite: bool = False
    """No further call of a suite is judged: there is no worker to ask, or each would take until its deadline again."""
    may_be_device: bool = False
    """A broken device may have caused it, so the device is checked."""
    may_be_crowded: bool = False
    """Other candidates on the device may have caused it, so the candidate is judged again alone."""


class Outcome(StrEnum):
    """The verdict on one candidate. The set is closed: everything that can happen is one of these."""

    facts: Facts

    def __new__(cls, text: str, *facts: Facts) -> Outcome:
        # Always one; mypy takes Outcome("passed"), a look-up, for a call of this.
        member = str.__new__(cls, text)
        member._value_ = text
        (member.facts,) = facts
        return member

    PASSED = (
        "passed",
        Facts(
            group=Group.RIGHT,
            blames=Blame.NOBODY,
            meaning="every call that was judged is correct",
            listed=Listed.NOT,
            ci=CiState.PASSED,
        ),
    )
    WRONG_VALUE = (
        "wrong value",
        Facts(
            group=Group.WRONG,
            blames=Blame.CANDIDATE,
            meaning="it runs, and computes something else",
            catches_mutants=True,
        ),
    )
    WRONG_SHAPE = (
        "wrong shape",
        Facts(
            group=Group.WRONG,
            blames=Blame.CANDIDATE,
            meaning="a result has the wrong shape or strides",
            catches_mutants=True,
        ),
    )
    WRONG_DTYPE = (
        "wrong dtype",
        Facts(
            group=Group.WRONG,
            blames=Blame.CANDIDATE,
            meaning="a result has the wrong dtype",
            catches_mutants=True,
        ),
    )
    INPUT_CHANGED = (
        "input changed",
        Facts(
            group=Group.WRONG,
            blames=Blame.CANDIDATE,
            meaning="it wrote where it may not",
            catches_mutants=True,
        ),
    )
    COMPILE_ERROR = (
        "compile error",
        Facts(
            group=Group.BROKEN,
            blames=Blame.CANDIDATE,
            meaning="it does not compile",
            called=False,
            log_says_more=True,
            author_sees=Log.TRACEBACK,
        ),
    )
    RUNTIME_ERROR = (
        "runtime error",
        Facts(
            group=Group.BROKEN,
            blames=Blame.CANDIDATE,
            meaning="it raised an exception",
            log_says_more=True,
            author_sees=Log.TRACEBACK,
            may_be_device=True,
        ),
    )
    CRASHED = (
        "crashed",
        Facts(
            group=Group.BROKEN,
            blames=Blame.CANDIDATE,
            meaning="it took its whole process down, perhaps by reading or writing outside its tensors",
            log_says_more=True,
            author_sees=Log.STACK,
            ends_suite=True,
            may_be_device=True,
        ),
    )
    TIMEOUT = (
        "timeout",
        Facts(
            group=Group.LIMIT,
            blames=Blame.CANDIDATE,
            meaning="it did not answer in time",
            ends_suite=True,
            may_be_device=True,
        ),
    )
    OUT_OF_MEMORY = (
        "out of memory",
        Facts(
            group=Group.LIMIT,
            blames=Blame.CANDIDATE,
            meaning="it took more memory than there is",
            author_sees=Log.TRACEBACK,
            may_be_crowded=True,
        ),
    )
    REJECTED = (
        "rejected",
        Facts(
            group=Group.REJECTED,
            blames=Blame.CANDIDATE,
            meaning="it broke the rules of the calling convention, the policy or the sandbox",
            catches_mutants=True,
        ),
    )
    NO_CANDIDATE = (
        "no candidate",
        Facts(
            group=Group.NONE,
            blames=Blame.CANDIDATE,
            meaning="nothing was submitted for the problem",
            listed=Listed.COUNTED,
            has_code=False,
            called=False,
        ),
    )
    NO_CODE = (
        "no code",
        Facts(
            group=Group.NONE,
            blames=Blame.CANDIDATE,
            meaning="no code was found in the reply",
            listed=Listed.BY_REASON,
            has_code=False,
            called=False,
        ),
    )
    SKIPPED = (
        "skipped",
        Facts(
            group=Group.NONE,
            blames=Blame.MACHINE,
            meaning="it cannot run on this machine",
            listed=Listed.BY_REASON,
            ci=CiState.SKIPPED,
            called=False,
            ends_suite=True,
        ),
    )
    NOT_INTERPRETABLE = (
        "not interpretable",
        Facts(
            group=Group.UNJUDGED,
            blames=Blame.NOBODY,
            meaning="it asks for what Triton's interpreter, which runs it where there is no GPU, does not have",
            listed=Listed.BY_REASON,
            ci=CiState.SKIPPED,
            counts=False,
            called=False,
            author_sees=Log.TRACEBACK,
        ),
    )
    NOT_OFFERED = (
        "not offered",
        Facts(
            group=Group.UNJUDGED,
            blames=Blame.NOBODY,
            meaning="an installed package's kernel does not take some of the calls, and is correct in those it takes",
            listed=Listed.BY_REASON,
            ci=CiState.SKIPPED,
            counts=False,
            called=False,
        ),
    )
    HARNESS_ERROR = (
        "harness error",
        Facts(
            group=Group.OURS,
            blames=Blame.HARNESS,
            meaning="the judge failed, not the kernel; nothing is known about it",
            ci=CiState.ERROR,
            log_says_more=True,
            ends_suite=True,
        ),
    )

    @property
    def is_failure(self) -> bool:
        """The candidate failed, or kgbench did; not what passed, nor what cannot be judged here."""
        return self.facts.blames in (Blame.CANDIDATE, Blame.HARNESS)


_HEAD: Final = """\
# Outcomes

Printed from `kgbench/core/outcomes.py` by `python -m kgbench.core.outcomes > docs/outcomes.md`; do not edit it by hand.

The outcome is the first word of a verdict, on a candidate, an overload or a case. The set is closed: what can become of
a candidate is one of these. A candidate has the outcome of its first required overload that did not pass. Only
`passed` is correct. In the sentences, *it* is the kernel; the colour is the one of `kgbench export --format page`.

| outcome | what happened | whose fault | colour |
|---|---|---|---|"""

_FOLLOWS: Final[dict[str, Callable[[Facts], bool]]] = {
    "stands in no denominator; a run with it is a subset of the problems": lambda facts: not facts.counts,
    "counts as submitted": lambda facts: facts.has_code,
    "a case with it counts as compiled": lambda facts: facts.called,
    "a mutant with it is caught": lambda facts: facts.catches_mutants,
    "no further call of a suite is judged": lambda facts: facts.ends_suite,
    "the device is checked, which may have caused it": lambda facts: facts.may_be_device,
    "the candidate is judged again alone, since its neighbours may have caused it": lambda facts: facts.may_be_crowded,
    "judged again when a run is resumed": lambda facts: facts.blames is Blame.HARNESS,
    "reports list each candidate": lambda facts: facts.listed is Listed.EACH,
    "reports list the problems by reason": lambda facts: facts.listed is Listed.BY_REASON,
    "reports count the problems": lambda facts: facts.listed is Listed.COUNTED,
    "reports print the log's end": lambda facts: facts.log_says_more,
    "an author is told the compiler's or the exception's message": lambda facts: facts.author_sees is Log.TRACEBACK,
    "an author is told the stack": lambda facts: facts.author_sees is Log.STACK,
    "a failure in JUnit, an error annotation on GitHub": lambda facts: facts.ci is CiState.FAILURE,
    "an error in JUnit, an error annotation on GitHub": lambda facts: facts.ci is CiState.ERROR,
    "skipped in JUnit, a warning annotation on GitHub": lambda facts: facts.ci is CiState.SKIPPED,
}
"""What follows from an outcome, in words, and when."""


def document() -> str:
    """The text of docs/outcomes.md."""
    told = [(each, each.facts) for each in Outcome]
    rows = [f"| `{each}` | {facts.meaning} | {facts.blames} | {facts.group} |" for each, facts in told]
    follows = ["", "## What follows", "", "| what | of |", "|---|---|"]
    for words, holds in _FOLLOWS.items():
        follows.append(f"| {words} | {', '.join(f'`{each}`' for each, facts in told if holds(facts))} |")
    return "\n".join([_HEAD, *rows, *follows]) + "\n"


if __name__ == "__main__":
    print(document(), end="")
