"""kgbench: is this GPU kernel right, and is it faster than the library?

Importing this package costs nothing: no torch, no device query, no file read.
"""

__version__ = "0.1.0"
