"""Referees without some defences, which show that a defence is what catches an exploit.

May import: everything of the harness. The harness does not import it and runs with this package removed.
"""
