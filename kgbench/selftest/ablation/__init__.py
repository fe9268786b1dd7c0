"""Referees without some defences. They show that a defence is what catches an exploit.

May import: everything of the harness. Nothing of the harness imports it; a benchmark runs with this package removed.
"""
