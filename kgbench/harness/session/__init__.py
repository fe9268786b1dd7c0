"""The coordinator's side: starts fork server and referees, hands out jobs. No torch.

May import: `core`, `harness.machine`, `harness.wire`, `harness.sandbox`.
"""
