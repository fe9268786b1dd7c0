"""What a model is told: a prompt for a problem in a language, made from the problem's file by templates.

The system part is the same, byte for byte, for all problems of a source and language, so that providers' caches serve
it. What would give an answer away stays out: reference, check cases, fuzz ranges, the tolerance's numbers. No torch
and no jinja2 until a prompt is made. docs/prompts.md says the same to a reader.
"""
