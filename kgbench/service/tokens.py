"""Bearer tokens: made, listed, withdrawn, checked. Only a hash is stored; the token itself is printed once."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass
from typing import Any, Final

from kgbench.core.errors import UsageError
from kgbench.service.database import Database
from kgbench.service.errors import TokenRefused
from kgbench.store.encoding import sha256

PREFIX: Final = "kgb_"
"""Prefix of every token, by which scanners for secrets find one."""
_BYTES: Final = 32
"""Random bytes of a token: nobody guesses it, so its plain SHA-256 may be kept."""
LOCAL: Final = "local"
"""Owner of requests without a token, where the service listens on loopback only."""
DEFAULT_RATE: Final = "600/min"
DEFAULT_QUEUE: Final = 1000
"""Most waiting submissions of a token unless it says otherwise."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_RATE: Final = re.compile(r"(?P<count>[1-9][0-9]{0,8})/(?P<unit>s|min|h|day)")
_UNITS: Final = {"s": 1, "min": 60, "h": 3600, "day": 86400}


@dataclass(frozen=True)
class Rate:
    """So many submissions within so many seconds, at most."""

    count: int
    per_s: int

    def __str__(self) -> str:
        unit = next((name for name, seconds in _UNITS.items() if seconds == self.per_s), f"{self.per_s} s")
        return f"{self.count}/{unit}"

    @classmethod
    def read(cls, text: str) -> Rate:
        """Of ``60/min``. Raises UsageError."""
        match = _RATE.fullmatch(text.strip())
        if match is None:
            words = f"--rate {text}: expected COUNT/UNIT with a unit of {', '.join(_UNITS)}, for example --rate 60/min"
            raise UsageError("KGB707", words)
        return cls(int(match["count"]), _UNITS[match["unit"]])


@dataclass(frozen=True)
class Caller:
    """Who asks, and how much it may ask."""

    name: str
    rate: Rate | None = None
    """Submissions; None is unlimited."""
    queue: int = DEFAULT_QUEUE
    """Submissions without a verdict that may be there at once."""
    sha256: str = ""
    """SHA-256 of the token; empty where no token was sent."""


@dataclass(frozen=True)
class Token:
    """What is known of a token once it was printed."""

    name: str
    rate: Rate
    queue: int
    made: float
    revoked: float | None
    """When, in seconds since 1970; None while it is good."""


class Tokens:
    """Those of one service."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def new(self, name: str, rate: Rate, queue: int = DEFAULT_QUEUE) -> str:
        """Makes a token for a name and gives it; a name whose token was withdrawn may have a new one.

        Raises UsageError for a name that cannot be one, or that has a token.
        """
        if not _NAME.fullmatch(name) or name == LOCAL:
            words = f"{name!r} cannot be a token's name: take letters, digits and . _ @ -, at most 64, and not {LOCAL}"
            raise UsageError("KGB706", words)
        text = PREFIX + secrets.token_urlsafe(_BYTES)
        with self._database.transaction() as cursor:
            cursor.execute("DELETE FROM tokens WHERE name = ? AND revoked IS NOT NULL", (name,))
            if cursor.execute("SELECT 1 FROM tokens WHERE name = ?", (name,)).fetchone():
                words = f"{name} has a token; `kgbench token revoke {name}` withdraws it, then a new one can be made"
                raise UsageError("KGB706", words)
            row = (name, sha256(text), rate.count, rate.per_s, queue, time.time())
            cursor.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, NULL)", row)
        return text

    def revoke(self, name: str) -> None:
        """Withdraw a token at once. Raises UsageError where there is no such token."""
        with self._database.transaction() as cursor:
            cursor.execute("UPDATE tokens SET revoked = ? WHERE name = ? AND revoked IS NULL", (time.time(), name))
            if not cursor.rowcount:
                good = ", ".join(each.name for each in self.all() if each.revoked is None) or "none"
                raise UsageError("KGB706", f"there is no token {name!r} to withdraw; there are: {good}")

    def all(self) -> list[Token]:
        return [_token(row) for row in self._database.read("SELECT * FROM tokens ORDER BY name")]

    def any_good(self) -> bool:
        return bool(self._database.read("SELECT 1 FROM tokens WHERE revoked IS NULL LIMIT 1"))

    def caller(self, text: str) -> Caller:
        """The owner of a token. Raises TokenRefused."""
        return self._by_hash(sha256(text))

    def check(self, caller: Caller) -> None:
        """Raises TokenRefused where the caller's token was withdrawn since."""
        if caller.sha256:
            self._by_hash(caller.sha256)

    def _by_hash(self, digest: str) -> Caller:
        rows = self._database.read("SELECT * FROM tokens WHERE sha256 = ?", digest)
        if not rows:
            raise TokenRefused("KGB710", "the service does not know this token; look at KGBENCH_TOKEN", 401)
        found = _token(rows[0])
        if found.revoked is not None:
            words = (
                f"the token of {found.name} was withdrawn. What was finished is kept: ask its operator for "
                f"`kgbench token new {found.name}`, set KGBENCH_TOKEN, and go on with kgbench run --resume"
            )
            raise TokenRefused("KGB710", words, 401)
        return Caller(found.name, found.rate, found.queue, digest)


def _token(row: Any) -> Token:
    return Token(row["name"], Rate(row["rate"], row["per_s"]), row["queue"], row["made"], row["revoked"])
