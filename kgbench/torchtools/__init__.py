"""Programs that ask the installed torch, run as processes: sample inputs, schemas, drafts, checks.

May import: everything but `cli`.
"""
