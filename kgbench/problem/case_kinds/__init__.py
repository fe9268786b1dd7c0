"""Which kinds of cases each problem has, and why it lacks the others; prints docs/case-kinds.md.

May import: the rest of `problem`, `core`.
"""
