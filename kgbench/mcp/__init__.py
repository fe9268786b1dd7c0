"""`kgbench mcp`: tools by which agents read problems and have kernels judged, over the Model Context Protocol.

What the tools say is in `toolbox.py`, which needs no SDK; `server.py` hands them to the SDK, `http.py` listens.
May import: everything but `cli`.
"""
