"""Metrics for Prometheus: counts from the database, which survive a restart, and this process's answers."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kgbench.service.judging import Judging
from kgbench.service.queue import Queue


class Metrics:
    """Names without a caller's or a candidate's words: outcomes, states, numbers of errors."""

    def __init__(self, queue: Queue, judging: Judging) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Stored(queue, judging))
        self._answers = Counter(
            "kgbench_http_answers", "Answers of this process.", ("method", "status", "error"), registry=self._registry
        )
        self.waited = Histogram(
            "kgbench_verdict_seconds",
            "Seconds from submission to the verdict.",
            buckets=(0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3600),
            registry=self._registry,
        )

    def answered(self, method: str, status: int, error: str) -> None:
        known = method if method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH") else "other"
        self._answers.labels(known, str(status), error).inc()

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _Stored(Collector):
    """Asked at every scrape."""

    def __init__(self, queue: Queue, judging: Judging) -> None:
        self._queue = queue
        self._judging = judging

    def describe(self) -> list[Metric]:
        """Nothing, so that registration does not query the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        states = GaugeMetricFamily("kgbench_submissions", "Submissions by state.", labels=("state",))
        for state, count in self._queue.counts().items():
            states.add_metric((state,), count)
        yield states
        verdicts = CounterMetricFamily("kgbench_verdicts", "Verdicts by outcome.", labels=("outcome",))
        for outcome, count in self._queue.outcomes().items():
            verdicts.add_metric((outcome,), count)
        yield verdicts
        yield GaugeMetricFamily("kgbench_oldest_seconds", "How long the oldest one waits.", self._queue.oldest_s())
        yield GaugeMetricFamily("kgbench_jobs", "Candidates that are judged at once.", self._judging.jobs)
        ready = float(self._judging.state == "ready")
        yield GaugeMetricFamily("kgbench_ready", "1 while candidates can be judged.", ready)
