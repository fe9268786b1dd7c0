"""``python -m kgbench.torchtools.library_check``: which libraries load on this machine, with name and version.

Standard input is JSON ``{"device_kind", "targets"}``; standard output gets one JSON line ``{"target", "library",
"reason"}`` per target, as soon as it is known. ``kgbench doctor`` starts it as a process, so that a library's crash
ends only this process.
"""

from __future__ import annotations

import json
import sys

from kgbench.baselines.registry import Unavailable, load_baseline
from kgbench.core.kinds import DeviceKind
from kgbench.harness.machine.processes import own_lines


def main() -> None:
    # A library's output must not be mistaken for the answers.
    lines = own_lines()
    asked = json.loads(sys.stdin.read())
    for target in asked["targets"]:
        library, reason = _load(target, DeviceKind(asked["device_kind"]))
        print(json.dumps({"target": target, "library": library, "reason": reason}), file=lines, flush=True)


def _load(target: str, device_kind: DeviceKind) -> tuple[str, str]:
    """(library, ""), or ("", why not)."""
    try:
        return load_baseline(target, device_kind).library, ""
    except (Unavailable, ValueError) as error:
        return "", str(error)
    except (OSError, RuntimeError, ImportError) as error:
        return "", f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
