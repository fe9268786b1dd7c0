# problem: aten/neg
# outcome: passed
# device: cpu
"""A copy by PyTorch, and a quick function in C that works in its place: most of the time is the copy's."""

import ctypes
import subprocess
from pathlib import Path

import torch

CODE = """
#include <stdint.h>
#define TURN(bits, mask) void turn##bits(uint##bits##_t *x, int64_t n) { for (int64_t i = 0; i < n; ++i) x[i] ^= mask; }
#define WHOLE(bits) void whole##bits(uint##bits##_t *x, int64_t n) { \\
  for (int64_t i = 0; i < n; ++i) x[i] = (uint##bits##_t)0 - x[i]; }
TURN(16, 0x8000) TURN(32, 0x80000000) TURN(64, 0x8000000000000000)
WHOLE(8) WHOLE(16) WHOLE(32) WHOLE(64)
"""


def build():
    folder = Path.cwd()
    (folder / "turn.c").write_text(CODE)
    subprocess.run(["cc", "-O3", "-shared", "-fPIC", "-o", "turn.so", "turn.c"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "turn.so"))


LIBRARY = build()


def neg(self):
    out = self.contiguous().clone()
    parts = torch.view_as_real(out) if out.is_complex() else out
    name = f"{'turn' if parts.is_floating_point() else 'whole'}{8 * parts.element_size()}"
    getattr(LIBRARY, name)(ctypes.c_void_p(parts.data_ptr()), ctypes.c_int64(parts.numel()))
    return out
