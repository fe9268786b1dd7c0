"""The judge of one candidate: owns seeds, inputs, oracle, clock and verdict.

May import: everything of the harness but `session`.
"""
