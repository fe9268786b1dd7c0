"""Text about the attribution evidence of candidates, for the report and ``kgbench show``. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kgbench.core.details.sentences import evidence_words
from kgbench.core.kinds import PolicyMode
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result

NAMED: Final = 5
"""Most problems that one line names. It gives the number of the others."""


def lines(result: Result) -> Iterator[str]:
    """One line per piece of evidence of a result; those that the policy forbids come first."""
    for each in sorted(result.evidence, key=lambda one: one.allowed):
        yield f"{'seen' if each.allowed else 'NOT ALLOWED'}: {evidence_words(each)}"


def notes(results: Sequence[Result]) -> tuple[str, ...]:
    """Footnotes of a report: correct candidates that used forbidden library calls, and results without a policy."""
    right = [result for result in results if result.outcome is Outcome.PASSED]
    helped = sorted({result.problem for result in right if any(not each.allowed for each in result.evidence)})
    found = []
    if helped:
        more = f" and {len(helped) - NAMED} more" if len(helped) > NAMED else ""
        one = len(helped) == 1
        found.append(
            f"Policy: correct, but by {'its' if one else 'their'} evidence others did the work: "
            f"{', '.join(helped[:NAMED])}{more}. `kgbench show RUN/ID` says who; --policy strict rejects "
            f"{'it' if one else 'them'}."
        )
    if any(result.policy == PolicyMode.OFF for result in right):
        found.append("Policy off: nobody asked whose work these kernels are (docs/policy.md).")
    return tuple(found)
