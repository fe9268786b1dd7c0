"""A run as it happens: the coordinator, its progress, and `Evaluator` for Python.

May import: everything but `cli`.
"""
