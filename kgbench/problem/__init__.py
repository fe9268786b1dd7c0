"""Problems: the file format, the model, cases and calls, the registry.

May import: `core`.
"""
