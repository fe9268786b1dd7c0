"""Finds wrong answers that a module's outputs cannot tell from correct ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from kgbench.harness.verdict.compare import Limits, compare
from kgbench.harness.verdict.modules.reference import ULPS, ModuleReference
from kgbench.harness.verdict.modules.trusted import ModuleError, TrustedModule
from kgbench.harness.verdict.secret_draws import SecretGenerator
from kgbench.problem.modules import VALUE_SETS

KERNELBENCH_TOLERANCE: Final = 1e-4
"""Relative and absolute tolerance of KernelBench for float32."""
ALIKE: Final = 1e-2
"""Share of an output's root mean square up to which a difference is rounding and not another value."""
_LIMITS: Final = Limits("rounding", ulps=ULPS)


@dataclass(frozen=True)
class Weakness:
    """One kind of wrong answer that passes."""

    what: str
    """``the output is constant``"""
    here: bool
    """It passes by kgbench's limits, too, in every value set; else by KernelBench's tolerance in its own values."""


def why_unjudgeable(module: TrustedModule, batch: int | None) -> str:
    """Why outputs cannot be judged by their values; empty where they can. Raises RuntimeError where memory lacks."""
    generator = _generator(module, "unjudgeable")
    inputs = module.inputs(generator, batch=batch)
    first = module.run(inputs)
    if not all(map(_alike, first, module.run(inputs))):
        return "its output is random: the same input gives another one, as with dropout that is not switched off"
    twin = module.sibling("another secret", same_state=True)
    if not all(map(_alike, first, twin.run(inputs))):
        return "its output depends on random tensors that are no part of its state_dict, so that no candidate has them"
    try:
        exact = module.run_exact(inputs)
    except (RuntimeError, ModuleError, TypeError, NotImplementedError) as error:
        if lacks_memory(error):
            raise
        return f"its forward does not run in float64: {str(error).splitlines()[0]}"
    if [tuple(each.shape) for each in exact] != [tuple(each.shape) for each in first]:
        return "its outputs have other shapes in float64"
    if not all(bool(torch.isfinite(each).any()) for each in exact if each.numel() and each.is_floating_point()):
        return "its output has no finite element"
    return ""


def lacks_memory(error: Exception) -> bool:
    """Whether there was not enough memory. PyTorch's allocator for the CPU and CUDA's calls say so in words alone."""
    words = ("DefaultCPUAllocator", "CUDA error: out of memory")
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(each in str(error) for each in words)


def weaknesses(module: TrustedModule, batch: int | None, value_sets: Sequence[str] = VALUE_SETS) -> list[Weakness]:
    """Which wrong answers pass, with this batch size. Raises ModuleError, RuntimeError."""
    passes: dict[str, list[tuple[bool, bool]]] = {}
    for values in value_sets:
        reference = ModuleReference(module)
        generator = _generator(module, values)
        inputs, other = (module.inputs(generator, values, batch) for _ in range(2))
        answers = reference.expected({str(number): each for number, each in enumerate(inputs)}, ())
        if not reference.last.is_sound:
            if values == "default":
                passes[_DISCONTINUOUS] = [(True, True)]
            continue
        right = module.run(inputs)
        for what, wrong in _wrong_answers(module, inputs, other, right):
            named = zip(wrong, answers.items(), strict=True)
            here = all(compare(name, got, answer, _LIMITS) is None for got, (name, answer) in named)
            passes.setdefault(what, []).append((_close(wrong, right), here))
    found = {what: (told[0][0], all(here for _, here in told)) for what, told in passes.items()}
    return [Weakness(what, here) for what, (theirs, here) in found.items() if theirs or here]


_DISCONTINUOUS: Final = "float32 itself is off by over 1 % of the largest element, so that its limits are wide"


def _wrong_answers(
    module: TrustedModule, inputs: Sequence[Any], other: Sequence[Any], right: Sequence[torch.Tensor]
) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """Answers of the correct shape that take no account of something."""
    yield "all but zero: zeros pass", [torch.zeros_like(each) for each in right]
    constant = module.run(other)
    yield "constant: the answer to other inputs passes", constant
    tensors = [number for number, each in enumerate(inputs) if isinstance(each, torch.Tensor)]
    for number in tensors if len(tensors) > 1 else []:
        changed = [other[at] if at == number else each for at, each in enumerate(inputs)]
        yield f"input {number} is ignored: the answer to another one passes", module.run(changed)
    if module.parameters:
        yield "its parameters are ignored: the answer with others passes", module.other_weights.run(inputs)
    alike = [each for each in inputs if isinstance(each, torch.Tensor) and len(right) == 1]
    for given in alike:
        if given.shape == right[0].shape and given.dtype == right[0].dtype:
            yield "an input passes as the output", [given]


def _close(wrong: Sequence[torch.Tensor], right: Sequence[torch.Tensor]) -> bool:
    """Whether two outputs agree by KernelBench's tolerance."""
    tolerance = KERNELBENCH_TOLERANCE
    pairs = [(a.double(), b.double()) for a, b in zip(wrong, right, strict=True) if a.numel()]
    return all(torch.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True) for a, b in pairs)


def _alike(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two outputs agree up to rounding; NaN and infinities may differ where there are any."""
    if not first.is_floating_point():
        return torch.equal(first, second)
    usable = torch.isfinite(first) & torch.isfinite(second)
    one, two = first[usable].double(), second[usable].double()
    if not one.numel():
        return True
    return float((one - two).abs().max()) <= ALIKE * float(one.square().mean().sqrt())


def _generator(module: TrustedModule, purpose: str) -> SecretGenerator:
    return SecretGenerator(module.device, f"weaknesses/{purpose}".encode())
