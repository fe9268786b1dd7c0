"""From a request to a plan, an evaluation and its table: shared by run, evaluate and demo."""

from __future__ import annotations

import contextlib
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kgbench.cli.asking import (
    asked_provider,
    before_asking,
    model_of,
    say_left,
)
from kgbench.cli.options import (
    check_machine,
    deadline_overrides,
    deadlines_of,
)
from kgbench.cli.record_claims import say_records
from kgbench.cli.report_output import breaks, print_run
from kgbench.cli.resume import judged_in, selected_by
from kgbench.core import user_modules
from kgbench.core.errors import INTERRUPTED, UsageError, numbered, shown_path
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import hidden_dirs
from kgbench.core.text import number_of

if TYPE_CHECKING:
    from kgbench.cluster.connection import Cluster
    from kgbench.core.kinds import DeviceKind
    from kgbench.evaluation.coordinator import Ending, Plan
    from kgbench.evaluation.request import RunRequest
    from kgbench.harness.machine.settings import Deadlines
    from kgbench.llm.conversation import ModelClient
    from kgbench.models.generation import ModelProvider
    from kgbench.models.provider import Provider
    from kgbench.problem.model import Problem
    from kgbench.problem.registry import Registry
    from kgbench.problem.suites import Suite
    from kgbench.reports.model import Report
    from kgbench.scores.bounds import Bound
    from kgbench.store.writer import RunStore


FILES_AT_ONCE: Final = 50
"""Files of a checkout that are examined in a few seconds."""
SUITE_CALL_S: Final = 2.0
"""Seconds by which each call of a timed suite lengthens the deadline of a whole candidate."""


@dataclass(frozen=True)
class Shown:
    """How a run's results are printed, and when its exit code is 1."""

    thresholds: tuple[float, ...]
    bounds: Sequence[Bound]
    as_json: bool
    fail: bool


@dataclass(frozen=True)
class JudgedOn:
    """The devices, or the service or cluster, that judge a run."""

    gpus: int
    jobs: int
    trace: Path | None = None
    """File for a timeline of every process; None for no timeline."""
    server: str = ""
    """Address of a service that judges instead of this machine; empty where this machine does."""
    ray: str = ""
    """Address of a Ray cluster that judges; empty where this machine does."""
    mixed_devices: bool = False
    """The cluster's devices may be of several models."""


def carry_out(
    request: RunRequest,
    out: Path,
    seed: str | None,
    store: RunStore | None,
    judged_on: JudgedOn,
    shown: Shown,
    *,
    asker: ModelClient | None = None,
    yes: bool = False,
    dry_run: bool = False,
) -> int:
    """Carry out a run from its request to its table; ``asker`` answers in place of the model it names. Returns the exit
    code.
    """
    from kgbench.evaluation.coordinator import Ending
    from kgbench.models.generation import ModelProvider
    from kgbench.scores.bounds import check_sources

    with contextlib.ExitStack() as whole, contextlib.ExitStack() as undo:
        if store is not None:
            undo.callback(store.close)
        selected = selection(request, store)
        here = not judged_on.server and not judged_on.ray
        provider = _provider(request, asker, dry_run=dry_run, here=here)
        cluster = whole.enter_context(_cluster(judged_on, dry_run=dry_run))
        kind = None if dry_run or judged_on.server else _kind(request, cluster)
        plan = plan_of(request, selected, out, seed, store, provider, kind=kind)
        check_sources(shown.bounds, [problem.id for problem in plan.problems])
        if isinstance(plan.provider, ModelProvider):
            if asker is None:
                before_asking(plan.provider, plan.problems, plan.chains, store, yes=yes or dry_run)
            if dry_run:
                return 0
        undo.pop_all()
        if store is not None and not plan.missing:
            store.close(finished=True)
            click.echo("nothing to do: every candidate of this run has a verdict", err=True)
            ending = Ending(store.path)
        else:
            ending = _run(plan, request, judged_on, store, cluster)
    return closed(ending, shown)


@contextlib.contextmanager
def _cluster(judged_on: JudgedOn, *, dry_run: bool) -> Iterator[Cluster | None]:
    """The Ray cluster that judges; None where this machine does, or nobody. Raises MachineError, UsageError."""
    from kgbench.cluster.connection import connected

    if not judged_on.ray or dry_run:
        yield None
        return
    with connected(judged_on.ray) as cluster:
        yield cluster


