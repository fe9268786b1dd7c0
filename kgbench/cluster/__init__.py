"""A run on a Ray cluster: nodes that are checked, an actor with a session per device, and a queue for them. No torch.

May import: `core`, `problem`, `harness`.
"""
