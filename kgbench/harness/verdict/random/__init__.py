"""Operators whose outputs are random: judged by their distribution.

May import: what `harness.verdict` may.
"""
