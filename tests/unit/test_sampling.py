"""Which problems the slow tests of data look at in one run."""

from __future__ import annotations

import re
from datetime import date

import pytest

from kgbench.problem.registry import Registry
from tests import sampling
from tests.sampling import (
    MOST_CHANGED,
    SHARES,
    TURNS,
    Sample,
    changed_problems,
    has_turn,
    looked_at,
    share_of,
    share_of_run,
)

PROBLEMS = sorted(Registry().paths)


def test_ten_runs_look_at_every_problem_once() -> None:
    seen = [each for share in range(SHARES) for each in PROBLEMS if each in Sample(share, frozenset())]
    assert sorted(seen) == PROBLEMS
    for share in range(SHARES):
        assert 5 <= sum(share_of(each) == share for each in PROBLEMS) <= len(PROBLEMS) // 5


def test_what_changed_is_looked_at_in_every_run() -> None:
    for share in range(SHARES):
        assert "aten/mm" in Sample(share, frozenset({"aten/mm"}))
    assert all(each in Sample(None, frozenset()) for each in PROBLEMS)
    assert all(changed_problems([f"problems/{each}.yaml"], {}, 0) == {each} for each in PROBLEMS)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("problems/aten/mm.yaml", "aten/mm"),
        ("kgbench/problems/aten/mm.yaml", "aten/mm"),
        ("tests/candidates/mutants/aten/mm.py", "aten/mm"),
        ("tests/candidates/wrong/cublas/cublasSgemm_v2.py", "cublas/cublasSgemm_v2"),
        ("baselines/references/cublas.py", "cublas/cublasSgemm_v2"),
        ("kgbench/baselines/references/vllm/norms.py", "vllm/rms_norm"),
    ],
)
def test_a_problem_changes_with_its_file_its_candidates_and_its_reference(path: str, problem: str) -> None:
    served = {"references/cublas": "cublas/cublasSgemm_v2", "references/vllm/norms": "vllm/rms_norm"}
    modules = {module: frozenset({each}) for module, each in served.items()}
    assert changed_problems([path], modules, 0) == {problem}


def test_nothing_else_changes_a_problem() -> None:
    paths = ["README.md", "tests/candidates/honest/talks.py", "kgbench/harness/judge.py", "docs/problems/aten/mm.md"]
    assert changed_problems(paths, {}, 0) == frozenset()


def test_a_large_change_is_cut_short_and_its_own_files_come_first() -> None:
    many = {"references/aten": frozenset(f"aten/p{i}" for i in range(100))}
    paths = ["baselines/references/aten.py", "problems/vllm/z.yaml"]
    turns = [changed_problems(paths, many, share) for share in range(SHARES)]
    assert all(len(turn) == MOST_CHANGED and "vllm/z" in turn for turn in turns)
    assert len(frozenset[str]().union(*turns)) > 2 * MOST_CHANGED


def test_the_share_moves_on_with_every_commit_or_day() -> None:
    assert [share_of_run(str(count), False) for count in (998, 999, 1000)] == [8, 9, 0]
    days = [date(2026, 1, day) for day in range(1, SHARES + 1)]
    for commits, shallow in (("", False), ("fatal: no repository", False), ("1", True)):
        assert {share_of_run(commits, shallow, day) for day in days} == set(range(SHARES))


def test_every_module_of_references_serves_a_problem() -> None:
    modules = sampling._modules()
    assert "vllm/rms_norm" in {each for served in modules.values() for each in served}
    assert set().union(*modules.values()) <= set(PROBLEMS)


def test_a_variable_takes_all_or_one_share(monkeypatch: pytest.MonkeyPatch) -> None:
    def read() -> Sample:
        sampling.sample.cache_clear()
        return sampling.sample()

    try:
        monkeypatch.setenv("KGBENCH_TEST_ALL", "1")
        assert read().share is None
        monkeypatch.setenv("KGBENCH_TEST_ALL", "")
        monkeypatch.setenv("KGBENCH_TEST_SHARE", "7")
        assert read().share == 7
        assert "KGBENCH_TEST_SHARE=7" in str(read())
    finally:
        sampling.sample.cache_clear()


def turns_of(monkeypatch: pytest.MonkeyPatch, own: list[str], **turns: int) -> int:
    """The shares in which a test runs that guards a folder and a file."""
    monkeypatch.setattr(sampling, "own_changes", lambda: own)
    runs = 0
    for share in range(SHARES):
        monkeypatch.setattr(sampling, "sample", lambda share=share: Sample(share, frozenset()))
        runs += has_turn("tests/harness/test_ray.py", ("kgbench/cluster/", "benchmarks/cluster.py"), **turns)
    return runs


def test_a_slow_test_has_its_turns_and_all_where_a_branch_changed_what_it_guards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = ["kgbench/clusters.md", "benchmarks/cluster.pyi", "kgbench/cli/run.py"]
    assert turns_of(monkeypatch, others) == TURNS
    assert turns_of(monkeypatch, others, turns=1) == 1
    assert turns_of(monkeypatch, ["benchmarks/cluster.py"]) == SHARES
    assert turns_of(monkeypatch, ["kgbench/cluster/actor.py"]) == SHARES
    monkeypatch.setattr(sampling, "sample", lambda: Sample(None, frozenset()))
    assert has_turn("any", ())


def test_a_test_of_problems_looks_at_all_where_a_branch_changed_what_it_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    own: list[str] = []
    monkeypatch.setattr(sampling, "own_changes", lambda: own)
    monkeypatch.setattr(sampling, "sample", lambda: Sample(3, frozenset({"aten/mm"})))

    def seen() -> list[str]:
        return [each for each in PROBLEMS if each in looked_at("kgbench/problem/cases/", "benchmarks/cluster.py")]

    own.append("kgbench/problem/cases.md")
    assert seen() == [each for each in PROBLEMS if share_of(each) == 3 or each == "aten/mm"]
    own.append("kgbench/problem/cases/sizes.py")
    assert seen() == PROBLEMS


def test_what_a_slow_test_guards_is_there() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in (sampling.ROOT / "tests").rglob("test_*.py")}
    marked = [guards for text in texts.values() for guards in re.findall(r"(?:in_turn|looked_at)\(([^)]*)\)", text)]
    guards = {guard for each in marked for guard in re.findall(r'(?<!f)"([\w./]+)"', each)}
    assert len(guards) > 10
    assert [each for each in sorted(guards) if not (sampling.ROOT / each).exists()] == []


def test_all_shares_together_run_every_slow_test() -> None:
    names = [f"tests/harness/test_{i}.py::test" for i in range(100)]
    load = [sum((share_of(each) + share) % SHARES < TURNS for each in names) for share in range(SHARES)]
    assert sum(load) == len(names) * TURNS
    assert max(load) < 3 * min(load)
