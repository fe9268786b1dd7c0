"""Guesses what is wrong with a kernel from its first wrong element and from the cases that were correct before.

Pure. A guess is made only where the data fit it, and begins with "perhaps": one element and a share are all there is.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kgbench.core.details.outputs import Shape
from kgbench.core.details.values import Mismatch, RootMeanSquare
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult
from kgbench.problem.model import Access

_TOGETHER: Final = (
    "each element is within its limit and all together are not: perhaps products or sums are kept in fewer bits"
)
_NOT_TOLD: Final = ("dtype", "itemsize")
_ENOUGH: Final = 5
"""Fewest correct cases before something is called new in the failing one."""
_SMALL: Final = 0.005
"""Relative error of arithmetic in too few bits: bfloat16 keeps 2^-9 of a value."""


@dataclass(frozen=True)
class _Evidence:
    case: CaseResult
    wrong: Mismatch
    passed: Sequence[CaseResult]
    access: str
    """Access of the output as the problem file says; empty for a returned tensor."""
    hidden: bool
    """The case's sizes may not be told, nor where in them it is wrong."""

    @property
    def count(self) -> int:
        """Wrong elements."""
        return round(self.wrong.wrong_share * math.prod(self.wrong.shape))


def guess(
    failing: CaseResult, cases: Sequence[CaseResult], access: Mapping[str, str], *, hidden: bool = False
) -> str | None:
    """What perhaps is wrong, in one sentence; None where nothing fits.

    ``cases``: all that were judged. ``access``: per written argument ``write`` or ``readwrite``. ``hidden``: the case's
    sizes may not be told.
    """
    match failing.detail:
        case Shape(got=got, expected=right):
            return "perhaps the result is transposed" if got != right and got == right[::-1] else None
        case RootMeanSquare():
            return _TOGETHER
    if failing.mismatch is None:
        return None
    passed = [each for each in cases if each.overload == failing.overload and each.outcome is Outcome.PASSED]
    evidence = _Evidence(failing, failing.mismatch, passed, access.get(failing.mismatch.output, ""), hidden)
    return next((words for rule in _RULES if (words := rule(evidence))), None)


def _nan(evidence: _Evidence) -> str | None:
    """NaN on one side only. What a kernel must not read, and outputs before they are written, are NaN."""
    got, wanted = (_has(text, cmath.isnan) for text in (evidence.wrong.got, evidence.wrong.wanted))
    variables, output = evidence.case.variables, evidence.wrong.output
    if wanted and not got:
        return "NaN is expected here: perhaps a comparison, a maximum or a mask drops it"
    if wanted or not got:
        return None
    if evidence.access == Access.WRITE:
        return f"{output} holds NaN before the call: perhaps this is never written, or something that is NaN is read"
    if variables.get("pad") and evidence.wrong.wrong_share > 0.5:
        return f"padding holds NaN and pad is {variables['pad']}: perhaps it is read"
    if evidence.access and variables.get("beta") == 0:
        return f"beta is 0 and {output} may hold NaN before the call: perhaps it is read all the same"
    return "perhaps an intermediate result overflows (inf - inf, inf / inf), or something that is NaN is read"


def _infinite(evidence: _Evidence) -> str | None:
    if _has(evidence.wrong.got, cmath.isinf) and not _has(evidence.wrong.wanted, cmath.isinf):
        return "perhaps an intermediate result overflows"
    return None


def _precision(evidence: _Evidence) -> str | None:
    """A small relative error."""
    error = _relative_error(evidence.wrong)
    if error is None or not 0 < error < _SMALL:
        return None
    return f"it is off by only {100 * error:.2g} %: perhaps something is kept in too few bits, or rounded too early"


def _relative_error(wrong: Mismatch) -> float | None:
    got, wanted = _number(wrong.got), _number(wrong.wanted)
    return None if got is None or not wanted else abs(got - wanted) / abs(wanted)


def _number(text: str) -> complex | None:
    """None for truth values."""
    try:
        return complex(text)
    except ValueError:
        return None


def _has(text: str, sort: Callable[[complex], bool]) -> bool:
    number = _number(text)
    return number is not None and sort(number)


def _transposed(evidence: _Evidence) -> str | None:
    """Transposing leaves ``gcd(m - 1, mn - 1) + 1`` elements of row-major storage where they are."""
    shape, index = evidence.wrong.shape, evidence.wrong.index
    if len(shape) != 2 or min(shape) < 2 or math.prod(shape) < 9 or index != (0, 1):
        return None
    total = math.prod(shape)
    staying = math.gcd(shape[0] - 1, total - 1) + 1
    if evidence.count != total - staying:
        return None
    return "only the elements that transposing leaves in their place are correct: perhaps the result is transposed"


def _tail(evidence: _Evidence) -> str | None:
    """The wrong elements begin where a dimension's last part does, and are about as many as it has."""
    shape, index = evidence.wrong.shape, evidence.wrong.index
    if len(shape) != len(index):
        return None
    for axis, begin in enumerate(index):
        others = index[:axis] + index[axis + 1 :]
        block = math.prod(shape) * (shape[axis] - begin) / shape[axis]
        late = begin > shape[axis] / 2 or (begin and begin == shape[axis] - 1)
        if late and not any(others) and block / 2 < evidence.count <= block + 0.5:
            return _tail_words(shape, axis, None if evidence.hidden else begin, last=begin == shape[axis] - 1)
    if len(shape) == 2 and shape[0] > 1 and index and index[0] == shape[0] - 1:
        return "every row but the last is correct: perhaps a mask or a grid is short at the edge"
    return None


def _tail_words(shape: tuple[int, ...], axis: int, begin: int | None, last: bool) -> str:
    line = ("row", "column")[axis] if len(shape) == 2 else "element" if len(shape) == 1 else ""
    if line and last:
        return f"perhaps the last {line} is left out"
    if line:
        tile = f"tile of {line}s" if begin is None else f"tile, {line}s from {begin} on,"
        return f"perhaps the last {tile} is left out"
    since = "" if begin is None else f", from {begin} on,"
    return f"perhaps the last {'index' if last else 'tile'} of dimension {axis}{since} is left out"


def _beta(evidence: _Evidence) -> str | None:
    beta = evidence.case.variables.get("beta")
    before = {_key(each.variables.get("beta")) for each in evidence.passed}
    if not beta or before != {_key(0)}:
        return None
    return f"beta is {beta} and was 0 in every correct case: perhaps beta is ignored"


def _zero(evidence: _Evidence) -> str | None:
    if _relative_error(evidence.wrong) != 1.0 or complex(evidence.wrong.got) != 0:
        return None
    return "it is exactly 0: perhaps nothing is computed or stored here"


def _new(evidence: _Evidence) -> str | None:
    """The one thing that no correct case had, where all of those agreed."""
    new = []
    for name, value in evidence.case.variables.items():
        before = {_key(each.variables.get(name)) for each in evidence.passed}
        if name not in _NOT_TOLD and len(before) == 1 and _key(value) not in before:
            new.append(f"{name} = {value}")
    if len(new) != 1 or len(evidence.passed) < _ENOUGH:
        return None
    return f"no correct case has {new[0]}: perhaps that is not handled"


def _key(value: Any) -> str:
    """Equal for equal values; 0 and 0.0 are one, lists and tuples too."""
    return repr(float(value)) if isinstance(value, (int, float)) else str(value).replace("(", "[").replace(")", "]")


_RULES: Final[tuple[Callable[[_Evidence], str | None], ...]] = (
    _transposed, _tail, _nan, _infinite, _precision, _beta, _zero, _new,
)  # fmt: skip
