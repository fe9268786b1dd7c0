"""Programs of their own that ask the installed torch: sample inputs, schemas, drafts, checks.

May import: everything but `cli`.
"""
