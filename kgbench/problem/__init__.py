"""What a problem says: its file's format, the model it becomes, its cases and calls, the registry of all problems.

May import: `core`.
"""
