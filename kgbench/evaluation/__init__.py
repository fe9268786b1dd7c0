"""Evaluations: the coordinator of a run, its progress, and `Evaluator` for Python.

May import: everything but `cli`, `mcp` and `service`.
"""
