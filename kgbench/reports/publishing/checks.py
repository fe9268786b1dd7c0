"""Checks before a run is published. Each says what is wrong and what to do next; all are run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kgbench.core.errors import KgbenchError
from kgbench.core.kinds import DeviceKind, PolicyMode
from kgbench.core.outcomes import Blame
from kgbench.core.text import number_of
from kgbench.core.types import Result
from kgbench.problem.problem_set import sha256_of
from kgbench.problem.registry import Registry, load_problem
from kgbench.reports.best_library import packages_of
from kgbench.reports.publishing.selftests import Evidence, wrong_with
from kgbench.scores.samples import newest
from kgbench.scores.speedups import speedup
from kgbench.store.by_device import models_in
from kgbench.store.encoding import sha256
from kgbench.store.reader import UNFINISHED, StoredRun, problem_hashes, shard_of
from kgbench.store.repeat import candidate_file

SANDBOXES: Final = ("isolated", "full")
"""Levels of the sandbox (docs/sandbox.md) of a published run: network, signals and answers are out of reach."""
_NAMED: Final = 3
"""Most problems that one line names; it counts the others."""


@dataclass(frozen=True)
class Check:
    name: str
    wrong: str
    """What is wrong, in words; empty where the check holds."""
    step: str
    """What to do about it."""

    @property
    def holds(self) -> bool:
        return not self.wrong

    def line(self) -> str:
        return f"ok     {self.name}" if self.holds else f"WRONG  {self.name}: {self.wrong}; next: {self.step}"


def checks(run: StoredRun, evidence: Sequence[Evidence], *, later_round: bool = False) -> tuple[Check, ...]:
    """All checks, in a fixed order.

    ``later_round``: the run follows a published one. Then it may have been interrupted: of each problem the best kernel
    of all rounds counts, so that one that was not judged can only be missing. So may the run of an installed package,
    whose problems without a verdict are named and count as not correct.
    """
    results = newest(run.results)
    info, path = run.info, run.path
    return (
        _check("whole", _whole(run, results, later_round), f"`kgbench run --resume {path}`, or judge it again"),
        _check("candidates stored", _candidates(run, results), "copy the run's folder whole, `candidates/` included"),
        _check("GPU", _gpu(info, results), "run it on an NVIDIA GPU; `--draft DIR` writes what a CPU shows"),
        _check("one device", _one_device(info, results), "judge it again on one kind of GPU"),
        _check("timed", _timed(info), "judge it again without `--suite`"),
        _check("seeds", _seeds(info, results), "judge it again without `--seed`, and let it finish"),
        _check("problem set", _problem_set(info, results), "judge it again with the problems of this kgbench"),
        _check("policy", _policy(results), "judge it again with `--policy strict`"),
        _check("sandbox", _sandbox(results), "judge it again with `--require-sandbox isolated` (docs/sandbox.md)"),
        *(_check(f"selftest {each.part}", _selftest(info, results, each), _selftest_step(each)) for each in evidence),
    )


def follows(run: StoredRun, rounds: Sequence[StoredRun]) -> Check:
    """Whether a run's kernels can be a later round than published ones, each of which follows the next."""
    step = "name with --after the run whose verdicts the kernels were written from"
    return _check("after", _unlike(run, [each.info for each in rounds]), step)


def renewed(info: Mapping[str, Any], earlier: Mapping[str, Any]) -> list[str]:
    """The problems of a run that an earlier one judged with another file. Both arguments are run.json."""
    before = problem_hashes(earlier)
    return [problem for problem, sha in problem_hashes(info).items() if before.get(problem, sha) != sha]


