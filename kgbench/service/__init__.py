"""A service that judges over HTTP: queue, tokens, verdicts, pages; and ``RemoteEvaluator``, its client.

May import: everything but ``cli``. The server's modules need the extra ``serve``; the client needs nothing.
"""
