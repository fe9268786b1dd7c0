"""Shapes and strides."""

from __future__ import annotations

from collections.abc import Sequence


def last_place(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How many elements of memory behind its first element a tensor's last one lies. No size is 0."""
    return sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def may_overlap(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements of a view may share memory. Strides are in elements.

    They may when a stride is at most the largest offset that the dimensions with smaller strides reach.
    """
    reach = 0
    for step, size in sorted((step, size) for step, size in zip(strides, shape, strict=True) if size > 1):
        if step <= reach:
            return True
        reach += step * (size - 1)
    return False


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a contiguous tensor, in elements. A size of 0 counts as 1."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
