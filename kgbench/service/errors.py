"""Errors between a service and its clients: a KgbenchError with a status of HTTP."""

from __future__ import annotations

from typing import Any

from kgbench.core.errors import KgbenchError


class ServiceError(KgbenchError):
    """A request that is not done. Over HTTP it is ``{"error": {"number": …, "message": …}}`` with ``status``."""

    def __init__(self, number: str, text: str, status: int = 400, retry_after_s: int | None = None) -> None:
        """``retry_after_s``: whole seconds after which it may go well; None where waiting does not help."""
        super().__init__(number, text)
        self.status = status
        self.retry_after_s = retry_after_s
        self.args = (number, text, status, retry_after_s)

    def to_json(self) -> dict[str, Any]:
        return {"error": {"number": self.number, "message": self.text}}

    @property
    def headers(self) -> dict[str, str]:
        found = {"Cache-Control": "no-store"}
        if self.retry_after_s is not None:
            found["Retry-After"] = str(self.retry_after_s)
        return found


class TokenRefused(ServiceError):
    """No token, one that nobody made, or one that was withdrawn."""
