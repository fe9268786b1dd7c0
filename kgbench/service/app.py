"""The application: routes, the guard in front of them, and errors as JSON with their number."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import traceback
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from kgbench import __version__
from kgbench.core.errors import KgbenchError
from kgbench.service import api, pages
from kgbench.service.access import Access
from kgbench.service.answers import refused
from kgbench.service.errors import ServiceError
from kgbench.service.guard import Guard
from kgbench.service.settings import Listening
from kgbench.service.state import Service

_ABOUT = (
    "Judge GPU kernels: whether they are correct, and how fast beside the library. Every request needs a token, as "
    "`Authorization: Bearer kgb_…`, unless the service listens on loopback only. Errors are "
    '`{"error": {"number": "KGB…", "message": "…"}}`; docs/errors.md lists the numbers.'
)


def make_app(service: Service, listening: Listening) -> FastAPI:
    """The ASGI application of a server."""

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        service.changes.attach(asyncio.get_running_loop())
        service.judging.start()
        yield
        service.changes.close()
        await asyncio.to_thread(service.judging.close)

    # The pages of FastAPI load scripts from elsewhere, so they are left out.
    app = FastAPI(
        title="kgbench", version=__version__, description=_ABOUT, lifespan=life, docs_url=None, redoc_url=None
    )
    app.state.service = service
    app.include_router(api.router)
    app.include_router(pages.router)
    _add_errors(app)
    _describe(app)
    app.add_middleware(
        Guard,
        access=Access(service.tokens, without_token=listening.is_loopback),
        max_body_bytes=listening.max_body_bytes,
        body_s=listening.body_s,
        on_answer=service.metrics.answered,
    )
    return app


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(KgbenchError)
    async def of_ours(request: Request, error: KgbenchError) -> JSONResponse:
        return refused(error)

    @app.exception_handler(RequestValidationError)
    async def of_a_field(request: Request, error: RequestValidationError) -> JSONResponse:
        said = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5]]
        return refused(ServiceError("KGB714", "; ".join(said)[:1000] + "; /openapi.json has the form", 422))

    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> JSONResponse:
        words = f"{request.method} {request.url.path[:200]}: {error.detail}; /openapi.json lists what there is"
        return refused(ServiceError("KGB716", words, error.status_code))

    @app.exception_handler(Exception)
    async def of_a_bug(request: Request, error: Exception) -> JSONResponse:
        traceback.print_exception(error, file=sys.stderr)
        return refused(ServiceError("KGB722", "the service failed on this request; its log says why", 500))


def _describe(app: FastAPI) -> None:
    """The OpenAPI document says how a token is sent."""
    plain = app.openapi

    def with_tokens() -> dict[str, Any]:
        document = plain()
        document.setdefault("components", {})["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
        return document

    app.openapi = with_tokens  # type: ignore[method-assign]
