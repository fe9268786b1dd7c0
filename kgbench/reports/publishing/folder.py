"""A published run's folder: its files as bytes, written at once, and read back only as it was published.

``results/<date>-<device>-<what>/`` holds run.json, results.jsonl.gz, ``candidates/``, page.html, the self-test, and
publication.json, which has each file's hash, but for verification.jsonl.gz, to which ``kgbench verify`` adds. The same
run gives the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from kgbench.core.figures import size
from kgbench.core.files import write_atomically
from kgbench.reports.page.document import write_page
from kgbench.reports.page.source import page_source
from kgbench.reports.publishing.checks import Check, device_names
from kgbench.reports.publishing.selftests import FILES, PACKED, Evidence
from kgbench.scores.samples import newest
from kgbench.store import verification
from kgbench.store.encoding import json_text
from kgbench.store.errors import StoreError, WriteError, reason
from kgbench.store.layout import PACKED_RESULTS_FILE, RESULTS_FILE, RUN_FILE, device_slug, slug
from kgbench.store.reader import StoredRun, read_run
from kgbench.store.repeat import candidate_file, repeat_command

PUBLICATION_FILE: Final = "publication.json"
PAGE_FILE: Final = "page.html"
"""The one file that may be taken out again: ``kgbench report`` makes it from the others."""
FORMAT: Final = 1
"""Version of publication.json."""
MOST_BYTES: Final = 20_000_000
"""Bytes of all published runs together: each clone of the repository carries them."""
_SHORTEST_NAME: Final = 4
"""Characters of a host's name below which it is not replaced: it would be found in other words."""
_INSTALLED: Final = re.compile(r"(?:[/~][\w.+~-]*)+/(?=(?:site|dist)-packages/)")

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Publication:
    """A folder below ``results/`` that is as it was published."""

    path: Path
    what: str
    draft: bool
    after: str
    """Name of the published folder whose kernels this run's follow, a round later; empty where it follows none."""
    left_out: tuple[str, ...] = ()
    """Problems of a later round whose results are published and not counted."""

    def counted(self, run: StoredRun) -> StoredRun:
        """The run as it counts."""
        return counted(run, self.left_out)


def counted(run: StoredRun, left_out: Collection[str]) -> StoredRun:
    """The run without the results of these problems."""
    return replace(run, results=tuple(result for result in run.results if result.problem not in left_out))


def folder_name(info: Mapping[str, Any], what: str) -> str:
    """``2026-11-22-h200-first-attempt``; the date is the day on which the run was started, UTC."""
    device = next(iter(sorted(device_names(info))), "unknown device")
    return f"{str(info.get('started') or 'unknown')[:10]}-{device_slug(device)}-{slug(what)}"


def files_of(
    run: StoredRun, what: str, found: Sequence[Check], evidence: Sequence[Evidence], *, draft: bool, after: str = "",
    left_out: Sequence[str] = (),
) -> Files:  # fmt: skip
    """Everything that is published, by path below the folder; ``after``, ``left_out`` as in Publication. Raises
    StoreError, UsageError.
    """
    private = _Private(run.info)
    files: dict[str, bytes] = {
        RUN_FILE: private.without(json_text(run.info, indent=2) + "\n"),
        PACKED_RESULTS_FILE: _packed(private.without(_results_text(run.path))),
    }
    for result in newest(run.results):
        if (file := candidate_file(run, result)) is not None:
            files[file.relative_to(run.path).as_posix()] = file.read_bytes()
    for each in evidence:
        if each.data is not None:
            text = private.without(json_text(each.published(), indent=1) + "\n")
            files[f"{FILES[each.part]}{PACKED}"] = _packed(text)
    files |= _page(files, folder_name(run.info, what))
    said = {
        "format": FORMAT, "what": what, "draft": draft, **({"after": after} if after else {}),
        **({"left_out": sorted(left_out)} if left_out else {}),
        "checks": {check.name: private.without(check.wrong).decode() or "holds" for check in found},
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())},
    }  # fmt: skip
    files[PUBLICATION_FILE] = (json_text(said, indent=1) + "\n").encode()
    if (run.path / verification.FILE).is_file():
        again = private.without((run.path / verification.FILE).read_text(encoding="utf-8"))
        files[verification.PACKED_FILE] = _packed(again)
    return files


def _page(files: Files, name: str) -> Files:
    """The page of what is published, as one file or as a folder of files."""
    with tempfile.TemporaryDirectory(prefix="kgbench-publish-") as room:
        folder, pages = Path(room) / name, Path(room) / "pages"
        _write(files, folder)
        run = read_run(folder, with_windows=True)
        source = page_source(run, lambda result: repeat_command(run, result).replace(str(folder), f"results/{name}"))
        write_page(source, pages / PAGE_FILE)
        paths = [path for path in sorted(pages.rglob("*")) if path.is_file()]
        return {path.relative_to(pages).as_posix(): path.read_bytes() for path in paths}


