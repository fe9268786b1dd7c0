"""Models with random weights on which a backend is tried, and their inputs. Nothing is downloaded."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import torch


class NoModel(Exception):
    """There is no such model; the text says why, and the next step."""


Built = tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]
"""A model, and the positional and keyword arguments of its call."""


def gpt2(settings: Mapping[str, Any], batch: int, tokens: int) -> Built:
    """GPT-2's small model: 12 layers, 768 wide."""
    transformers = _library("transformers", "kgbench[transformers]")
    config = _config(transformers.GPT2Config, settings)
    return _language_model(transformers.GPT2LMHeadModel, config, batch, tokens)


def llama_small(settings: Mapping[str, Any], batch: int, tokens: int) -> Built:
    """Llama in the size of GPT-2's small model: 12 layers, 768 wide, a vocabulary of 32000 tokens."""
    transformers = _library("transformers", "kgbench[transformers]")
    sizes = {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 12}
    config = _config(transformers.LlamaConfig, {**sizes, "vocab_size": 32000, **settings})
    return _language_model(transformers.LlamaForCausalLM, config, batch, tokens)


def resnet50(settings: Mapping[str, Any], batch: int, tokens: int) -> Built:
    """ResNet-50 on images of 224 by 224 pixels; ``tokens`` is ignored."""
    torchvision = _library("torchvision", "torchvision")
    model = torchvision.models.resnet50(weights=None, **settings)
    return model, (torch.randn(batch, 3, 224, 224),), {}


MODELS: Final[dict[str, Callable[[Mapping[str, Any], int, int], Built]]] = {
    "gpt2": gpt2,
    "llama-small": llama_small,
    "resnet50": resnet50,
}


def build(name: str, settings: Mapping[str, Any], batch: int, tokens: int) -> Built:
    """One of ``MODELS``, or the result of ``MODULE:FUNCTION``: model, arguments and, optionally, keyword arguments.

    Raises NoModel.
    """
    if name in MODELS:
        return MODELS[name](settings, batch, tokens)
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise NoModel(f"there is no model '{name}'; there are {', '.join(MODELS)} and MODULE:FUNCTION")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), function)(**settings)
    except Exception as error:
        raise NoModel(f"{name}: {type(error).__name__}: {error}") from error
    if not isinstance(found, tuple) or len(found) not in (2, 3) or not isinstance(found[0], torch.nn.Module):
        raise NoModel(
            f"{name}: expected (model, arguments) or (model, arguments, keywords), got {type(found).__name__}"
        )
    return found[0], tuple(found[1]), dict(found[2]) if len(found) > 2 else {}


def _library(name: str, install: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        words = f"{name} cannot be imported ({error}); pip install '{install}', or give --model MODULE:FUNCTION"
        raise NoModel(words) from error


def _config(kind: Any, settings: Mapping[str, Any]) -> Any:
    known = vars(kind())
    for name in settings:
        if name not in known and name != "attn_implementation":
            raise NoModel(f"--set {name}: {kind.__name__} has no such setting")
    return kind(use_cache=False, **settings)


def _language_model(kind: Any, config: Any, batch: int, tokens: int) -> Built:
    longest = config.max_position_embeddings
    if tokens > longest:
        raise NoModel(f"--tokens {tokens}: the model takes at most {longest}")
    return kind(config), (torch.randint(0, config.vocab_size, (batch, tokens)),), {}
