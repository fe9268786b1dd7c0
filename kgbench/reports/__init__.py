"""Reports of runs: terminal, tables, page, exports, leaderboard.

May import: `core`, `problem`, `policy`, `scores`, `llm`, `store`, `prompts`.
"""
