"""The processes that judge a candidate: fork server, worker, referee, and what they say to each other.

May import: `core`, `problem`, `policy`, `baselines`.
"""
