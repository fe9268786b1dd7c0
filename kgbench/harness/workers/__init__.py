"""The trusted side's handle of one worker: requests with deadlines, freezing, health.

May import: `core`, `harness.wire`, `harness.machine`.
"""
