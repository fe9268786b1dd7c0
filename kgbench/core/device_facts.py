"""Measurements of a device that are kept for later sessions: peaks, noise of the null test, durations. Torch-free.

One JSON file per kind of device in the user's cache folder, ``$XDG_CACHE_HOME/kgbench/{peaks,noise,durations}/``. What
cannot be read or written there is measured again or has its default: no run fails for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
from pathlib import Path
from typing import Any, Final

from kgbench.core.files import write_atomically
from kgbench.core.kinds import DeviceKind

PEAKS: Final = "peaks"
NOISE: Final = "noise"
DURATIONS: Final = "durations"


def cache_folder() -> Path:
    """This user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kgbench"


def device_key(kind: str, name: str) -> str:
    """The key that equal devices share: a GPU's model; for a CPU the machine's name."""
    return name if kind == DeviceKind.CUDA else f"{name} of {platform.node()}"


def path_of(what: str, key: str) -> Path:
    return cache_folder() / what / (re.sub(r"[^A-Za-z0-9]+", "-", key).strip("-") + ".json")


def known(what: str, key: str) -> dict[str, Any] | None:
    """The stored measurements; None where there are none, or none that can be read."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        found = json.loads(path_of(what, key).read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return None


def keep(what: str, key: str, data: dict[str, Any]) -> Path | None:
    """Store measurements. Returns the file; None where the cache cannot be written."""
    with contextlib.suppress(OSError, RuntimeError):
        path = path_of(what, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(data, indent=2) + "\n")
        return path
    return None


def noise_of(kind: str, name: str) -> dict[str, float]:
    """Noise by range of time that a null test showed on such a device; empty where none was run."""
    kept = known(NOISE, device_key(kind, name)) or {}
    widths = kept.get("half_widths")
    if not isinstance(widths, dict):
        return {}
    return {str(key): float(value) for key, value in widths.items() if isinstance(value, int | float) and value > 0}
