"""What an address on the network says by itself."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine reaches it: an address or a name; names but localhost may lead anywhere."""
    bare = host.strip("[]")
    if bare.lower() == "localhost":
        return True
    try:
        return ip_address(bare).is_loopback
    except ValueError:
        return False
