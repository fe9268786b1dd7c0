"""Do the kernels that ship still get their verdicts? Each example is judged here and compared with what is stored.

    python -m benchmarks.corpus [--device auto] [--problems GLOB] [--store] [--verdicts FILE] [--json FILE]

benchmarks/corpus.json has the verdicts by device: outcome, SHA-256 of the example's text, and the seconds that judging
took. An example without a stored verdict must pass. ``--store`` writes the new verdicts of those that were judged, and
leaves the others as they are. Ends with 1 where an outcome differs. On a CPU an example may take many times the
seconds that it takes on a GPU; ``--timeout`` ends it, which is its outcome there.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.script import Script, device_option, json_option, smoke_option
from kgbench.cli.options import deadlines_of
from kgbench.core.kinds import DeviceKind
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import examples_dir
from kgbench.evaluation.evaluator import Evaluator
from kgbench.evaluation.schedule import known_durations, longest_first
from kgbench.harness.machine.devices import find_devices
from kgbench.problem.registry import Registry, load_problem

VERDICTS: Final = Path(__file__).with_name("corpus.json")


@dataclass(frozen=True)
class Verdict:
    """What became of one example on one device."""

    outcome: str
    sha256: str
    """Of the example's text."""
    seconds: float
    """From the start of its process to the verdict, without waiting."""


Stored = dict[str, dict[str, Verdict]]
"""Verdicts by device, ``cpu`` or a GPU's name, and by problem."""


@click.command(cls=Script)
@click.option("--problems", "globs", multiple=True, help="Only examples for problems that match; all by default.")
@click.option("--timeout", type=click.FloatRange(min=1), help="Seconds that an example may take; as kgbench run's.")
@click.option("--store", is_flag=True, help="Write the verdicts to --verdicts.")
@click.option(
    "--verdicts",
    default=VERDICTS,
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of stored verdicts; benchmarks/corpus.json by default.",
)
@device_option
@json_option
@smoke_option(globs=("aten/t", "aten/cat"), device="cpu")
def main(
    globs: tuple[str, ...], timeout: float | None, store: bool, verdicts: Path, device: str, json_path: Path | None
) -> None:
    """Judge all examples and compare their verdicts with the stored ones: a line for each, then each difference."""
    texts = examples(globs)
    stored = read(verdicts)
    name, found = _judged(texts, device, timeout)
    compared = differences(found, stored.get(name, {}))
    for line in compared.lines:
        click.echo(line)
    click.echo(f"{len(found)} examples on {name}: {compared.outcomes} with another outcome than stored")
    if store:
        write(verdicts, {**stored, name: {**stored.get(name, {}), **found}})
    if json_path is not None:
        json_path.write_text(json.dumps({name: {problem: asdict(each) for problem, each in found.items()}}, indent=1))
    sys.exit(compared.outcomes > 0)


def examples(globs: Sequence[str]) -> dict[str, str]:
    """The text of each example in Triton by its problem, of those that match. Raises click.UsageError without any."""
    paths = {problem: examples_dir() / f"{problem}.py" for problem in Registry().select(globs=globs)}
    texts = {problem: path.read_text(encoding="utf-8") for problem, path in paths.items() if path.is_file()}
    if not texts:
        raise click.UsageError(f"--problems {','.join(globs)}: none of these problems has an example")
    return texts


def _judged(texts: Mapping[str, str], device: str, timeout: float | None) -> tuple[str, dict[str, Verdict]]:
    """The device's name, and its verdicts in the order of the problems."""
    overrides = {"whole": timeout} if timeout else {}
    with Evaluator(device, deadlines=deadlines_of(find_devices(device)[0].kind, overrides)) as evaluator:
        name = str(evaluator.facts["name"]) if evaluator.facts["kind"] == DeviceKind.CUDA else "cpu"
        found = dict(_as_they_end(texts, evaluator))
    return name, {problem: found[problem] for problem in texts}


def _as_they_end(texts: Mapping[str, str], evaluator: Evaluator) -> Iterator[tuple[str, Verdict]]:
    """Verdicts in the order in which they end; the example that took the longest before begins first."""
    paths = Registry().paths
    order = longest_first([load_problem(paths[problem]) for problem in texts], known_durations(evaluator.facts))
    with ThreadPoolExecutor(evaluator.jobs) as pool:
        work = {pool.submit(evaluator.check, problem.id, texts[problem.id]): problem.id for problem in order}
        for number, future in enumerate(as_completed(work), 1):
            problem, result = work[future], future.result()
            seconds = result.seconds.get("total", 0.0)  # without what it waited
            sha256 = hashlib.sha256(texts[problem].encode()).hexdigest()
            reason = "" if result.outcome is Outcome.PASSED else f": {' '.join(result.reason.split())[:300]}"
            click.echo(f"[{number}/{len(texts)}] {problem} {result.outcome} in {seconds:.1f} s{reason}")
            yield problem, Verdict(str(result.outcome), sha256, round(seconds, 1))


@dataclass(frozen=True)
class Compared:
    """New verdicts beside stored ones."""

    lines: tuple[str, ...]
    """One for each example that has no stored verdict, another outcome or another text."""
    outcomes: int
    """How many have another outcome."""


def differences(found: Mapping[str, Verdict], stored: Mapping[str, Verdict]) -> Compared:
    """An example without a stored verdict is expected to pass."""
    lines, outcomes = [], 0
    for problem, new in found.items():
        old = stored.get(problem)
        expected = old.outcome if old else str(Outcome.PASSED)
        if new.outcome != expected:
            outcomes += 1
            lines.append(f"{problem}: {new.outcome}, {'stored' if old else 'expected'}: {expected}")
        elif old is None:
            lines.append(f"{problem}: {new.outcome}, and no verdict is stored")
        elif new.sha256 != old.sha256:
            lines.append(f"{problem}: {new.outcome} as stored, and its text has changed since")
    return Compared(tuple(lines), outcomes)


def read(path: Path) -> Stored:
    """Stored verdicts; none where there is no file. Raises click.ClickException for what is not such a file."""
    if not path.is_file():
        return {}
    try:
        data: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return {device: {name: Verdict(**each) for name, each in rows.items()} for device, rows in data.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise click.ClickException(f"{path} has no verdicts that --store wrote: {error}; write it anew") from error


def write(path: Path, verdicts: Stored) -> None:
    """A line for each example, so that a change of one shows as one."""
    devices = []
    for device, rows in sorted(verdicts.items()):
        lines = [f"{json.dumps(problem)}: {json.dumps(asdict(each))}" for problem, each in sorted(rows.items())]
        devices.append(f"{json.dumps(device)}: {{\n" + ",\n".join(lines) + "\n}")
    path.write_text("{\n" + ",\n".join(devices) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
