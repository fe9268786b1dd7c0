"""One HTML file from data, script and style; where it would be too large, a folder.

Everything that a run holds stands in the file as base64 of deflated JSON, so that no text of a candidate is ever read
as HTML; the script makes elements of it and never sets HTML. The policy in the head allows the page's own scripts and
style by their hashes and nothing else: no network, no image, no frame. The same data gives the same bytes.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, Final

from kgbench.core.errors import UsageError
from kgbench.reports.page.detail import Texts, detail_of
from kgbench.reports.page.overview import overview
from kgbench.reports.page.source import PageSource, shown
from kgbench.store.encoding import json_text

MOST_BYTES: Final = 15_000_000
"""A larger page is a folder: browsers read a file whole before they show it."""
_INDEX: Final = b'<script type="text/plain" id="index">'
"""Stands in every page, and in no other file that somebody may have under its name."""


@dataclass(frozen=True)
class Written:
    """The files that were written."""

    path: Path
    """The file to open."""
    bytes: int
    """Size of all files together."""
    is_folder: bool
    charts: bool
    """False where the charting library is missing, so that the page has tables only."""


def write_page(source: PageSource, path: Path, *, most_bytes: int = MOST_BYTES) -> Written:
    """Writes ``path``, or where that is too large ``path`` without its ending as a folder. Raises UsageError.

    What an older page left under these names goes: nobody may open that one and take it for this.
    """
    systems = Texts()
    chunks = [_packed(detail_of(source, each.id, systems)) for each in source.report.selected]
    index = _packed({**overview(source), "systems": systems.all()})
    library = _vega()
    whole = _document(source, {"index": index, **_named(chunks)}, library, apart=False)
    is_folder = len(whole) > most_bytes
    files = {path: whole}
    folder = path.with_suffix("") if path.suffix else path.with_name(f"{path.name}.d")
    older = _files_of_older(path, folder)
    if is_folder:
        path = folder / "index.html"
        files = {path: _document(source, {"index": index}, library, apart=True)}
        for name, chunk in _named(chunks).items():
            files[folder / "data" / f"{name}.js"] = f'kgbenchData("{name}", "{chunk}");\n'.encode()
    size = write_files(files, path, older - set(files))
    for emptied in (folder / "data", folder):
        with contextlib.suppress(OSError):  # it is not there, or holds something still
            emptied.rmdir()
    return Written(path, size, is_folder, bool(library))


def _files_of_older(path: Path, folder: Path) -> set[Path]:
    """Of a page that is there, as one file or as a folder."""
    index = folder / "index.html"
    found = set(filter(_is_page, (path, index)))
    return found.union((folder / "data").glob("problem-*.js")) if index in found else found


def _is_page(file: Path) -> bool:
    try:
        return file.is_file() and _INDEX in file.read_bytes()
    except OSError:
        return False


def write_files(files: Mapping[Path, bytes], path: Path, older: Iterable[Path] = ()) -> int:
    """Bytes of all of them, of which ``path`` is the one to open; ``older`` ones go. Raises UsageError."""
    try:
        for file, content in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        for file in older:
            file.unlink()
    except OSError as error:
        raise UsageError("KGB180", f"--html {path}: cannot write the page: {error.strerror or error}") from error
    return sum(map(len, files.values()))


def _named(chunks: list[str]) -> dict[str, str]:
    return {f"problem-{number}": chunk for number, chunk in enumerate(chunks)}


def _document(source: PageSource, data: dict[str, str], library: str, *, apart: bool) -> bytes:
    """``apart``: the problems' data lie in files beside this one."""
    style, script = asset("page.css"), asset("page.js")
    scripts = [each for each in (library, script) if each]
    allowed = " ".join((*map(hash_of, scripts), *["'self'"] * apart))
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src {hash_of(style)}; base-uri 'none'; form-action 'none'"
    )
    info = source.run.info
    filled = {
        "policy": policy,
        "title": escape(shown(f"{info.get('model', '')} – kgbench {info.get('id', '')}")),
        "style": style,
        "data": "".join(f'<script type="text/plain" id="{name}">{chunk}</script>\n' for name, chunk in data.items()),
        "scripts": "".join(f"<script>{each}</script>\n" for each in scripts),
    }
    parts = asset("page.html").split("@@")
    return "".join(filled[part] if number % 2 else part for number, part in enumerate(parts)).encode()


def asset(name: str) -> str:
    return resources.files("kgbench.reports.page").joinpath("assets", name).read_text(encoding="utf-8")


def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, from the package that carries them; empty where it is not there."""
    try:
        library = importlib.import_module("vl_convert")
    except ImportError:
        return ""
    bundle: str = library.javascript_bundle()
    return f"(()=>{{{bundle}}})();".replace("</script", "<\\/script").replace("<!--", "<\\!--")


def hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _packed(value: Any) -> str:
    return base64.b64encode(zlib.compress(json_text(value).encode(), 9)).decode()
