"""Referees without some layers of defence. They show that a layer is what catches an exploit.

May import: everything of the harness. Nothing of the harness imports it; a benchmark runs with this package removed.
"""
