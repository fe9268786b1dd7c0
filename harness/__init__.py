"""The processes that judge a candidate: fork server, worker, referee, and what they speak.

Import as ``kgbench.harness``. The worker side (``protocol``, ``worker``, ``arena``) never imports anything
that knows an answer; the referee side may.
"""
