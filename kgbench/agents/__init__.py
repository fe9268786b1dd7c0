"""Agents: programs that work on one problem in a folder of their own, and may ask the referee from there.

``work`` is one agent's whole life. ``folder.py`` makes what it finds, ``checks.py`` answers its ``./check``,
``launcher.py`` starts it, shut off by ``confinement.py``, and ends it with everything that it has started.
docs/agents.md says what an agent sees and what it does not.
"""
