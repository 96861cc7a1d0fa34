"""An OpenID Connect issuer on loopback, and a GitHub: they sign people in, correctly or as a forger would."""

from __future__ import annotations

import base64
import hashlib
import secrets
import socket
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.factories.http_server import HttpServer

CLIENT, SECRET = "lockstep", "a secret: 50% & more"


@cache
def _signing_key() -> RSAKey:
    """One key for all issuers, because creating one takes over a tenth of a second."""
    return RSAKey.generate_key(2048, {"kid": "first", "use": "sig"})


class Issuer:
    """Use it in ``async with``. Change its fields to change its responses."""

    def __init__(self) -> None:
        self.key = _signing_key()
        self.person: dict[str, Any] = {"sub": "ada", "name": "Ada Byron", "email": "ada@example.org"}
        self.person["email_verified"] = True
        self.claims: dict[str, Any] = {}
        """What an ID token claims instead of the truth."""
        self.sign: Callable[[dict[str, Any]], str] = self._sign
        self.discovery: dict[str, Any] = {}
        self.emails: list[dict[str, Any]] = []
        self.down = False
        self.asked: list[str] = []
        """The paths of all requests."""
        self._codes: dict[str, dict[str, str]] = {}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._server = HttpServer(uvicorn.Config(self._app(), log_config=None, lifespan="off", ws="none"))

    async def __aenter__(self) -> Self:
        await self._server.start([self._listener])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()

    def settings(self, **more: str) -> dict[str, str]:
        """The application's settings for this issuer."""
        return {"issuer": self.url, "client_id": CLIENT, "client_secret": SECRET, **more}

    def consent(self, address: str) -> str:
        """The URL to which the browser is redirected after somebody signed in at ``address``."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state'], 'iss': self.url})}"

    def _app(self) -> Starlette:
        routes = [
            Route("/.well-known/openid-configuration", self._discover),
            Route("/authorize", self._authorize),
            Route("/keys", self._keys),
            Route("/token", self._token, methods=["POST"]),
            Route("/login/oauth/authorize", self._authorize),
            Route("/login/oauth/access_token", self._token, methods=["POST"]),
            Route("/api/v3/user", self._user),
            Route("/api/v3/user/emails", self._user),
        ]
        return Starlette(routes=routes)

    async def _discover(self, request: Request) -> Response:
        self.asked.append(request.url.path)
        if self.down:
            return JSONResponse({}, 503)
        paths = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
        whole = {"issuer": self.url, **{name: self.url + path for name, path in paths.items()}}
        return JSONResponse({**whole, **self.discovery})

    async def _authorize(self, request: Request) -> Response:
        return RedirectResponse(self.consent(str(request.url)), 303)

    async def _keys(self, request: Request) -> Response:
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})

    async def _token(self, request: Request) -> Response:
        self.asked.append(request.url.path)
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        asked = self._codes.pop(form["code"], None)
        proof = hashlib.sha256(form["code_verifier"].encode()).digest()
        fits = asked and asked["code_challenge"] == base64.urlsafe_b64encode(proof).rstrip(b"=").decode()
        if not (asked and fits and asked["redirect_uri"] == form["redirect_uri"] and self._is_client(request, form)):
            return JSONResponse({"error": "invalid_grant"}, 400)
        moment = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "iat": moment, "exp": moment + 60, "nonce": asked.get("nonce")}
        token = self.sign({**claims, **self.person, **self.claims})
        return JSONResponse({"access_token": "opens", "token_type": "Bearer", "id_token": token})

    async def _user(self, request: Request) -> Response:
        assert request.headers["authorization"] == "Bearer opens"
        if request.url.path.endswith("emails"):
            return JSONResponse(self.emails)
        return JSONResponse({"id": 4711, "login": "ada", "name": None, "email": "unchecked@example.org"})

    def _is_client(self, request: Request, form: dict[str, str]) -> bool:
        kind, _, told = request.headers.get("authorization", "").partition(" ")
        if kind == "Basic":
            return base64.b64decode(told).decode() == "lockstep:a%20secret%3A%2050%25%20%26%20more"
        return form.get("client_id") == CLIENT and form.get("client_secret") == SECRET

    def _sign(self, claims: dict[str, Any]) -> str:
        return jwt.encode({"alg": "RS256", "kid": "first"}, claims, self.key)
