"""What a server is started with. No FastAPI."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kgbench.core.addresses import is_loopback

DEFAULT_PORT: Final = 8650
"""TCP port unless another is given."""
MAX_BODY_BYTES: Final = 8 << 20
"""Bytes of a request's body."""
HEADERS_S: Final = 10.0
"""Seconds within which a request's head has to be there, from connecting on."""
BODY_S: Final = 30.0
"""Seconds within which a request's body has to be there, from its head on."""
MOST_CONNECTIONS: Final = 1000
"""Connections at once; what comes above it is answered with 503."""


@dataclass(frozen=True)
class Listening:
    """Where a server listens, and what a request may take."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """0 takes a free one."""
    max_body_bytes: int = MAX_BODY_BYTES
    headers_s: float = HEADERS_S
    body_s: float = BODY_S
    tls_certificate: Path | None = None
    tls_key: Path | None = None

    @property
    def is_loopback(self) -> bool:
        """Nobody but this machine's own users reaches it."""
        return is_loopback(self.host)
