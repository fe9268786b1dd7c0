# problem: aten/add
# outcome: runtime error
# device: any
"""Raises while it is imported."""

raise ValueError("not today")