def _kind(request: RunRequest, cluster: Cluster | None) -> DeviceKind:
    """The kind of device that judges. Raises MachineError, UsageError."""
    from kgbench.harness.machine.devices import find_devices

    return find_devices(request.device)[0].kind if cluster is None else cluster.kind(request.device)


def _provider(request: RunRequest, asker: ModelClient | None, *, dry_run: bool, here: bool) -> Provider | ModelClient:
    """The provider of the kernels, once this machine can ask it and, if ``here``, can judge.

    Raises UsageError, ModelError, MachineError.
    """
    from kgbench.llm.conversation import ModelClient

    provider = asker or model_of(request.model, request.asking)
    if dry_run and not isinstance(provider, ModelClient):
        raise UsageError("KGB566", f"--dry-run: --model {request.model} sends no requests")
    if not dry_run:
        if isinstance(provider, ModelClient):
            provider.ready()
        if here:
            check_machine()
        user_modules.offer(request.problem_dirs)
    return provider


def closed(ending: Ending, shown: Shown) -> int:
    """Print the table and what is left to do. Returns the exit code; raises what ended the run."""
    reports = print_run(ending.path, shown.thresholds, form="json" if shown.as_json else "table")
    for report in reports:
        say_records(report)
    if ending.left:
        say_left(ending.left)
    if ending.error is not None or ending.interrupted or ending.left:
        click.echo(f"the rest: kgbench run --resume {shown_path(ending.path)}", err=True)
    if ending.error is not None:
        raise ending.error
    broke = breaks(reports, shown.bounds)
    return max(exit_code(report, ending, fail=shown.fail) for report in reports) or int(broke)


def exit_code(report: Report, ending: Ending, *, fail: bool) -> int:
    """130 when interrupted; 1 when kgbench failed on a candidate or, with ``fail``, when any problem is not correct."""
    if ending.interrupted:
        return INTERRUPTED
    broken = any(row.outcomes.get(Outcome.HARNESS_ERROR) for row in report.rows)
    wrong = any(row.correct < row.problems for row in report.rows) or any(
        not result.outcome.facts.counts for result in report.results
    )
    return int(broken or (fail and wrong))


@dataclass(frozen=True)
class Selection:
    """The problems that are asked for."""

    registry: Registry
    ids: Sequence[str]


def selection(request: RunRequest, store: RunStore | None) -> Selection:
    """The problems that are asked for. Raises UsageError; a mistyped one is named before a key is missed."""
    from kgbench.problem.kernelbench import registry_of
    from kgbench.problem.suites import narrowed

    registry = registry_of(request.suite, request.problem_dirs, request.against)
    chosen = registry.select(request.sources, request.problems) if store is None else selected_by(store, registry)
    if request.suite:
        chosen = narrowed(request.suite, chosen)
    return Selection(registry, chosen)


def plan_of(
    request: RunRequest,
    selected: Selection,
    out: Path,
    seed: str | None,
    store: RunStore | None,
    found: Provider | ModelClient,
    *,
    kind: DeviceKind | None,
) -> Plan:
    """Everything looked up, nothing written. ``kind`` of device; None where nothing is judged. Raises UsageError."""
    from kgbench.evaluation.coordinator import Plan, new_run_id
    from kgbench.evaluation.shard import Shard
    from kgbench.harness.machine.settings import Deadlines
    from kgbench.llm.conversation import ModelClient

    ids = found.narrow(list(selected.ids), chosen=bool(request.problems))
    problems = loaded(selected.registry, ids)
    if isinstance(found, ModelClient):
        provider: Provider | ModelProvider = asked_provider(found, request.asking, problems, request.problem_dirs)
    else:
        provider = found
        for note in found.notes:
            click.echo(note, err=True)
    suite = _suite(request, problems, store, kind)
    if suite is not None and suite.shares:
        problems = tuple(problem for problem in problems if problem.id in suite.judged())
    done, suspects = ({}, frozenset()) if store is None else judged_in(store, problems)
    now = datetime.now(UTC)
    overrides = deadline_overrides(request.deadlines, None)
    return Plan(
        problems=problems,
        provider=provider,
        command=("kgbench", *sys.argv[1:]),
        seed=secrets.token_hex(16) if seed is None else seed,
        seed_is_secret=seed is None,
        out=out if store is None else store.path.parent,
        run_id=new_run_id(now, secrets.token_hex(3)) if store is None else store.path.name,
        started=now,
        deadlines=Deadlines() if kind is None else _with_room(deadlines_of(kind, overrides), overrides, suite),
        # What repeats, verifies or compares the run goes by the policy that it was judged by.
        request=replace(request, policy=getattr(found, "policy", request.policy)),
        suite=suite,
        shard=Shard.parse(request.shard) if request.shard else None,
        done=done,
        suspects=suspects,
    )


