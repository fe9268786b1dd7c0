"""The standard mutants: wrong kernels that every problem must tell from a right one. Names and words only, no torch.

Each is made from the problem's own reference, spoiled in one way; ``harness/mutants.py`` has the function that does it,
under the same name. Where a problem has nothing to spoil the mutant does not apply, by the fact that it needs
(``harness/mutant_facts.py``). One that answers right by what the operator is stands in the problem's file under
``mutants``, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Mutant:
    breaks: str
    """One sentence on what is wrong."""
    needs: str = "anything"
    """One of NEEDS: what a problem must have for the mutant to apply."""


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
}
"""What mutants need, with the words for a problem that does not have it."""

MUTANTS: Final[dict[str, Mutant]] = {
    "zeros": Mutant("It answers zeros whatever it is given."),
    "constant": Mutant("It answers the mean of the right answer everywhere.", "several elements"),
    "passthrough": Mutant("It hands an input back.", "input"),
    "untouched": Mutant("It does nothing: outputs hold what they held."),
    "half": Mutant("It does the first half of the elements and leaves the others."),
    "last_element": Mutant("It leaves the last element."),
    "last_row": Mutant("It leaves the last row of each matrix.", "rows"),
    "last_column": Mutant("It leaves the last column of each matrix.", "rows"),
    "last_tile": Mutant("It leaves the elements past the last full 128.", "long output"),
    "shifted": Mutant("It puts every element one place too late.", "several elements"),
    "transposed": Mutant("It stores each matrix column by column where rows are asked.", "matrix"),
    "negated": Mutant("It answers with the sign flipped."),
    "drops_nan": Mutant("It answers 0 where NaN is right.", "floating output"),
    "bfloat16_output": Mutant("It rounds its answer to bfloat16.", "wide output"),
    "bfloat16_inputs": Mutant("It rounds its inputs to bfloat16.", "wide input"),
    "tf32_inputs": Mutant("It rounds its inputs to the ten bits of TF32.", "wide input"),
    "float32_inputs": Mutant("It rounds float64 inputs to float32.", "float64 input"),
    "ignores_strides": Mutant("It reads every input as if it were row-major without gaps.", "strided input"),
    "stale": Mutant("It answers as at its first call of the same shape.", "values"),
    "first_output_only": Mutant("It leaves every output but the first.", "several outputs"),
    "changes_input": Mutant("It changes an element of an input.", "input"),
    "writes_around": Mutant("It overwrites what lies between the elements that it must write.", "gaps"),
    "flattened": Mutant("It answers in one dimension.", "returned array"),
    "other_dtype": Mutant("It answers in float64, or in float32 where that is right.", "returned"),
    "copy": Mutant("It copies where a view is asked.", "view"),
    "storage_start": Mutant("Its view begins where the storage does, not where the input does.", "view"),
}
"""By name, in the order of the table that ``kgbench mutants`` prints."""
