"""The command line: one module per command; what commands share lies in modules that are no command.

May import: everything below. No command imports another one.
"""
