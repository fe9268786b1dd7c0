"""What one run of the tests looks at: problems that changed and a tenth of the others, and slow tests in turn.

``KGBENCH_TEST_ALL=1`` looks at all. ``KGBENCH_TEST_SHARE=k`` takes tenth k, to repeat a run. A slow test that a command
names by its file always runs.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Final

from kgbench.core.paths import examples_dir
from kgbench.problem.registry import Registry
from kgbench.prompts.shots import SHOWN

ROOT: Final = Path(__file__).parents[1]
SHARES: Final = 10
"""The problems that did not change are dealt to so many runs."""
MOST_CHANGED: Final = 10
"""Problems that are looked at because a branch changed them; a module of references serves over a hundred."""
MOST_LANDED: Final = 4
"""The same of what changed within a day and is landed."""
TURNS: Final = 2
"""Shares, of ``SHARES``, in which a test marked ``in_turn`` runs; all of them on a branch that changed its guards."""
_CANDIDATES: Final = re.compile(r"tests/candidates/(?:mutants|wrong)/(\w+/\w+)\.py")
_PROBLEM: Final = re.compile(r"(?:.*/)?problems/(\w+/\w+)\.yaml")
_REFERENCES: Final = re.compile(r"(?:.*/)?(references/[\w/]+)\.py")
_REFERENCE: Final = re.compile(r"\bkgbench\.(?:\w+\.)*?(references\.[\w.]+)")


@dataclass(frozen=True)
class Sample:
    """The problems of a run."""

    share: int | None
    """Which tenth; ``None`` for all."""
    changed: frozenset[str]
    """Those that changed and are therefore in it."""

    def __contains__(self, problem_id: object) -> bool:
        return self.share is None or problem_id in self.changed or share_of(str(problem_id)) == self.share

    def __str__(self) -> str:
        if self.share is None:
            return "problems: all (KGBENCH_TEST_ALL)"
        return (
            f"problems: share {self.share} of {SHARES} and {len(self.changed)} that changed; "
            f"all with KGBENCH_TEST_ALL=1, this share again with KGBENCH_TEST_SHARE={self.share}"
        )


def share_of(problem_id: str) -> int:
    """By its own name, so that a new problem moves no other one."""
    return int(hashlib.sha256(problem_id.encode()).hexdigest(), 16) % SHARES


def changed_problems(
    paths: Iterable[str], modules: Mapping[str, frozenset[str]], share: int, most: int = MOST_CHANGED
) -> frozenset[str]:
    """The problems to which these files belong, ``most`` at most.

    ``modules``: problems by the module of their reference, as a path from ``references`` on. A problem whose own file
    or candidates changed comes before one whose reference's module changed. The share decides which come first else.
    """
    own, served = set[str](), set[str]()
    for path in paths:
        if match := _CANDIDATES.fullmatch(path) or _PROBLEM.fullmatch(path):
            own.add(match[1])
        elif match := _REFERENCES.fullmatch(path):
            served |= modules.get(match[1], frozenset())

    def turn(problem_id: str) -> bytes:
        return hashlib.sha256(f"{share} {problem_id}".encode()).digest()

    return frozenset([*sorted(own, key=turn), *sorted(served - own, key=turn)][:most])


@cache
def sample() -> Sample:
    """The one of this run."""
    if os.environ.get("KGBENCH_TEST_ALL") == "1":
        return Sample(None, frozenset())
    share = int(os.environ.get("KGBENCH_TEST_SHARE") or share_of_run(_git("rev-list", "--count", "HEAD"), _shallow()))
    share, modules = share % SHARES, _modules()
    own, landed = (
        changed_problems(own_changes(), modules, share),
        changed_problems(changed_files(), modules, share, MOST_LANDED),
    )
    return Sample(share, own | landed)


def looked_at(*guards: str) -> Sample:
    """The problems of a run for a test of problems; all of them on a branch that changed what it guards.

    ``guards``: files, and folders that end in a slash.
    """
    return Sample(None, frozenset()) if _among(own_changes(), guards) else sample()


def sampled_examples() -> list[Path]:
    """Files of kernels that ship, in Triton: those that prompts show, and those for the run's problems."""
    paths = sorted(examples_dir().glob("*/*.py"))
    return [path for path in paths if (name := f"{path.parent.name}/{path.stem}") in SHOWN or name in sample()]


def share_of_run(commits: str, shallow: bool, today: date | None = None) -> int:
    """By the number of commits; by the day where git does not say how many there are."""
    if shallow or not commits.isdecimal():
        return (today or datetime.now(UTC).date()).toordinal() % SHARES
    return int(commits) % SHARES


def has_turn(test: str, guards: Iterable[str], turns: int = TURNS) -> bool:
    """Whether a slow test runs: in ``turns`` shares that its name chooses, in all where a branch changed its guards.

    ``guards``: files, and folders that end in a slash.
    """
    share, guards = sample().share, tuple(guards)
    if share is None or _among(own_changes(), guards):
        return True
    return (share_of(test) + share) % SHARES < turns


def _among(paths: Iterable[str], guards: tuple[str, ...]) -> bool:
    return any(path == each or (each.endswith("/") and path.startswith(each)) for path in paths for each in guards)


@cache
def changed_files() -> list[str]:
    """Changed since the branch left its upstream, or within a day where it has not; and what git does not know yet."""
    base = _left_upstream_at() or _git("rev-list", "--max-count=1", "--before=1.day.ago", "HEAD") or "HEAD"
    return _git("diff", "--name-only", base).splitlines() + _unknown_to_git()


@cache
def own_changes() -> list[str]:
    """Changed since the branch left its upstream, if it has, or not yet committed."""
    return _git("diff", "--name-only", _left_upstream_at() or "HEAD").splitlines() + _unknown_to_git()


def _left_upstream_at() -> str:
    base = _git("merge-base", "HEAD", "@{upstream}")
    return "" if base == _git("rev-parse", "HEAD") else base


def _unknown_to_git() -> list[str]:
    return _git("ls-files", "--others", "--exclude-standard").splitlines()


def _modules() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for problem_id, path in Registry().paths.items():
        for module in set(_REFERENCE.findall(path.read_text(encoding="utf-8"))):
            key = module.replace(".", "/")
            found[key] = found.get(key, frozenset()) | {problem_id}
    return found


def _shallow() -> bool:
    return _git("rev-parse", "--is-shallow-repository") == "true"


def _git(*arguments: str) -> str:
    """What git prints; nothing where there is no git, no repository or no such commit."""
    try:
        return subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
