"""Authentication: a bearer token, or the password of a browser. Decided by the head of a request, before its body is
read.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from kgbench.core.addresses import is_loopback
from kgbench.service.errors import ServiceError, TokenRefused
from kgbench.service.tokens import LOCAL, Caller, Tokens

_HOW: Final = (
    "send a token as `Authorization: Bearer kgb_…`, in a browser as the password; its operator makes one with "
    "`kgbench token new NAME`"
)


class Access:
    """Lets a request in, or refuses it."""

    def __init__(self, tokens: Tokens, *, without_token: bool) -> None:
        """``without_token``: the server listens on loopback only, and may be asked without a token until one is made.

        A proxy on the same machine asks from loopback for everybody, so its operator must make tokens first.
        """
        self._tokens = tokens
        self._without_token = without_token

    def caller(self, method: str, headers: Mapping[str, str]) -> Caller:
        """``headers`` by their name in lower case. Raises TokenRefused, ServiceError."""
        open_to_all = self._without_token and not self._tokens.all()
        if open_to_all:
            _check_browser(headers)
        kind, _, value = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and value.strip():
            return self._tokens.caller(value.strip())
        if kind.lower() == "basic" and method in ("GET", "HEAD"):
            return self._tokens.caller(_password(value))
        if open_to_all and not kind:
            return Caller(LOCAL)
        raise TokenRefused("KGB710", f"this service answers nobody without a token: {_HOW}", 401)


def _password(value: str) -> str:
    try:
        return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        raise TokenRefused("KGB710", f"the Authorization header cannot be read: {_HOW}", 401) from None


def _check_browser(headers: Mapping[str, str]) -> None:
    """Without tokens, refuse requests that a foreign page sends through the user's browser.

    A name that was made to lead to this machine stands in Host, another page's address in Origin.
    """
    host = headers.get("host", "")
    origin = headers.get("origin")
    foreign = origin is not None and origin.partition("://")[2] != host
    if foreign or not is_loopback(_name_of(host)) or headers.get("sec-fetch-site") == "cross-site":
        words = "this service listens on loopback without tokens and answers requests of this machine alone"
        raise ServiceError("KGB717", f"{words}; Host was {host[:80]!r}, Origin {(origin or '')[:80]!r}", 403)


def _name_of(host: str) -> str:
    """``[::1]`` of ``[::1]:8650``."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
