"""``kgbench selftest mutants`` with a session that is none: what is printed and which exit code follows."""

from __future__ import annotations

import json
from types import TracebackType

import pytest
from click.testing import CliRunner
from click.testing import Result as CliResult

from kgbench.cli import selftest_mutants as module
from kgbench.cli.main import main
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Result
from kgbench.harness.machine.settings import Job
from kgbench.harness.session import session as session_module
from kgbench.harness.session.session import Settings
from kgbench.problem.mutants import MUTANTS

OF_ATEN = [name for name, mutant in MUTANTS.items() if mutant.source in ("", "aten")]
OF_CUBLAS = [name for name, mutant in MUTANTS.items() if mutant.source in ("", "cublas")]


class FakeSession:
    """Every mutant is wrong in case check-1, but those that ``passing`` names."""

    passing: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    jobs = 2
    facts: dict[str, object] = {}  # noqa: RUF012

    settings: Settings

    def __init__(self, settings: Settings) -> None:
        type(self).settings = settings

    def __enter__(self) -> FakeSession:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def evaluate(self, job: Job) -> Result:
        outcome = Outcome.WRONG_VALUE
        if job.mutant in (*self.passing, *self.skipped):
            outcome = Outcome.PASSED if job.mutant in self.passing else Outcome.SKIPPED
        overloads = [each.name for each in job.problem.overloads]
        cases = [CaseResult("check-1", name, "check", "float32", {}, outcome) for name in overloads]
        judged = () if outcome is Outcome.SKIPPED else tuple(cases)
        return Result(
            job.problem_id, job.model, 0, outcome, overloads=dict.fromkeys(overloads, str(outcome)), cases=judged
        )


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> type[FakeSession]:
    fake = type("Fake", (FakeSession,), {})
    monkeypatch.setattr(session_module, "Session", fake)
    monkeypatch.setattr(module, "check_machine", lambda: None)
    return fake


def mutants(*arguments: str) -> CliResult:
    return CliRunner().invoke(main, ["selftest", "mutants", *arguments, "--device", "cpu"])


def test_one_problem_shows_every_mutant_and_the_case_that_caught_it(session: type[FakeSession]) -> None:
    session.skipped = ("copy",)
    done = mutants("aten/mm")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[: len(OF_ATEN)]] == OF_ATEN
    assert lines[0].split() == ["zeros", "caught", "by", "check-1"]
    assert "copy                         not applicable: the result is no view" in lines
    number = len(OF_ATEN) - 1
    assert lines[len(OF_ATEN) :] == [
        "", f"aten/mm: {number} caught, 1 not applicable, 0 survived",
        "", f"{number} of {number} mutants caught (0 declared equivalent)",
    ]  # fmt: skip


def test_a_cublas_problem_has_its_own_mutants_and_each_problem_is_said_when_it_is_done(
    session: type[FakeSession],
) -> None:
    done = mutants("cublas/cublasSgemm_v2", "aten/mm")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[:2] == [
        f"aten: 1 problem x {len(OF_ATEN)} mutants: {len(OF_ATEN)} caught, 0 survived",
        f"cublas: 1 problem x {len(OF_CUBLAS)} mutants: {len(OF_CUBLAS)} caught, 0 survived",
    ]
    # Either may end first.
    counts, said = zip(*(line.split(" ", 1) for line in done.stderr.splitlines()), strict=True)
    assert counts == ("[1/2]", "[2/2]")
    assert sorted(said) == [
        f"aten/mm: {len(OF_ATEN)} caught, 0 survived",
        f"cublas/cublasSgemm_v2: {len(OF_CUBLAS)} caught, 0 survived",
    ]


def test_another_sources_mutant_runs_where_it_is_named(session: type[FakeSession]) -> None:
    session.skipped = ("ignores_beta",)
    done = mutants("aten/mm", "--mutant", "ignores_beta")
    assert done.stdout.splitlines()[0] == "ignores_beta                 not applicable: the routine has no beta"


def test_jobs_reach_the_session(session: type[FakeSession]) -> None:
    assert mutants("aten/mm", "--mutant", "zeros", "--jobs", "3").exit_code == 0
    assert session.settings.jobs == 3


def test_a_survivor_ends_with_1_and_says_what_to_do(session: type[FakeSession]) -> None:
    session.passing = ("half",)
    done = mutants("aten/mm", "aten/add")
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0] == f"aten: 2 problems x {len(OF_ATEN)} mutants: {3 * len(OF_ATEN) - 3} caught, 3 survived"
    words = "survived: add a case that it fails, or declare it under"
    assert lines[1].startswith(f"aten/add half (Tensor)                {words}")
    assert lines[-1] == f"{3 * len(OF_ATEN) - 3} of {3 * len(OF_ATEN)} mutants caught (0 declared equivalent)"


def test_a_declared_equivalent_that_is_caught_ends_with_1(session: type[FakeSession]) -> None:
    done = mutants("vllm/reshape_and_cache", "--mutant", "last_tile")
    assert done.exit_code == 1
    assert "declared wrongly: declared equivalent, but it was caught" in done.stdout
    session.passing = ("last_tile",)
    done = mutants("vllm/reshape_and_cache", "--mutant", "last_tile")
    assert done.exit_code == 0
    assert "last_tile                    equivalent: block_size is a multiple of 8" in done.stdout


def test_json_has_every_row_and_a_sample_its_seed(session: type[FakeSession]) -> None:
    chosen = ("aten/add", "aten/mm", "aten/softmax", "aten/t", "--sample", "0.1", "--seed", "7", "--json")
    data = json.loads(mutants(*chosen).stdout)
    assert data["seed"] == "7"
    judged = data["counts"]["caught"] + data["counts"]["declared wrongly"]
    assert judged == len(data["rows"]) >= round(0.1 * 4 * len(OF_ATEN))
    assert data["rows"][0].keys() == {"problem", "overload", "mutant", "state", "case", "words"}
    again = json.loads(mutants(*chosen).stdout)
    assert again | {"finished": ""} == data | {"finished": ""}


def test_an_unknown_mutant_ends_with_2(session: type[FakeSession]) -> None:
    done = mutants("aten/mm", "--mutant", "zeroes")
    assert done.exit_code == 2
    assert "--mutant zeroes: there is no such mutant; did you mean 'zeros'?" in done.stderr


def test_a_source_is_narrowed_by_ids(session: type[FakeSession]) -> None:
    done = mutants("--source", "vllm", "*norm*", "--mutant", "zeros", "--json")
    assert "vllm/rms_norm" in (found := {row["problem"] for row in json.loads(done.stdout)["rows"]})
    assert all(name.startswith("vllm/") and "norm" in name for name in found)
