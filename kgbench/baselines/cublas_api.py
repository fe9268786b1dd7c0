"""The declarations of cuBLAS's header: the C parameters of every routine, from ``cublas_api.csv``. No torch.

The table is of cuBLAS 13.10 (nvidia-cublas 13.10.0.20, cublas_api.h), without the handle and without functions that set
or read the handle's state. Routines that end in ``_64`` are not listed: they are declared as those without, with
``int64_t`` for ``int``. It shows whether a signature's letters can be correct. A routine that it lacks may be newer.
"""

from __future__ import annotations

import csv
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kgbench.problem.blas import LETTERS

TABLE: Final = Path(__file__).with_name("cublas_api.csv")
VERSION: Final = "13.10"

_PLAIN: Final = {
    "cublasOperation_t": "T", "cublasFillMode_t": "U", "cublasSideMode_t": "L", "cublasDiagType_t": "D", "int": "i",
    "int64_t": "I", "long long int": "l", "cudaDataType": "e", "cudaDataType_t": "e",
}  # fmt: skip
"""Letter by C type, of parameters that are passed by value."""
_SCALARS: Final = {"__half": "h", "float": "s", "double": "d", "cuComplex": "c", "cuDoubleComplex": "z"}
"""Letter of a scalar that is passed by pointer, by the C type of its element."""
_SCALAR_NAMES: Final = ("alpha", "beta", "c", "s")
"""Names of read-only parameters that are scalars; C declares them like vectors."""
_RESULT_NAMES: Final = ("result",)


@dataclass(frozen=True)
class CParameter:
    """One parameter as C declares it: ``const float*``, ``alpha``."""

    type: str
    name: str

    @property
    def is_written(self) -> bool:
        """Whether it points to memory that the routine may write."""
        return "*" in self.type and not self.type.startswith("const ")

    def takes(self, letter: str) -> bool:
        """Whether a letter of a signature can describe it."""
        return letter in self._letters()

    def likely(self) -> str:
        """The letter that type and name suggest; empty if no letter describes the type."""
        if self.type in _PLAIN:
            return _PLAIN[self.type]
        letters = self._letters()
        if self.name in _RESULT_NAMES and "r" in letters:
            return "r"
        if self.name in _SCALAR_NAMES:
            return next((letter for letter in letters if letter in _SCALARS.values()), letters[:1])
        return next((letter for letter in letters if letter in "pa"), "")

    def _letters(self) -> str:
        if self.type in _PLAIN:
            return _PLAIN[self.type]
        if self.type.endswith("*const[]"):
            return "a"
        if not self.type.endswith("*"):
            return ""
        element = self.type.removeprefix("const ").rstrip("*")
        if self.is_written:
            return "pr"
        return "p" + ("".join(_SCALARS.values()) if element == "void" else _SCALARS.get(element, ""))


def declared(routine: str) -> tuple[CParameter, ...] | None:
    """A routine's parameters after the handle; None for one that the table lacks."""
    table = _table()
    if routine in table:
        return tuple(map(_parameter, table[routine].split(", ")))
    plain = routine.removesuffix("_64")
    if plain == routine or plain not in table:
        return None
    wide = re.sub(r"(?<!long )\bint\b", "int64_t", table[plain])
    return tuple(map(_parameter, wide.split(", ")))


def known_routines() -> tuple[str, ...]:
    """Names of all routines of the table, without the ``_64`` ones."""
    return tuple(_table())


def difference(routine: str, letters: str) -> str:
    """Where a signature contradicts the header's declaration; empty if nowhere, or if the table lacks the routine."""
    parameters = declared(routine)
    if parameters is None:
        return ""
    if len(parameters) != len(letters):
        listed = ", ".join(f"{each.type} {each.name}" for each in parameters)
        return f"it has {len(letters)} letters, and cuBLAS {VERSION} declares {len(parameters)} arguments: {listed}"
    for place, (letter, parameter) in enumerate(zip(letters, parameters, strict=True), 1):
        if not parameter.takes(letter):
            what = f"argument {place} is '{parameter.type} {parameter.name}' in cuBLAS {VERSION}"
            return f"{what}, not '{letter}', {LETTERS[letter]}"
    return ""


@functools.cache
def _table() -> dict[str, str]:
    with TABLE.open(newline="", encoding="utf-8") as file:
        return {row["symbol"]: row["parameters"] for row in csv.DictReader(file)}


def _parameter(written: str) -> CParameter:
    """``const float* const Aarray[]`` is of type ``const float*const[]``."""
    kind, _, name = written.rpartition(" ")
    if name.endswith("[]"):
        return CParameter(f"{kind}[]".replace("* const", "*const"), name.removesuffix("[]"))
    return CParameter(kind, name)
