"""Kernels of an installed package, named with its version; ``adapters/torch__compile.toml`` says which."""

from __future__ import annotations

from typing import Final

from kgbench.models.adapted import AdaptedProvider, provider_for

FORM: Final = "torch.compile"
SUMMARY: Final = "what torch.compile makes of each operator of ATen"


def provider(argument: str | None, alias: str | None = None) -> AdaptedProvider:
    """Raises ModelError where it is not installed, or not in the version that is asked for."""
    return provider_for("torch.compile", argument, alias)
