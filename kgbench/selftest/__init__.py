"""Does the benchmark itself hold? Mutants, exploits, a judge without defences, the null test.

May import: `core`, `problem`, `baselines`, `harness`.
"""
