"""One module per provider. Adding a provider is adding a file here.

May import: what `kgbench.models` may.
"""
