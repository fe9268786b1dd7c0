"""Figures as a person reads them: few digits, a unit, and a dash or ``unknown`` for what is not there."""

from __future__ import annotations

from typing import Final

ABSENT: Final = "–"
UNKNOWN: Final = "unknown"
_SECONDS: Final = ((3600.0, "h"), (60.0, "min"), (1.0, "s"))


def percent(share: float | None) -> str:
    """``12.5 %``"""
    return ABSENT if share is None else f"{100 * share:.1f} %"


def count_text(number: float) -> str:
    """A count, or a mean of counts over samples: ``12``, ``12.5``."""
    return f"{number:.0f}" if number == int(number) else f"{number:.1f}"


def ratio_text(ratio: float) -> str:
    """Two decimals, and more where two would say little: 0.83, 0.0021, 12.34."""
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def dollars(usd: float | None) -> str:
    """``$3.21``, and more digits where two would say little: ``$0.064``, ``$0.00012``."""
    if usd is None:
        return UNKNOWN
    return f"${usd:,.2f}" if usd >= 0.1 or usd == 0 else f"${_two_digits(usd)}"


def size(count: int) -> str:
    """Bytes: ``1.0 MB``, ``14 kB``"""
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.0f} kB"


def tokens(count: float | None) -> str:
    """``812``, ``24 k``, ``1.2 M``"""
    if count is None:
        return UNKNOWN
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        # From where it would be rounded up to one of the unit.
        if count >= 0.9995 * unit:
            return f"{_short(count / unit)} {name}"
    return f"{count:.0f}"


def duration(seconds: float) -> str:
    """``8.1 s``, ``38 s``, ``31 min``, ``2.1 h``"""
    unit, name = next(((unit, name) for unit, name in _SECONDS if seconds >= 2 * unit), _SECONDS[-1])
    return f"{_short(seconds / unit)} {name}"


def _short(number: float) -> str:
    return f"{number:.1f}" if number < 9.95 else f"{number:.0f}"


def _two_digits(number: float) -> str:
    """Two significant digits, never with an exponent."""
    digits = f"{number:.1e}"
    return f"{float(digits):.{1 - int(digits.partition('e')[2])}f}"
