"""The library calls that a candidate is compared with, and the float64 references.

Import as ``kgbench.baselines``.
"""
