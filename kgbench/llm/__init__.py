"""Language models as they are talked to: prompt, question, reply, what tokens cost, short names.

May import: `core`, `problem`.
"""
