"""Brings an answer into the one form that all correct answers have, where several are correct. Referee side only.

``canonical`` of a problem file names the function: ``f(outputs, arguments) -> dict``. It is given a candidate's outputs
and the reference's in turn, and only what it makes of them is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from kgbench.baselines.expected import Expected
from kgbench.harness.verdict.narrow_dtypes import stored_as
from kgbench.harness.verdict.reference import upcast

Form = Callable[[dict[str, torch.Tensor], dict[str, Any]], dict[str, torch.Tensor]]


def in_one_form(
    function: Form,
    outputs: Mapping[str, torch.Tensor],
    expected: Mapping[str, Expected],
    arguments: Mapping[str, Any],
) -> tuple[dict[str, torch.Tensor], dict[str, Expected]]:
    """Outputs and what is correct, both by the names that the function gives.

    ``arguments``: by parameter name, in the problem's dtypes; the function gets them as a reference does.
    """
    given = {name: upcast(value) for name, value in arguments.items()}
    right = {name: _own(each.value, outputs[name].dtype) for name, each in expected.items()}
    correct_form = function(dict(right), given)
    form = function(dict(outputs), given)
    wanted = {
        # A scale of honest errors belongs to elements that stand where they stood.
        name: Expected(value, expected[name].magnitude if value is right.get(name) else None)
        for name, value in correct_form.items()
    }
    return {name: _typed(value, outputs.get(name)) for name, value in form.items()}, wanted


def _own(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A copy, since the reference's answer is kept. Whole numbers get the output's dtype, real numbers keep theirs."""
    both_whole = not any(each.is_floating_point or each.is_complex for each in (value.dtype, dtype))
    return stored_as(value, dtype) if both_whole else value.clone()


def _typed(value: torch.Tensor, output: torch.Tensor | None) -> torch.Tensor:
    """The values in the dtype that the output of that name had: its limits depend on it."""
    return (
        value if output is None or value.is_floating_point() != output.is_floating_point() else value.to(output.dtype)
    )
