"""A run as people and programs read it: terminal, tables, page, exports, leaderboard.

May import: `core`, `problem`, `policy`, `scores`, `llm`, `store`, `prompts`.
"""
