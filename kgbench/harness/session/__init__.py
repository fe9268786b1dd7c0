"""Judges candidates in processes of their own: sessions, their devices and slots, the fork server. No torch.

May import: `core`, `harness.machine`, `harness.wire`, `harness.sandbox`.
"""
