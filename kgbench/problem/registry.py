"""Reads problem files (YAML) to ``Problem``; refuses unknown content with file, line and key.

It also reads only a file's head for ``kgbench list``, and has the registry of problem folders. ``cases`` expands cases;
``names.py`` resolves spellings of ids.
"""

from __future__ import annotations

import fnmatch
import functools
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kgbench.core.errors import KgbenchError, ProblemFileError, UsageError, shown_path
from kgbench.core.names import Name, hint, resolve
from kgbench.core.paths import problems_dir
from kgbench.core.plugins import PROBLEMS, Plugin, leave_out, package_folder, plugins
from kgbench.problem.model import SHARED_TEXTS, SOURCE_NAME, SOURCES

if TYPE_CHECKING:
    from kgbench.problem.model import Problem


@dataclass(frozen=True)
class Summary:
    """The head of a problem file."""

    id: str
    source: str
    name: str
    summary: str
    kind: str
    category: str
    path: Path


_HEAD_KEYS: Final = ("summary", "kind", "category")
_HEAD_LINE: Final = re.compile(r"(summary|kind|category):[ \t]+(.*)$")


def load_problem(path: Path) -> Problem:
    """The problem in ``path``, ``<source>/<name>.yaml``. Raises ProblemFileError for anything wrong in the file."""
    from kgbench.problem.validate import read_problem

    return read_problem(Path(path))


def load_summary(path: Path) -> Summary:
    """Summary, kind and category of ``path``, read from its first lines only."""
    found: dict[str, str] = {}
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            match = _HEAD_LINE.match(line)
            if match:
                found[match[1]] = _plain_scalar(match[2])
            if len(found) == len(_HEAD_KEYS):
                return Summary(problem_id(path), path.parent.name, path.stem, path=path, **found)
            if not match and line.strip() and not line.startswith("#"):
                break
    missing = next(key for key in _HEAD_KEYS if key not in found)
    step = f"begin the file with {', '.join(_HEAD_KEYS)}, one line each"
    raise ProblemFileError("KGB205", path, 1, missing, "is missing at the head of the file", step)


def categories() -> dict[str, str]:
    """Category by id of kgbench's problems and those of installed packages."""
    registry = Registry()
    return {name: load_summary(path).category for name, path in registry.paths.items()}


def declared_sizes() -> dict[str, int]:
    """Number of problems by source, of kgbench and installed packages: what a run of a whole source selects."""
    return dict(Counter(each.partition("/")[0] for each in Registry().ids()))


def problem_id(path: Path) -> str:
    """``<source>/<name>`` of a problem file."""
    return f"{path.parent.name}/{path.stem}"


def _plain_scalar(written: str) -> str:
    """A one-line YAML scalar, read without a YAML parser; the loader checks that both agree."""
    written = written.strip()
    if written.startswith('"'):
        try:
            return str(json.loads(written[: written.rfind('"') + 1]))
        except ValueError:
            return written  # YAML knows more escapes than JSON; `kgbench validate` asks for a line without
    if written.startswith("'"):
        return written[1 : written.rfind("'")].replace("''", "'")
    return re.sub(r"\s+#.*$", "", written)


def problem_folders(own: Iterable[Path] = ()) -> tuple[Path, ...]:
    """kgbench's folder, those of installed packages, and the user's ``own``."""
    return (problems_dir(), *installed_folders().values(), *own)


@functools.cache
def installed_folders() -> dict[str, Path]:
    """Problem folders of installed packages, by source. One that cannot be read is left out with a warning."""
    found = {}
    for source, plugin in plugins(PROBLEMS, SOURCES).items():
        try:
            found[source] = _folder_of(plugin)
        except KgbenchError as error:
            leave_out(plugin, str(error))
    return found


def _folder_of(plugin: Plugin) -> Path:
    """The folder that an entry point names. Raises KgbenchError if ``kgbench list`` could not list it."""
    package, inside = package_folder(plugin), plugin.value.partition(":")[2].strip()
    if package is None:
        raise UsageError("KGB202", f"there is no package '{plugin.value.partition(':')[0]}'")
    if not SOURCE_NAME.match(plugin.name):
        raise UsageError("KGB119", "a source is named in lower case, digits and _")
    folder = package.joinpath(*inside.split(".")) if inside else package
    files = _problem_files(folder)
    others = sorted({path.parent.name for path in files} - {plugin.name})
    if others or not files:
        what = f"it has problems of '{others[0]}'" if others else "it has none"
        raise UsageError("KGB203", f"{folder} has to hold {plugin.name}/NAME.yaml alone, and {what}")
    for path in files:
        load_summary(path)
    return folder