def _unlike(run: StoredRun, rounds: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    info = run.info
    if device_names(info) != device_names(rounds[0]):
        yield f"it is of {_and(device_names(info))}, the earlier run of {_and(device_names(rounds[0]))}"
    before = set().union(*map(problem_hashes, rounds))
    if strange := [problem for problem in problem_hashes(info) if problem not in before]:
        yield f"no earlier run has {_names(strange)}"
    # Left out, such a problem would keep a verdict of the file before, in which a call may be missing.
    changed = {problem for each in rounds for problem in renewed(info, each)}
    if left := sorted(changed.intersection(not_judged(info, run.results))):
        yield f"an earlier run judged with another file, and this one has no verdict: {_names(left)}"


def _and(names: Iterable[str]) -> str:
    return " and ".join(sorted(names)) or "a device without a name"


def _check(name: str, wrong: Iterable[str], step: str) -> Check:
    return Check(name, "; ".join(wrong), step)


def not_judged(info: Mapping[str, Any], results: Iterable[Result]) -> list[str]:
    """The problems that a run was asked for and has no result of, one for each sample."""
    there = {(result.problem, result.sample) for result in results}
    asked = [(each["id"], sample) for each in info.get("problems", ()) for sample in range(info.get("samples") or 1)]
    return [problem for problem, sample in asked if (problem, sample) not in there]


def without_verdict(run: StoredRun) -> list[str]:
    """The problems that a run was asked for and has no verdict of: no result, or kgbench's own failure."""
    results = newest(run.results)
    return [*not_judged(run.info, results), *(result.problem for result in results if _is_ours(result))]


def _is_ours(result: Result) -> bool:
    return result.outcome.facts.blames is Blame.HARNESS


def _whole(run: StoredRun, results: Sequence[Result], later_round: bool) -> Iterator[str]:
    of_package = bool(packages_of(run))
    if not (later_round or of_package):
        yield from _finished(run, results)
    yield from _sound(run, results)
    if not of_package and (ours := [result.problem for result in results if _is_ours(result)]):
        yield f"kgbench itself failed: {_names(ours)}"


def _finished(run: StoredRun, results: Sequence[Result]) -> Iterator[str]:
    if run.info.get("status") != "finished":
        yield f"its status is {run.info.get('status') or 'unknown'}"
    yield from (note for note in run.notes if note.startswith(UNFINISHED))
    if missing := not_judged(run.info, results):
        yield f"without a result: {_names(missing)}"


def _sound(run: StoredRun, results: Sequence[Result]) -> Iterator[str]:
    if shard := shard_of(run.info):
        yield f"it is shard {shard} of a run, which `kgbench merge` puts together"
    if not run.info.get("problems"):
        yield "it says no problem that it was asked for"
    yield from (note for note in run.notes if not note.startswith(UNFINISHED))
    if weak := [result.problem for result in results if result.without]:
        yield f"judged without a defence: {_names(weak)}"


def _candidates(run: StoredRun, results: Sequence[Result]) -> Iterator[str]:
    missing, other = [], []
    for result in results:
        file = candidate_file(run, result)
        if not result.candidate_sha256:
            continue
        if file is None:
            missing.append(result.problem)
        elif sha256(file.read_text(encoding="utf-8")) != result.candidate_sha256:
            other.append(result.problem)
    if missing:
        yield f"no text is stored of {_names(missing)}"
    if other:
        yield f"the stored text is not the one that was judged: {_names(other)}"


def _gpu(info: Mapping[str, Any], results: Sequence[Result]) -> Iterator[str]:
    kind = (info.get("device") or {}).get("kind")
    if kind != DeviceKind.CUDA:
        yield f"it was made on {kind or 'an unknown device'}"
    if interpreted := [result.problem for result in results if result.interpreted]:
        yield f"judged in Triton's interpreter: {_names(interpreted)}"


def _one_device(info: Mapping[str, Any], results: Sequence[Result]) -> Iterator[str]:
    names = device_names(info) | set(models_in(results))
    if len(names) != 1:
        yield f"it was made on {_and(names)}"
    seeds = {result.seed for result in results}
    earlier = [each for each in info.get("segments", ())[:-1] if each.get("seed_sha256") in seeds]
    if "parts" in info or not earlier:
        return
    if any(not each.get("device") for each in earlier):
        yield "it was continued, and the device of an earlier part is not stored"
    elif changed := sorted({key for each in earlier for key in _differences(each, info)}):
        yield f"it was continued with another {' and '.join(changed)}"


def _differences(segment: Mapping[str, Any], info: Mapping[str, Any]) -> Iterator[str]:
    """What is not the same in an earlier segment of a continued run and in its last."""
    for key in ("kgbench", "packages"):
        if segment.get(key) != info.get(key):
            yield key
    one, two = (each.get("device") or {} for each in (segment, info))
    yield from (key for key in ("driver", "versions") if one.get(key) != two.get(key))


def device_names(info: Mapping[str, Any]) -> set[str]:
    """Every name of a device that run.json says, of merged parts and earlier segments too."""
    device = info.get("device") or {}
    of_parts = (each for part in info.get("parts", ()) for each in part.get("devices") or ())
    of_segments = (each["device"] for each in info.get("segments", ()) if each.get("device"))
    listed = [*(device.get("devices") or ()), *of_parts, *of_segments]
    names = {str(device.get("name") or ""), *(str(each.get("name") or "") for each in listed)}
    return names - {""}


def _timed(info: Mapping[str, Any]) -> Iterator[str]:
    if info.get("suite"):
        yield f"it judged the suite {info['suite']} in place of the problems' own cases"
    elif info.get("timed") is not True:
        yield "nothing was timed"


def _seeds(info: Mapping[str, Any], results: Sequence[Result]) -> Iterator[str]:
    segments = info.get("segments", ())
    if info.get("seed_is_secret") is not True:
        yield "its seed was given beforehand, so that a candidate's author may have known the inputs"
    # Of a merged run the parts' own seeds are what inputs came from.
    unknown = [each for each in segments if not each.get("seed")]
    if unknown or not segments:
        yield f"{number_of(len(unknown) or 1, 'seed')} not disclosed"
    if any(each.get("seed") and sha256(each["seed"]) != each.get("seed_sha256") for each in segments):
        yield "a seed does not have the hash that was written before it was disclosed"
    known = {each.get("seed_sha256") for each in segments}
    if strange := [result.problem for result in results if result.seed not in known]:
        yield f"inputs from a seed that run.json does not have: {_names(strange)}"


def _problem_set(info: Mapping[str, Any], results: Sequence[Result]) -> Iterator[str]:
    problems = info.get("problems", ())
    if sha256_of(problem_hashes(info).items()) != info.get("problem_set_sha256"):
        yield "the hash of its problem set is not that of its problems"
    if own := [each["id"] for each in problems if each.get("own")]:
        yield f"problems of the user's own: {_names(own)}"
    shipped, said = Registry().paths, problem_hashes(info)
    if gone := [each for each in said if each not in shipped]:
        yield f"this kgbench has no {_names(gone)}"
    if changed := [each for each in said if each in shipped and _sha256_of_file(each) != said[each]]:
        yield f"another file than this kgbench's: {_names(changed)}"
    if stale := [result.problem for result in results if result.problem_sha256 not in ("", said.get(result.problem))]:
        yield f"judged by another file than run.json names: {_names(stale)}"


def _sha256_of_file(problem: str) -> str | None:
    try:
        return load_problem(Registry().paths[problem]).sha256
    except KgbenchError:
        return None


def _policy(results: Sequence[Result]) -> Iterator[str]:
    # An installed package may leave work to PyTorch; RESULTS.md shows it as a library.
    judged = [result for result in results if result.candidate_sha256 and not _is_ours(result)]
    loose = [each for each in judged if each.policy != (PolicyMode.REPORT if each.adapted else PolicyMode.STRICT)]
    if loose:
        words = sorted({result.policy or "not said" for result in loose})
        yield f"policy {' and '.join(words)}: {_names([result.problem for result in loose])}"


def _sandbox(results: Sequence[Result]) -> Iterator[str]:
    open_ = [r for r in results if r.candidate_sha256 and r.cases and r.sandbox.get("level") not in SANDBOXES]
    if open_:
        words = sorted({result.sandbox.get("level", "not said") for result in open_})
        yield f"level {' and '.join(words)}: {_names([result.problem for result in open_])}"


def _selftest(info: Mapping[str, Any], results: Sequence[Result], evidence: Evidence) -> Iterator[str]:
    device = next(iter(sorted(device_names(info))), "")
    beaten = [result.problem for result in results if (found := speedup(result)) is not None and found.low > 1]
    for words in wrong_with(evidence, [str(info.get(key)) for key in ("started", "finished")], device, beaten):
        yield f"{evidence.where}: {words}"


def _selftest_step(evidence: Evidence) -> str:
    return f"`kgbench selftest {evidence.part} --json > {evidence.paths[-1]}` on that device within 12 h of the run"


def _names(problems: Iterable[str]) -> str:
    found = list(dict.fromkeys(problems))
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more
