"""Kernels of an installed package, named with its version; ``adapters/liger.toml`` says which."""

from __future__ import annotations

from typing import Final

from kgbench.models.adapted import AdaptedProvider, provider_for

FORM: Final = "liger"
SUMMARY: Final = "Liger Kernel, installed: fused kernels for training"


def provider(argument: str | None, alias: str | None = None) -> AdaptedProvider:
    """Raises ModelError where it is not installed, or not in the version that is asked for."""
    return provider_for("liger", argument, alias)
