"""Sums and products of matrices as kernels make them: in sequence, in blocks, in pairs; complex products split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import torch

BLOCK: Final = 32
"""Terms that a block has."""
MOST_TERMS: Final = 1 << 25
"""Products that one product of matrices may have, each of which is kept."""
Add = Callable[[torch.Tensor], torch.Tensor]
"""Sums real numbers over the first dimension, which has at least one element, in their own dtype."""


def in_sequence(terms: torch.Tensor) -> torch.Tensor:
    """NumPy's running sum is in order and in the type that it is given, which no sum of PyTorch's promises."""
    with np.errstate(all="ignore"):
        return torch.from_numpy(np.asarray(np.add.accumulate(terms.resolve_conj().numpy(), axis=0)[-1]))


def in_blocks(terms: torch.Tensor) -> torch.Tensor:
    """Each block in sequence, and the blocks' sums in sequence."""
    return in_sequence(torch.stack([in_sequence(block) for block in terms.split(BLOCK)]))


def in_pairs(terms: torch.Tensor) -> torch.Tensor:
    """As a tree."""
    while len(terms) > 1:
        half = len(terms) // 2
        terms = torch.cat([terms[:half] + terms[half : 2 * half], terms[2 * half :]])
    return terms[0]


ORDERS: Final[dict[str, Add]] = {"sequential": in_sequence, "blocked": in_blocks, "paired": in_pairs}


def total(terms: torch.Tensor, add: Add) -> torch.Tensor:
    """The sum over the first dimension, of complex numbers by parts; zeros of no terms."""
    if not len(terms):
        return terms.sum(0)
    if terms.is_complex():
        return torch.complex(add(terms.real.contiguous()), add(terms.imag.contiguous()))
    return add(terms)


def product(left: torch.Tensor, right: torch.Tensor, add: Add) -> torch.Tensor:
    """left @ right with rounded products. A complex one is four real ones, as ``tl.dot`` has it."""
    if not left.is_complex() and not right.is_complex():
        return _real_product(left, right, add)
    (a, b), (c, d) = _parts(left), _parts(right)
    real = _real_product(a, c, add) - _real_product(b, d, add)
    return torch.complex(real, _real_product(a, d, add) + _real_product(b, c, add))


def is_product(function: Any) -> bool:
    """Whether a function of PyTorch's is a product of matrices."""
    return getattr(function, "__name__", "") in ("matmul", "__matmul__", "mm", "bmm")


def _parts(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if not matrix.is_complex():
        return matrix, torch.zeros_like(matrix)
    matrix = matrix.resolve_conj()
    return matrix.real.contiguous(), matrix.imag.contiguous()


def _real_product(left: torch.Tensor, right: torch.Tensor, add: Add) -> torch.Tensor:
    if right.dim() == 1:
        return _real_product(left, right[:, None], add)[..., 0]
    if left.dim() == 1:
        return _real_product(left[None], right, add)[..., 0, :]
    columns, rows = left.movedim(-1, 0)[..., None], right.movedim(-2, 0)[..., None, :]
    if columns.numel() * right.shape[-1] > MOST_TERMS:
        raise ValueError("too many products to keep")
    return total(columns * rows, add)
