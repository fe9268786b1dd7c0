"""Kernels of an installed package, named with its version; ``adapters/flaggems.toml`` says which."""

from __future__ import annotations

from typing import Final

from kgbench.models.adapted import AdaptedProvider, provider_for

FORM: Final = "flaggems"
SUMMARY: Final = "FlagGems, installed: ATen's operators in Triton"


def provider(argument: str | None, alias: str | None = None) -> AdaptedProvider:
    """Raises ModelError where it is not installed, or not in the version that is asked for."""
    return provider_for("flaggems", argument, alias)
