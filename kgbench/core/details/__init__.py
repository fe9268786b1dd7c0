"""What a verdict says beside its outcome: a type for each sort of failure, where it happened, and sentences for people.

May import nothing else of kgbench but text helpers of core. No torch.
"""
