"""Conversations with language models: prompts, questions, replies, prices of tokens, short names.

May import: `core`, `problem`.
"""
