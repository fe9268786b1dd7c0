"""How fast: timed windows beside the library, statistics, physical bounds.

May import: what `harness.verdict` may, and it.
"""
