"""Scores as pure functions of stored results: speedups, fast_p, intervals, costs, the roofline.

May import: `core`, `problem`.
"""
