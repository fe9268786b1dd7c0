"""What both sides of a channel share: framed messages and shared buffers.

May import: nothing of kgbench.
"""
