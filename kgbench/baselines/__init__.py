"""The library calls a candidate is compared with, and the float64 references that say what is correct.

Import as ``kgbench.baselines``.
"""
