"""OpenBLAS's declarations in cblas.h, and the function for each routine of cuBLAS. No torch, no library is loaded.

The header lies in the wheel ``scipy-openblas32``. A signature is compared with it before the function is called: ctypes
would pass wrong arguments unchecked, and OpenBLAS would read an order flag as a size.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from pathlib import Path
from typing import Final

from kgbench.problem.blas import LETTERS

WHEEL: Final = "scipy_openblas32"
NAME: Final = re.compile(r"cublas([HSDCZ])([a-z0-9]+?)(?:_v2|Batched|StridedBatched|Ex)?(?:_64)?")
"""Precision and stem of a routine that OpenBLAS may have."""
COMPOSED: Final = ("geam", "dgmm")
"""Stems of routines that CBLAS lacks and ``openblas.py`` composes of its calls; complex ``symv`` is another."""

_LETTERS: Final = {
    "CBLAS_TRANSPOSE": "T", "CBLAS_UPLO": "U", "CBLAS_DIAG": "D", "CBLAS_SIDE": "L", "CBLAS_ORDER": "O",
    "CBLAS_LAYOUT": "O", "blasint": "i", "float": "s", "double": "d",
}  # fmt: skip
"""Letter of an argument that is passed by value, by a word of its C type; ``O`` is the order of a matrix's elements."""
_POINTER: Final = "p"
_RETURNS: Final = {"float": "s", "double": "d"}
_ONE_MATRIX: Final = str.maketrans({"a": "p", "I": "i", "h": "s", "l": None, "e": None})
"""Translates a signature's letters to those of the routine for one matrix of fixed type."""


def has_matrix(letters: str) -> bool:
    """Whether a routine works on matrices, so that CBLAS first takes their order: it has a flag, or two sizes."""
    sizes = letters[: next((place for place, letter in enumerate(letters) if letter in "pa"), len(letters))]
    return bool(set(letters) & set("TULD")) or sizes.count("i") > 1


def is_batched(letters: str) -> bool:
    """Whether a routine works on a batch of matrices, where CBLAS's function takes one."""
    return "l" in letters or "a" in letters


def one_matrix(letters: str) -> str:
    """The letters of the routine for one matrix; unchanged if the routine is not batched."""
    return (letters[:-1] if is_batched(letters) else letters).translate(_ONE_MATRIX)


def symbol(precision: str, stem: str, letters: str) -> str:
    """CBLAS's name: ``cblas_sdot``, ``cblas_zdotc_sub`` where a complex result is written to memory."""
    by_address = letters.endswith("r") and precision not in _REAL
    return f"cblas_{precision}{stem}{'_sub' if by_address else ''}"


def why_not(routine: str, letters: str) -> str:
    """What is wrong with a routine of these letters on the CPU; empty if nothing is, or without the header."""
    found = NAME.fullmatch(routine)
    if found is None:
        return f"{routine} is no routine of CBLAS: its name has to be cublas, one of H, S, D, C and Z, and a routine's"
    precision, stem = found[1].lower(), found[2]
    if header() is None or is_composed(precision, stem, letters):
        return ""
    return difference(symbol(precision, stem, letters), one_matrix(letters))


def lacking(routine: str, letters: str) -> str:
    """The function of CBLAS that the installed OpenBLAS does not declare; empty where it declares it."""
    found = NAME.fullmatch(routine)
    if found is None or header() is None or is_composed(found[1].lower(), found[2], letters):
        return ""
    name = symbol(found[1].lower(), found[2], letters)
    return "" if prototype(name) is not None else f"the OpenBLAS here declares no {name}, so none is called on a CPU"


def is_composed(precision: str, stem: str, letters: str) -> bool:
    """Whether ``openblas.py`` composes the routine of other calls."""
    by_float32 = stem == "gemm" and (precision == "h" or (precision == "s" and "e" in letters))
    return by_float32 or stem in COMPOSED or (stem == "symv" and precision not in _REAL)


def difference(name: str, letters: str) -> str:
    """Where the letters of a routine for one matrix differ from cblas.h's declaration; empty if nowhere.

    Also empty if there is no header or it has no such function.
    """
    found = prototype(name)
    if found is None:
        return ""
    returned, declared = found
    given = ("O" if has_matrix(letters) else "") + (letters[:-1] if returned else letters)
    wanted = "".join(_by_value(letter) for letter in given)
    if returned and letters[-1:] != "r":
        return f"{name} returns a scalar, so the signature ends with 'r', not '{letters[-1:]}'"
    if len(wanted) != len(declared):
        order = len(wanted) - len(given.replace("O", ""))
        return (
            f"{name} takes {len(declared) - declared.count('O')} arguments in cblas.h, and '{letters}' has "
            f"{len(wanted) - order}"
        )
    for place, (letter, meant) in enumerate(zip(wanted, declared, strict=True), 1):
        if letter != meant:
            what = f"argument {place} of {name} is {_words(meant)} in cblas.h"
            return f"{what}, and '{letters}' makes it {_words(letter)}"
    return ""


def prototype(name: str) -> tuple[str, str] | None:
    """Letters of a CBLAS function's result (empty for none) and of its arguments; None if it is not declared."""
    text = header()
    found = re.search(rf"^\s*(\w+)\s+(?:scipy_)?{name}\s*\(([^)]*)\)", text or "", re.MULTILINE)
    if found is None:
        return None
    return _RETURNS.get(found[1], ""), "".join(map(_letter, found[2].split(",")))


@functools.cache
def header() -> str | None:
    """The text of cblas.h; None if the wheel is not installed or has none."""
    spec = importlib.util.find_spec(WHEEL)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    path = next((path for folder in folders if (path := Path(folder) / "include" / "cblas.h").is_file()), None)
    return None if path is None else path.read_text(encoding="utf-8", errors="replace")


_REAL: Final = ("h", "s", "d")


def _letter(parameter: str) -> str:
    if "*" in parameter:
        return _POINTER
    return next((letter for word, letter in _LETTERS.items() if re.search(rf"\b{word}\b", parameter)), "?")


def _by_value(letter: str) -> str:
    return letter if letter in "OTULDisd" else _POINTER


def _words(letter: str) -> str:
    known = {"O": "the order of a matrix", _POINTER: "an address", "?": "of another type"}
    return known.get(letter) or LETTERS[letter].partition(":")[0]
