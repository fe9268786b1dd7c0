"""Operands that meet themselves: B = Aᵀ, y = x, a distance of x from x. Sums of one sign, or of nothing but zeros."""

from __future__ import annotations

import itertools

import torch

from kgbench.baselines.registry import load_function
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.problem.model import Access


def meet(call: PlacedCall, prepare: str | None = None) -> bool:
    """Copy the first floating operand over every later one that it fits, in a call that is placed and not yet made.

    A matrix fits another of which a side is as long as one of its own: ``A`` is ``(m, k)``, and of ``B``, ``(k, n)``,
    the first ``min(m, n)`` columns become those of ``Aᵀ``. Whether any did. ``prepare``: the problem's function that
    makes operands agree, as a forward pass and what it left; it is called anew.
    """
    read = [chunk for chunk in call.inputs.chunks.values() if chunk.spec.access == Access.READ and not chunk.spec.slots]
    views = [view for chunk in read if (view := chunk.view(chunk.image)).is_floating_point() or view.is_complex()]
    met = [_takes(other, views[0]) for other in views[1:]]
    if any(met) and prepare is not None:
        generator = torch.Generator(views[0].device).manual_seed(0)
        load_function(prepare)(call.inputs.arguments(), call.inputs.bound.case.variables, generator)
    call.known.clear()
    return any(met)


def _takes(view: torch.Tensor, first: torch.Tensor) -> bool:
    if view.dtype != first.dtype or not view.numel() or not first.numel() or 0 in view.stride():
        return False
    if view.shape == first.shape:
        view.copy_(first)
        return True
    if view.dim() < 2 or view.dim() != first.dim() or view.shape[:-2] != first.shape[:-2]:
        return False
    for turned, side in itertools.product((first.mT, first), (-2, -1)):
        if turned.shape[side] == view.shape[side]:
            other = -3 - side
            count = min(turned.shape[other], view.shape[other])
            view.narrow(other, 0, count).copy_(turned.narrow(other, 0, count))
            return True
    return False
