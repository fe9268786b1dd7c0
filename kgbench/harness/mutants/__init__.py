"""The standard mutants: a problem's reference, made wrong in one way.

May import: `core`, `problem`, `baselines`, `harness.verdict`.
"""
