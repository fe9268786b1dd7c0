"""The GPU runtime in use."""

from __future__ import annotations

from typing import Final

from kgbench.harness.wire.cuda import Cuda
from kgbench.harness.wire.gpu import Gpu

GPU: Final[Gpu] = Cuda()
"""There is one implementation; a second one is chosen here, by how torch is built."""
