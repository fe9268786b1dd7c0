"""Problems that are modules of PyTorch: the trusted module, its inputs and state, its reference and limits.

May import: what `harness.verdict` may, and it.
"""
