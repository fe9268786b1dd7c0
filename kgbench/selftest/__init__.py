"""Tests of the benchmark itself: mutants, exploits, a judge without defences, the null test.

May import: `core`, `problem`, `baselines`, `harness`.
"""