def _with_room(deadlines: Deadlines, overrides: Mapping[str, float], suite: Suite | None) -> Deadlines:
    """A longer deadline for the whole candidate where a suite has many calls of a problem, unless it was given."""
    if suite is None or not suite.is_timed or "whole" in overrides:
        return deadlines
    return replace(deadlines, whole_s=deadlines.whole_s + SUITE_CALL_S * suite.most_calls)


def loaded(registry: Registry, ids: Sequence[str]) -> tuple[Problem, ...]:
    """The problems; those of a checkout that cannot be used are left out and named. Raises UsageError."""
    from kgbench.problem.kernelbench import Checkout

    if isinstance(registry, Checkout) and len(ids) > FILES_AT_ONCE:
        click.echo(f"finding the calls of {number_of(len(ids), 'file')}; level 3 has some that take a minute", err=True)
    problems = registry.load(ids)
    for each, why in getattr(registry, "complaints", {}).items():
        click.echo(f"kgbench: {numbered('KGB629', f'{each} is left out: {why}')}", err=True)
    return problems


def _suite(
    request: RunRequest, problems: Sequence[Problem], store: RunStore | None, kind: DeviceKind | None
) -> Suite | None:
    """The suite that was asked for; that of a run which is continued stays as it is. Raises UsageError."""
    from kgbench.harness.machine.devices import find_devices
    from kgbench.problem.suites import CHECKOUT, make_suite, read_suite

    if not request.suite or request.suite.startswith(CHECKOUT):
        return None
    if store is not None:
        return read_suite(store.path)
    return make_suite(request.suite, problems, kind or find_devices(request.device)[0].kind)


def _run(
    plan: Plan, request: RunRequest, judged_on: JudgedOn, reopened: RunStore | None, cluster: Cluster | None
) -> Ending:
    from rich.console import Console

    from kgbench.cli.remote import remote_session
    from kgbench.cluster.session import RaySession
    from kgbench.evaluation import coordinator
    from kgbench.harness.session.session import Session, Settings

    console = Console(stderr=True, highlight=False)

    def open_session(store: RunStore, trace_dir: Path | None) -> contextlib.AbstractContextManager[coordinator.Judge]:
        if judged_on.server:
            return remote_session(judged_on.server, store.path.name)
        settings = Settings(
            device=request.device,
            gpus=judged_on.gpus,
            jobs=judged_on.jobs,
            seed=plan.seed,
            deadlines=plan.deadlines,
            hidden=_hidden(plan),
            log_dir=store.log_dir,
            timing=plan.is_timed,
            require_sandbox=request.require_sandbox or "",
            policy=plan.request.policy,
            say=lambda words: console.print(words, soft_wrap=True, markup=False),
            trace_dir=trace_dir,
        )
        if cluster is None:
            return Session(settings)
        mixed, like = judged_on.mixed_devices, None if reopened is None else reopened.info.get("device")
        return RaySession(cluster, settings, folders=request.problem_dirs, mixed=mixed, like=like)

    with timeline_to(judged_on.trace) as trace_dir:
        return coordinator.run(plan, lambda store: open_session(store, trace_dir), console, reopened)


@contextlib.contextmanager
def timeline_to(file: Path | None) -> Iterator[Path | None]:
    """A folder for what processes record; a timeline of it is in ``file`` afterwards, also of what was interrupted.

    None where ``file`` is None. Raises UsageError where the file cannot be written, before anything runs.
    """
    from kgbench.harness.session.timeline import write_timeline

    if file is None:
        yield None
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.open("w").close()
    except OSError as error:
        raise UsageError("KGB191", f"--trace {file}: {error.strerror}; name a file that can be written") from None
    with tempfile.TemporaryDirectory(prefix="kgbench-trace-") as folder:
        try:
            yield Path(folder)
        finally:
            count = write_timeline(Path(folder), file)
            click.echo(f"{file}: {number_of(count, 'span')}; open it in https://ui.perfetto.dev", err=True)


def _hidden(plan: Plan) -> tuple[Path, ...]:
    """Folders that no candidate may read: problems with their tolerances, baselines, references, others' answers,
    results.
    """
    own = {problem.path.resolve().parent for problem in plan.problems}
    return hidden_dirs(plan.out, *own, *plan.request.problem_dirs)
