"""The standard mutants: wrong kernels that the cases of every problem must reject. Names and texts; imports no torch.

A mutant is the problem's reference, made wrong in one way. ``harness/mutants/standard.py`` has a function of the same
name that does so. A mutant applies only to problems that have what it needs (``harness/mutants/applicability.py``).
A mutant that is correct for some operator is listed in that problem's file under ``mutants``, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Mutant:
    """What a mutant does wrong, and which problems it applies to."""

    breaks: str
    """One sentence that says what is wrong."""
    needs: str = "anything"
    """Key of ``NEEDS``: what a problem must have for the mutant to apply."""
    source: str = ""
    """The source whose problems it applies to; empty for all sources."""


def _blas(breaks: str, needs: str) -> Mutant:
    return Mutant(breaks, needs, "cublas")


def _aten(breaks: str, needs: str) -> Mutant:
    return Mutant(breaks, needs, "aten")


NEEDS: Final[dict[str, str]] = {
    "anything": "",
    "input": "no tensor is only read",
    "values": "no tensor's values differ from call to call",
    "wide input": "no input and output are float32 or wider, with values that rounding changes",
    "float64 input": "no input and output are float64 or complex128",
    "strided input": "no floating input comes in another layout than row-major",
    "several elements": "no output has more than one element",
    "long output": "no output has more than 128 elements",
    "rows": "no output has two dimensions",
    "matrix": "no output has several rows and several columns",
    "floating output": "no output is floating",
    "wide output": "no output is float32 or wider",
    "several outputs": "there is one output",
    "returned": "nothing is returned as a new tensor",
    "returned array": "nothing is returned as a new tensor with other than one dimension",
    "gaps": "no written argument has padding or a part that must stay",
    "view": "the result is no view",
    "alpha": "there is no alpha",
    "beta": "the routine has no beta",
    "transpose": "the routine has no transpose flag",
    "conjugate": "the routine conjugates nothing",
    "no conjugate": "no operand of the routine is complex and may stay as it is",
    "triangle": "the routine has no triangle",
    "diagonal": "the routine has no diagonal flag",
    "side": "the routine has no side",
    "leading dimension": "the routine has no leading dimension",
    "batch": "the routine has no batch",
    "increment": "the routine has no increment",
    "inner size": "the routine has no size k",
    "keepdim": "there is no keepdim",
    "dimension": "no dimension is chosen by number among several",
    "list of tensors": "there is no list of tensors",
    "offset": "no floating input begins behind its storage's begin",
    "broadcast": "no operand is broadcast otherwise than by reading it again and again",
    "rounded quotient": "no quotient is rounded down",
    "narrow sums": "nothing sums many numbers of 16 bits",
    "chance": "nothing is random",
    "generator": "no case passes a generator",
    "Python value": "the result is no Python value",
    "float32 sums": "the routine sums no products of 16-bit numbers, or may keep sums in 16 bits",
}
"""What mutants need, with the text for a problem that lacks it."""

MUTANTS: Final[dict[str, Mutant]] = {
    "zeros": Mutant("It returns zeros for every input."),
    "constant": Mutant("It returns the mean of the correct result everywhere.", "several elements"),
    "passthrough": Mutant("It returns an input.", "input"),
    "untouched": Mutant("It does nothing: outputs hold what they held."),
    "half": Mutant("It does the first half of the elements and leaves the others."),
    "last_element": Mutant("It leaves the last element."),
    "last_row": Mutant("It leaves the last row of each matrix.", "rows"),
    "last_column": Mutant("It leaves the last column of each matrix.", "rows"),
    "last_tile": Mutant("It leaves the elements past the last full 128.", "long output"),
    "shifted": Mutant("It puts every element one place too late.", "several elements"),
    "transposed": Mutant("It stores each matrix column by column where rows are expected.", "matrix"),
    "negated": Mutant("It returns the result with its sign flipped."),
    "drops_nan": Mutant("It returns 0 where NaN is correct.", "floating output"),
    "bfloat16_output": Mutant("It rounds its answer to bfloat16.", "wide output"),
    "bfloat16_inputs": Mutant("It rounds its inputs to bfloat16.", "wide input"),
    "tf32_inputs": Mutant("It rounds its inputs to the ten bits of TF32.", "wide input"),
    "float32_inputs": Mutant("It rounds float64 inputs to float32.", "float64 input"),
    "ignores_strides": Mutant("It reads every input as if it were row-major without gaps.", "strided input"),
    "stale": Mutant("It returns what its first call of the same shape returned.", "values"),
    "first_output_only": Mutant("It leaves every output but the first.", "several outputs"),
    "changes_input": Mutant("It changes an element of an input.", "input"),
    "writes_around": Mutant("It overwrites what lies between the elements that it must write.", "gaps"),
    "flattened": Mutant("It returns one dimension.", "returned array"),
    "other_dtype": Mutant("It returns float64, or float32 where float64 is correct.", "returned"),
    "copy": Mutant("It copies where a view is asked.", "view"),
    "storage_start": Mutant("Its view begins where the storage does, not where the input does.", "view"),
    "ignores_alpha": Mutant("It treats alpha as 1.", "alpha"),
    "ignores_keepdim": _aten("It drops the dimensions that keepdim keeps.", "keepdim"),
    "negative_dim": _aten("It counts negative dimensions from the front, -1 for the first.", "dimension"),
    "last_tensor": _aten("It treats the last tensor of a list as zeros.", "list of tensors"),
    "storage_offset": _aten("It reads an input that begins behind its storage's begin one element early.", "offset"),
    "flat_broadcast": _aten("It reads a broadcast operand as if it lay as the result does.", "broadcast"),
    "rounds_to_zero": _aten("It truncates quotients that must be rounded down.", "rounded quotient"),
    "narrow_sums": _aten("It keeps sums of 16-bit numbers in 16 bits.", "narrow sums"),
    "begins_anew": _aten("It gives the first numbers of its seed in every call.", "chance"),
    "ignores_seed": _aten("It draws from a generator of its own, whatever is seeded.", "chance"),
    "ignores_generator": _aten("It draws from the default generator where another is passed.", "generator"),
    "biased": _aten("In every tenth place it returns the smaller of two numbers.", "chance"),
    "same_blocks": _aten("It draws 1024 numbers and repeats them.", "chance"),
    "like_neighbours": _aten("In every tenth place it repeats the number before.", "chance"),
    "another_type": _aten("It returns its value as another Python type.", "Python value"),
    "single_precision": _aten("It passes its value through float32.", "Python value"),
    "ignores_beta": _blas("It treats beta as 0.", "beta"),
    "alpha_zero_reads": _blas("It multiplies with an alpha of 0, and NaN stays NaN.", "alpha"),
    "beta_zero_reads": _blas("It multiplies with a beta of 0, and NaN stays NaN.", "beta"),
    "never_transposes": _blas("It uses every matrix as stored, whatever the transpose flag says.", "transpose"),
    "always_transposes": _blas("It transposes also where it is told not to.", "transpose"),
    "never_conjugates": _blas("It treats a conjugate transpose as a transpose, and conj(x) as x.", "conjugate"),
    "always_conjugates": _blas("It conjugates also where it is told not to.", "no conjugate"),
    "lower_only": _blas("It treats every triangle as lower.", "triangle"),
    "upper_only": _blas("It treats every triangle as upper.", "triangle"),
    "unit_only": _blas("It treats every diagonal as ones.", "diagonal"),
    "unit_ignored": _blas("It reads the diagonal also where that is 1 by definition.", "diagonal"),
    "left_only": _blas("It multiplies or solves from the left always.", "side"),
    "right_only": _blas("It multiplies or solves from the right always.", "side"),
    "packed_columns": _blas("It reads matrices without regard to the leading dimension.", "leading dimension"),
    "packed_batch": _blas("It reads each matrix of a batch right behind the one before.", "batch"),
    "packed_vectors": _blas("It reads vectors as if increments were 1 or -1.", "increment"),
    "walks_forward": _blas("It treats negative increments as positive.", "increment"),
    "returns_early": _blas("It does nothing where k is 0.", "inner size"),
    "half_sums": _blas("It keeps sums of 16-bit products in 16 bits.", "float32 sums"),
}
"""Mutants by name, in the order of the table that ``kgbench selftest mutants`` prints."""

PLACELESS: Final = (
    "last_element", "last_row", "last_column", "last_tile", "shifted", "transposed", "drops_nan", "bfloat16_inputs",
    "tf32_inputs", "float32_inputs",
)  # fmt: skip
"""Mutants that no test detects when every element is random: moved or rounded elements or a few zeros are as likely."""
VALUELESS: Final = ("changes_input", "flattened", "other_dtype")
"""Mutants that can be detected even when no value of the result is defined."""
