"""What candidates were seen to do, in words for the report and for ``kgbench show``. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kgbench.core.kinds import PolicyMode
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Evidence, Result

NAMED: Final = 5
NAME_CHARS: Final = 90


def words(evidence: Evidence) -> str:
    """One piece of evidence as a sentence: ``operator aten::mm (3 times, 98% of the time) in case 1-float32: …``."""
    facts = [f"{evidence.count} times" if evidence.count > 1 else ""]
    facts.append("" if evidence.share is None else f"{evidence.share:.0%} of the time")
    told = ", ".join(filter(None, facts))
    # What PyTorch's kernels are about stands behind many words that all of them have.
    before, its, rest = evidence.name.removeprefix("void ").partition("at::native::")
    name = before + its + rest.replace(its, "") if its else before
    if len(name) > NAME_CHARS:
        name = f"{name[: NAME_CHARS - 30]}...{name[-27:]}"
    where = f" in case {evidence.where}" if evidence.where else ""
    why = f": {evidence.why}" if evidence.why else ""
    return f"{evidence.kind} {name}{f' ({told})' if told else ''}{where}{why}"


def lines(result: Result) -> Iterator[str]:
    """All evidence of a result, what is not allowed first."""
    for each in sorted(result.evidence, key=lambda one: one.allowed):
        yield f"{'seen' if each.allowed else 'NOT ALLOWED'}: {words(each)}"


def notes(results: Sequence[Result]) -> tuple[str, ...]:
    """Footnotes of a report: right candidates that had others do their work, and what nobody was asked about."""
    right = [result for result in results if result.outcome is Outcome.PASSED]
    helped = sorted({result.problem for result in right if any(not each.allowed for each in result.evidence)})
    found = []
    if helped:
        more = f" and {len(helped) - NAMED} more" if len(helped) > NAMED else ""
        one = len(helped) == 1
        found.append(
            f"Policy: right, but by {'its' if one else 'their'} evidence others did the work: "
            f"{', '.join(helped[:NAMED])}{more}. `kgbench show RUN/ID` says who; --policy strict rejects "
            f"{'it' if one else 'them'}."
        )
    if any(result.policy == PolicyMode.OFF for result in right):
        found.append("Policy off: nobody asked whose work these kernels are (docs/policy.md).")
    return tuple(found)