def _results_text(run: Path) -> str:
    """Whole lines of the run's results, as they stand there. Raises StoreError."""
    try:
        text = (run / RESULTS_FILE).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        words = reason(error) if isinstance(error, OSError) else str(error)
        raise StoreError("KGB407", f"{run / RESULTS_FILE}: cannot read: {words}") from error
    return text[: text.rfind("\n") + 1]


def _packed(content: bytes) -> bytes:
    """Compressed, without the time and the name that gzip writes into its head."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0, compresslevel=9) as file:
        file.write(content)
    return packed.getvalue()


class _Private:
    """What is not published about a machine: its name, the home folder, the folder that the command ran in, and where
    Python's packages lie."""

    def __init__(self, info: Mapping[str, Any]) -> None:
        machines = [info.get("machine") or {}, *(part.get("machine") or {} for part in info.get("parts", ()))]
        names = {str(machine.get("name") or "") for machine in machines}
        folder, home = str((info.get("asked") or {}).get("folder") or ""), str(Path.home())
        said = {name: "host" for name in names if len(name) >= _SHORTEST_NAME}
        said |= {place: short for place, short in ((folder, "."), (home, "~")) if len(place) > 1}
        self._words = sorted(said.items(), key=lambda each: -len(each[0]))  # a folder below home before home

    def without(self, text: str) -> bytes:
        for word, short in self._words:
            text = re.sub(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", short, text)
        return _INSTALLED.sub("", text).encode()


def pack_verifications(run: Path) -> bool:
    """Move what ``kgbench verify`` appended to a published run into its packed file; False where nothing was. Raises
    OSError.
    """
    new, packed = run / verification.FILE, run / verification.PACKED_FILE
    if not new.is_file():
        return False
    # Of two packed parts, one behind the other, gzip reads both.
    before = packed.read_bytes() if packed.is_file() else b""
    write_atomically(packed, before + _packed(new.read_bytes()))
    new.unlink()
    return True


def write_folder(files: Files, path: Path) -> bool:
    """Write all files at once. Returns False where the same is there already. Raises StoreError, WriteError."""
    if path.exists():
        there = {each.relative_to(path).as_posix(): each for each in path.rglob("*") if each.is_file()}
        alike = files.keys() <= there.keys() and all(there[name].read_bytes() == files[name] for name in files)
        if alike:
            return False
        raise StoreError("KGB432", f"{path}: something else lies there already; give another name with --as")
    temporary = path.with_name(f".{path.name}.new")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        _write(files, temporary)
        temporary.rename(path)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise WriteError("KGB435", f"{path}: cannot be written: {reason(error)}; nothing is left of it") from error
    return True


def _write(files: Files, folder: Path) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def size_check(files: Files, results: Path, path: Path) -> Check:
    """All published runs together, this one included, are at most MOST_BYTES."""
    others = [each for each in results.rglob("*") if each.is_file() and not each.is_relative_to(path)]
    whole = sum(map(len, files.values())) + sum(each.stat().st_size for each in others)
    largest = max(files, key=lambda name: len(files[name]))
    words = f"{results} would be {size(whole)}, and {size(MOST_BYTES)} is the most"
    words += f"; largest here: {largest}, {size(len(files[largest]))}"
    return Check("size", words if whole > MOST_BYTES else "", "publish fewer runs, or take an older one out")


def publications(results: Path) -> Iterator[Publication]:
    """The published runs below a folder, in the order of their names; drafts are none. Raises StoreError."""
    for file in sorted(results.glob(f"*/{PUBLICATION_FILE}")):
        found = _read(file)
        if not found.draft:
            yield found


def with_followed(path: Path) -> tuple[Path, ...]:
    """The folder of a published run and those of all that it follows, the first round's last. Raises StoreError."""
    found = [path]
    while after := _read(found[-1] / PUBLICATION_FILE).after:
        found.append(path.parent / after)
    return tuple(found)


def _read(file: Path) -> Publication:
    """Raises StoreError where a file is not as it was published."""
    again = "restore the folder with git, or publish the run again"
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        hashes, draft, what = dict(said["files"]), bool(said["draft"]), str(said["what"])
        after, left_out = str(said.get("after", "")), tuple(map(str, said.get("left_out", ())))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError("KGB434", f"{file}: cannot read: {error}; {again}") from error
    if RUN_FILE not in hashes:
        raise StoreError("KGB434", f"{file}: it names no {RUN_FILE}; {again}")
    for name, sha256 in hashes.items():
        path = file.parent / name
        if name == PAGE_FILE and not path.exists():
            continue
        if not path.is_file():
            raise StoreError("KGB434", f"{path}: it is gone; {again}")
        if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
            raise StoreError("KGB434", f"{path}: it is not as it was published; {again}")
    return Publication(file.parent, what, draft, after, left_out)
