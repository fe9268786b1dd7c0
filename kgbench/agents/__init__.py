"""Agents: programs that work on one problem in a folder of their own, and may ask the referee from there.

``work.py`` runs one agent. ``folder.py`` writes the files that it finds, ``checks.py`` answers its ``./check``,
``launcher.py`` starts it, confined by ``confinement.py``, and ends it with all its processes. docs/agents.md says what
an agent sees and what it does not.
"""