class Registry:
    """All problems of one or several folders. It lists the folders first, and reads a file only on request."""

    def __init__(self, problem_dirs: Sequence[Path] | None = None) -> None:
        """``problem_dirs`` have ``<source>/<name>.yaml``; None for those of kgbench and of installed packages."""
        self.problem_dirs = tuple(Path(each) for each in problem_dirs) if problem_dirs else problem_folders()

    @cached_property
    def paths(self) -> dict[str, Path]:
        """File of every problem by id, sorted by source and name. Raises UsageError for a folder without problems."""
        found: dict[str, Path] = {}
        for folder in self.problem_dirs:
            for path in _problem_files(folder):
                problem = problem_id(path)
                if problem in found:
                    both = f"{shown_path(found[problem])} and {shown_path(path)}"
                    raise UsageError("KGB201", f"two files define {problem}: {both}; rename one")
                found[problem] = path
        order = {source: number for number, source in enumerate(SOURCES)}
        return dict(sorted(found.items(), key=lambda item: (order.get(item[0].partition("/")[0], len(order)), item[0])))

    @property
    def sources(self) -> tuple[str, ...]:
        """kgbench's own sources, then those of the user's folders."""
        return tuple(dict.fromkeys((*SOURCES, *(each.partition("/")[0] for each in self.paths))))

    def ids(self) -> list[str]:
        """Ids of all problems, by source and then by name."""
        return list(self.paths)

    def summaries(self) -> list[Summary]:
        return [load_summary(path) for path in self.paths.values()]

    def resolve(self, spelling: str) -> Name:
        """The id for any of its spellings, with the overload if the spelling names one."""
        return resolve(spelling, self.ids())

    def find(self, spelling: str) -> Problem:
        """The problem for any spelling of its id. Raises UsageError, with the closest ids, if there is none."""
        return load_problem(self.paths[self.resolve(spelling).id])

    def load(self, ids: Sequence[str]) -> tuple[Problem, ...]:
        """The problems with these ids. Raises ProblemFileError."""
        return tuple(load_problem(self.paths[each]) for each in ids)

    def select(self, sources: Iterable[str] = (), globs: Iterable[str] = ()) -> list[str]:
        """Ids of the given sources that match any of the globs; without sources and globs, all.

        A source may be a comma list or ``all``; a glob without a wildcard may be any spelling of an id. Raises
        UsageError, with the closest ids, for an argument without a match.
        """
        wanted = _sources(sources, self.sources)
        ids = [each for each in self.ids() if each.partition("/")[0] in wanted]
        patterns = [part for glob in globs for part in glob.split(",") if part]
        if not patterns:
            return ids
        chosen: set[str] = set()
        for pattern in patterns:
            chosen.update(self._matches(pattern, ids))
        return [each for each in ids if each in chosen]

    def _matches(self, pattern: str, ids: list[str]) -> list[str]:
        if not any(sign in pattern for sign in "*?["):
            return [resolve(pattern, ids).id]
        wanted = pattern.replace("::", "/")
        found = [each for each in ids if fnmatch.fnmatchcase(each if "/" in wanted else each.partition("/")[2], wanted)]
        if not found:
            near = hint(pattern.strip("*?"), ids)
            raise UsageError("KGB115", f"--problems '{pattern}' matches none of the {len(ids)} problems; {near}")
        return found


def _sources(sources: Iterable[str], known: Sequence[str]) -> Sequence[str]:
    words = [word for source in sources for word in source.split(",") if word]
    for word in words:
        if word not in (*known, "all"):
            raise UsageError("KGB116", f"there is no source '{word}'; there are {', '.join(known)} and all")
    return known if not words or "all" in words else tuple(words)


def _problem_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise UsageError("KGB202", f"{folder} is no folder; a problem folder holds <source>/<name>.yaml")
    found = sorted(path for path in folder.glob("*/*.yaml") if path.name != SHARED_TEXTS)
    strange = next((path for path in found if not SOURCE_NAME.match(path.parent.name)), None)
    if strange is not None:
        raise UsageError(
            "KGB203",
            f"{shown_path(strange)} lies in no source's folder; move it to one of {', '.join(SOURCES)} below {folder}, "
            "or to one of your own, whose name has lower case, digits and _",
        )
    if not found and any(folder.glob("*.yaml")):
        raise UsageError(
            "KGB204", f"{folder} holds problem files itself; give the folder above, with <source>/<name>.yaml in it"
        )
    return found
