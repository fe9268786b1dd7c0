"""A run on disk: written while it goes on, read later, measured once more.

May import: `core`, `problem`, `scores`, `llm`.
"""
