"""Kernels of an installed package, named with its version; ``adapters/vllm.toml`` says which."""

from __future__ import annotations

from typing import Final

from kgbench.models.adapted import AdaptedProvider, provider_for

FORM: Final = "vllm"
SUMMARY: Final = "vLLM, installed: its operators that are ATen's, too"


def provider(argument: str | None, alias: str | None = None) -> AdaptedProvider:
    """Raises ModelError where it is not installed, or not in the version that is asked for."""
    return provider_for("vllm", argument, alias)
