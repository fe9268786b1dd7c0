"""``kgbench run --resume``: finds the run, its request, and the verdicts that still hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from kgbench.core.errors import UsageError, shown_path

if TYPE_CHECKING:
    from kgbench.core.details.absence import Fault
    from kgbench.core.types import Key, Result
    from kgbench.evaluation.request import RunRequest
    from kgbench.problem.model import Problem
    from kgbench.problem.registry import Registry
    from kgbench.store.writer import RunStore

_FIXED: Final = {
    "model": "--model", "sources": "--source", "problems": "--problems", "problem_dirs": "--problem-dir",
    "deadlines": "--deadline", "suite": "--suite", "against": "--against", "shard": "--shard",
}  # fmt: skip
_FREE: Final = ("device", "require_sandbox", "policy")


def reopened(spelling: str, out: Path, given: RunRequest, seed: str | None) -> tuple[RunStore, RunRequest]:
    """The run, locked for this process, and its request: its own, but for the machine where given now.

    Raises UsageError when there is no such run, when somebody is writing it, or when the command line asks for
    another one.
    """
    from kgbench.evaluation.request import RunRequest
    from kgbench.store.find import find_run
    from kgbench.store.writer import RunStore

    path = find_run(spelling, out)
    store = RunStore.reopen(path)
    try:
        if not store.info.get("asked"):
            raise UsageError(
                "KGB416", f"{path} was made by an older kgbench that did not keep its selection; start a new run"
            )
        begun = RunRequest.from_json(store.info["asked"])
        if seed is not None:
            raise UsageError("KGB417", "--resume draws a new seed, so that inputs stay secret; leave --seed out")
        for key, option in _FIXED.items():
            now, then = getattr(given, key), getattr(begun, key)
            if now and now != then:
                was = f"with {option} {_words(then)}" if then else f"without {option}"
                raise UsageError(
                    "KGB418", f"the run was started {was}; leave {option} out, or start a new run without --resume"
                )
        if begun.folder != given.folder and _is_relative(begun.model, Path(begun.folder)):
            raise UsageError(
                "KGB419",
                f"--model {begun.model} was meant from {begun.folder}; go there: "
                f"cd {begun.folder} && kgbench run --resume {path.resolve()}",
            )
        sources = click.get_current_context().get_parameter_source
        free = {key: getattr(given, key) for key in _FREE if sources(key) is not ParameterSource.DEFAULT}
        return store, replace(begun, **free)
    except BaseException:
        store.close()
        raise


def selected_by(store: RunStore, registry: Registry) -> list[str]:
    """The ids that the run was started with. Raises UsageError when one is gone."""
    ids = [each["id"] for each in store.info["problems"]]
    gone = [each for each in ids if each not in registry.paths]
    if gone:
        raise UsageError(
            "KGB420", f"{shown_path(store.path)} has problems that are gone: {', '.join(gone[:5])}; put them back"
        )
    return ids


def judged_in(store: RunStore, problems: Sequence[Problem]) -> tuple[dict[Key, Result], frozenset[Key]]:
    """Results that hold, and the candidates that were judged when a device stopped working.

    A result holds if it was judged by the problem's file as it is now and is no harness error, but for candidates with
    which two devices stopped working, since a third would, too.
    """
    from kgbench.core.details.absence import Fault
    from kgbench.core.outcomes import Blame
    from kgbench.reports.model import is_stale
    from kgbench.scores.samples import newest
    from kgbench.store.layout import RESULTS_FILE
    from kgbench.store.reader import read_results

    results, _ = read_results(store.path / RESULTS_FILE)
    current = {problem.id: problem.sha256 for problem in problems}
    fresh = (result for result in results if not is_stale(result, current.get(result.problem)))
    held = {
        result.key: result
        for result in newest(fresh)
        if result.outcome.facts.blames is not Blame.HARNESS or _had(result, Fault.BROKE_DEVICES)
    }
    return held, frozenset(result.key for result in newest(results) if _had(result, Fault.BROKE_DEVICE))


def _had(result: Result, fault: Fault) -> bool:
    from kgbench.core.details.absence import HarnessTrouble

    return isinstance(result.detail, HarnessTrouble) and result.detail.fault is fault


def _words(value: Any) -> str:
    return value if isinstance(value, str) else ",".join(value)


def _is_relative(model: str, folder: Path) -> bool:
    """Whether it names a file or folder by a relative path."""
    path = Path(model.removeprefix("dir:")).expanduser()
    return not path.is_absolute() and (folder / path).exists()
