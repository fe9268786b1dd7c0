"""The policy: what a candidate may call, and what it was seen to call.

May import: `core`, `problem`.
"""
