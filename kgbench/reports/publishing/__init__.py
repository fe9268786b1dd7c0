"""Runs as published evidence in ``results/``: checked, written there, and rendered as RESULTS.md.

May import: `core`, `problem`, `scores`, `store`, `selftest`, the rest of `reports`.
"""
