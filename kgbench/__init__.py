"""kgbench: is this GPU kernel right, and is it faster than the library?

Importing this package costs nothing: no torch, no device query, no file read. ``Evaluator`` judges kernels from Python,
several of them on one ``ForkServer``, ``RemoteEvaluator`` asks a service; ``Reward`` makes numbers of verdicts;
``load_run`` reads what was found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgbench.evaluation.evaluator import Evaluator as Evaluator
    from kgbench.evaluation.ray_evaluator import RayEvaluator as RayEvaluator
    from kgbench.evaluation.reward import Reward as Reward
    from kgbench.harness.session.server import ForkServer as ForkServer
    from kgbench.reports.notebooks import Run as Run
    from kgbench.reports.notebooks import load_run as load_run
    from kgbench.service.remote import RemoteEvaluator as RemoteEvaluator

__all__ = ["Evaluator", "ForkServer", "RayEvaluator", "RemoteEvaluator", "Reward", "Run", "__version__", "load_run"]

__version__ = "0.1.0"


_LAZY = {
    "Evaluator": "kgbench.evaluation.evaluator",
    "RayEvaluator": "kgbench.evaluation.ray_evaluator",
    "ForkServer": "kgbench.harness.session.server",
    "RemoteEvaluator": "kgbench.service.remote",
    "Reward": "kgbench.evaluation.reward",
    "Run": "kgbench.reports.notebooks",
    "load_run": "kgbench.reports.notebooks",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'kgbench' has no attribute {name!r}")
