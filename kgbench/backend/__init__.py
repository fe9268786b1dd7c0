"""The winners of a run as a package of its own that PyTorch models use: which kernels, for which calls, which files.

May import: `core`, `problem`, `scores`, `store`, `baselines`. `runtime` is what the written package consists of; it
imports nothing of kgbench.
"""
