"""The hostile side: the stub that runs a candidate's code, and what observes its calls.

May import: `harness.wire`, and nothing else.
"""
