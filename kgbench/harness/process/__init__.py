"""The processes themselves: fork server, supervisor, and the worker that runs trusted code.

May import: everything of the harness but `referee` (by name only) and `session`.
"""
