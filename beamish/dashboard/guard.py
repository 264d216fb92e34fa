"""Requests that are refused: other hosts and origins, other methods, a missing token; and the headers of every answer."""

from __future__ import annotations

import ipaddress
import re
import secrets
from urllib.parse import parse_qsl, urlencode

import attrs
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\s\[\]]+)(?::\d+)?")
COOKIE = "beamish_token"


def is_loopback(host: str) -> bool:
    """Whether a name or address is of this machine alone, without asking a name server."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@attrs.frozen
class Guard:
    """An application that answers only its own readers.

    A page of another site reaches a server on loopback through the reader's browser: by its address, or by a name of its own that
    resolves to it. Without a token, the host must be of this machine. With one, every request has it: in a cookie, which browsers
    keep apart by host, as a bearer, or once in the address.

    Attributes:
        app: the application.
        token: the token; None: none is needed.
    """

    app: ASGIApp
    token: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        if scope["type"] != "http":
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer: ASGIApp = self._refused(Request(scope)) or self.app
        await answer(scope, receive, sent)

    def _refused(self, request: Request) -> Response | None:
        headers = request.headers
        if request.method not in {"GET", "HEAD"}:
            return PlainTextResponse("This page is read only.", 405, {"allow": "GET, HEAD"})
        hosts = headers.getlist("host")
        found = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        if found is None or (self.token is None and not is_loopback(found[1])):
            return PlainTextResponse("This page answers to the host localhost only.", 403)
        if any(origin != f"{request.url.scheme}://{hosts[0]}" for origin in headers.getlist("origin")):
            return PlainTextResponse("This page does not answer other origins.", 403)
        opens = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"} and not opens:
            return PlainTextResponse("This page does not answer other sites.", 403)
        return None if self.token is None else self._without_token(request, self.token)

    def _without_token(self, request: Request, token: str) -> Response | None:
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if any(_same(given, token) for given in (request.cookies.get(COOKIE, ""), bearer)):
            return None
        query = parse_qsl(request.url.query, keep_blank_values=True)
        if not any(name == "token" and _same(value, token) for name, value in query):
            words = "A token is needed: open the address that `python -m beamish watch` has printed."
            return PlainTextResponse(words, 401, {"www-authenticate": "Bearer"})
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        there = RedirectResponse(request.url.path + (f"?{rest}" if rest else ""), 303)
        there.set_cookie(COOKIE, token, httponly=True, samesite="lax", secure=request.url.scheme == "https")
        return there


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())
