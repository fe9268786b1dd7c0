"""What a worker is shut off from, by Linux means.

``probe.py`` finds out once what this machine allows, ``plan.py`` holds it, ``enter.py`` applies it. Each protection
stands without the others; docs/sandbox.md says what each stops.
May import: `core`, `harness.machine`.
"""
