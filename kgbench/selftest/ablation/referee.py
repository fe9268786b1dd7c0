"""A referee whose jobs name disabled defences, and its process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kgbench.core.types import Result
from kgbench.harness.machine.settings import Job
from kgbench.harness.referee.evaluation import Report
from kgbench.harness.referee.process import serve
from kgbench.harness.referee.referee import Referee
from kgbench.harness.referee.seeds import Seeds
from kgbench.selftest.ablation.job import AblatedJob
from kgbench.selftest.ablation.weakened import weakened


class AblatingReferee(Referee):
    """Judges each job with its remaining defences; device, library and workers' starter are shared."""

    def job(self, data: Mapping[str, Any]) -> AblatedJob:
        return AblatedJob.from_json(data)

    def evaluate(self, job: Job, report: Report) -> Result:
        """See ``Referee.evaluate``. The result names the disabled defences, so that it cannot pass as a verdict."""
        without = job.without if isinstance(job, AblatedJob) else ()
        if not without:
            return super().evaluate(job, report)
        seeds = Seeds(self.settings.seed, job, self.resources.device)
        weak = Referee(self.resources, weakened(frozenset(without), seeds))
        result = weak.evaluate(replace(job, library_times={}), report)
        return replace(result, reason=f"WITHOUT {', '.join(without)}: {result.reason}", without=tuple(without))

    def library_times(self, result: Result) -> dict[str, Any]:
        """None where a defence was disabled: the times were measured otherwise."""
        return {} if result.without else super().library_times(result)


def main(coordinator_fd: int, server_fd: int, page_fd: int) -> None:
    """Serve the coordinator until it closes the channel."""
    serve(coordinator_fd, server_fd, page_fd, AblatingReferee)
