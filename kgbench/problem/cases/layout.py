"""Shapes and strides."""

from __future__ import annotations

from collections.abc import Sequence


def may_overlap(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements may lie on one another: a stride that does not step over all that the smaller ones reach."""
    reach = 0
    for step, size in sorted((step, size) for step, size in zip(strides, shape, strict=True) if size > 1):
        if step <= reach:
            return True
        reach += step * (size - 1)
    return False


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
