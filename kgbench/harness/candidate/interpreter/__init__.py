"""Triton's interpreter computes as the compiler's code does on an H100 or H200: docs/interpreter.md has the list.

May import: what `harness.candidate` may.
"""
