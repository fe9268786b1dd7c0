"""Whose work it was: what a candidate was seen to do, held against the policy.

May import: `policy`, and what `harness.clock` may, and it.
"""
