"""Judging for others over HTTP: queue, tokens, verdicts, pages; and ``RemoteEvaluator``, which asks such a service.

May import: everything but ``cli``. The server's modules need the extra ``serve``; what asks one needs nothing.
"""
