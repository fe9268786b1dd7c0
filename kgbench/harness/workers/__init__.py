"""The trusted side's hold on one worker: requests with deadlines, freezing, health.

May import: `core`, `harness.wire`, `harness.machine`.
"""
