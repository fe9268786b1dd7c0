"""A generator whose numbers cannot be predicted, even from numbers that it gave before. Referee side only.

torch seeds its CPU generator with 32 bits, which can all be tried, and its sequence can be computed from its output. So
the whole state is derived from a key, and derived again from the next key before each call's values are drawn.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any, Final

import torch

_MERSENNE_WORDS: Final = 624
"""Words of 32 bits of the CPU generator's state, each in 64 bits, behind _HEAD words; left to draw: 1, so none."""
_HEAD: Final = 3
_FIRST_TWO: Final = (5489, 1301868182)
"""The first words of that state after seed 5489, by which its layout is known."""
_MOST_OFFSET: Final = 1 << 60
"""Offsets of the GPU's generator that are drawn are smaller, and multiples of 4."""


class SecretGenerator(torch.Generator):
    """A torch generator whose numbers follow from a key of any length; ``renew`` goes on to the key's next state."""

    _key: bytes
    _number: int

    def __new__(cls, device: torch.device, key: bytes) -> SecretGenerator:
        generator: Any = super().__new__(cls, device=device)  # type: ignore[call-arg]
        generator._key, generator._number = hashlib.sha256(key).digest(), 0
        generator.renew()
        return generator  # type: ignore[no-any-return]

    def __init__(self, device: torch.device, key: bytes) -> None:
        pass

    def renew(self) -> None:
        """Start a new sequence. Numbers of the old one tell nothing about it."""
        stream = hashlib.shake_256(self._key + struct.pack("<Q", self._number))
        self._number += 1
        state = _gpu_state(stream.digest(16)) if self.device.type == "cuda" else _cpu_state(stream)
        self.set_state(state)


def renewed(generator: torch.Generator) -> torch.Generator:
    """The generator, gone on to its next state where it has a key."""
    if isinstance(generator, SecretGenerator):
        generator.renew()
    return generator


def _gpu_state(drawn: bytes) -> torch.Tensor:
    """Philox: a key of 64 bits, and where in its sequence."""
    seed, offset = struct.unpack("<QQ", drawn)
    return torch.frombuffer(bytearray(struct.pack("<QQ", seed, offset % _MOST_OFFSET // 4 * 4)), dtype=torch.uint8)


def _cpu_state(stream: Any) -> torch.Tensor:
    """The Mersenne Twister's whole state. Raises RuntimeError where torch lays it out otherwise."""
    state = torch.Generator().manual_seed(_FIRST_TWO[0]).get_state()
    words = state.view(torch.int64)
    if tuple(words[_HEAD : _HEAD + 2].tolist()) != _FIRST_TWO:
        raise RuntimeError(f"PyTorch {torch.__version__} keeps its generator's state in a way that is not known here")
    drawn = torch.frombuffer(bytearray(stream.digest(4 * _MERSENNE_WORDS)), dtype=torch.int32).to(torch.int64)
    words[_HEAD : _HEAD + _MERSENNE_WORDS] = drawn & 0xFFFFFFFF
    return state
