"""Signatures of BLAS routines: one letter for each argument after the handle.

``i pi pi x x`` is cublasSrot_v2: a size, two vectors with their increments, two scalars of the routine's precision.
Blanks are ignored. This module imports no torch and no library; ``baselines`` converts the arguments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kgbench.problem.model import Parameter

LETTERS: Final = {
    "T": "transpose flag: 'N', 'T' or 'C'",
    "U": "triangle flag: 'U' or 'L'",
    "L": "side flag: 'L' or 'R'",
    "D": "diagonal flag: 'U' (unit) or 'N'",
    "i": "32-bit integer: a size, a leading dimension, an increment",
    "I": "the same as a 64-bit integer, in the routines that end in _64",
    "l": "64-bit integer: a stride between matrices of a batch",
    "h": "float16 scalar in host memory (a Python number)",
    "s": "float32 scalar in host memory",
    "d": "float64 scalar in host memory",
    "c": "complex64 scalar in host memory",
    "z": "complex128 scalar in host memory",
    "p": "tensor: storage",
    "a": "array of pointers: an int64 tensor of addresses",
    "e": "type of a matrix's elements: a torch.dtype",
    "r": "tensor of one element that receives a scalar result",
}
OWN_SCALAR: Final = "x"
"""Letter for a scalar of the precision in the routine's name: ``s`` for cublasSrot_v2."""
ENTRY_TYPES: Final = {
    **dict.fromkeys("TULD", ("str",)), **dict.fromkeys("iIl", ("int",)), **dict.fromkeys("hsd", ("float", "Scalar")),
    **dict.fromkeys("cz", ("complex", "Scalar")), **dict.fromkeys("par", ("Tensor",)), "e": ("dtype",),
}  # fmt: skip
"""Types that an entry's parameter may have for each letter."""

_PRECISION: Final = re.compile(r"cublas([HSDCZ])")


def resolved(text: str, routine: str) -> str:
    """The signature without blanks, with ``x`` replaced by the letter of the routine's precision.

    Raises ValueError when it is empty, has an unknown letter, or has ``x`` and the routine names no precision.
    """
    written = "".join(text.split())
    if not written:
        raise ValueError("a signature has one letter per argument of the routine")
    if OWN_SCALAR in written:
        found = _PRECISION.match(routine)
        if found is None:
            raise ValueError(
                f"'{OWN_SCALAR}' is a scalar of the routine's precision, and {routine} names none of H, S, D, C and Z; "
                "write h, s, d, c or z"
            )
        written = written.replace(OWN_SCALAR, found[1].lower())
    wrong = next((letter for letter in written if letter not in LETTERS), None)
    if wrong is not None:
        raise ValueError(f"'{wrong}' is no letter of a signature; there are {' '.join(LETTERS)} and {OWN_SCALAR}")
    return written


def entry_difference(letters: str, parameters: Sequence[Parameter]) -> str:
    """How an entry's parameters differ from the routine's signature, as a sentence; empty when they match."""
    if len(letters) != len(parameters):
        return f"it has {len(letters)} letters, and entry has {len(parameters)} parameters"
    for letter, parameter in zip(letters, parameters, strict=True):
        if parameter.type not in ENTRY_TYPES[letter]:
            wanted = " or ".join(ENTRY_TYPES[letter])
            return f"'{letter}' ({LETTERS[letter]}) is for type {wanted}, and '{parameter.name}' is {parameter.type}"
    return ""


def is_routine(target: str) -> bool:
    """Whether a baseline's target names a BLAS routine: ``cublas:…`` or ``openblas:…``."""
    return target.startswith(("cublas:", "openblas:"))


def split(name: str) -> tuple[str, str]:
    """(routine, letters) of a target's name such as ``cublasSrot_v2(i pi pi x x)``. Letters are empty when it has none.

    A vLLM operator with its schema in parentheses is split in the same way.
    """
    routine, _, letters = name.partition("(")
    return routine, letters.removesuffix(")")
