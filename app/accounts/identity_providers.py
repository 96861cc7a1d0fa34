"""Identity providers: any OpenID Connect issuer, found by its discovery document, and GitHub.

Requests go only to the configured issuers and to the endpoints that they name.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Protocol
from urllib.parse import quote, urlencode, urlsplit

import httpx
import structlog
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from fastapi import Depends
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, RSAKey

from app.accounts.validation import normalize_email, normalize_name
from app.errors import LockstepError, NotFound, ServiceUnavailable
from app.i18n import N_
from app.settings import IdentityProviderSettings
from app.web.dependencies import AppKey

_log = structlog.get_logger("accounts")
_TIMEOUT_S = 10.0
_MAX_RESPONSE_BYTES = 500_000
_CLOCK_SKEW_S = 60
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
"""Asymmetric algorithms only: with a shared secret or ``none``, anyone could sign a token."""
_KEY_TYPES = ("RSA", "EC")
_MIN_RSA_BITS = 2048
"""112 bits of security, the least that NIST SP 800-131A allows."""
_SUBJECT = re.compile(r"[!-~]{1,255}")
_BASIC = "client_secret_basic"
"""How the client authenticates to the token endpoint, unless the issuer supports only the other way."""
_GITHUB_URL = "https://github.com"


class ProviderNotFound(NotFound):
    message = N_("You cannot sign in with that site here. Sign in another way.")


class ProviderUnavailable(ServiceUnavailable):
    message = N_("The other site is not responding. Try again later, or sign in another way.")


class InvalidProviderResponse(LockstepError):
    status = 422
    message = N_("The other site's response could not be verified, so you are not signed in. Try again.")


class ProviderAccessDenied(LockstepError):
    status = 422
    message = N_("The other site did not sign you in. Try again, or sign in another way.")


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """An authorization request: its redirect URI, and the secrets that the response is checked against."""

    redirect_uri: str
    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True)
class UserInfo:
    """A person at an identity provider. ``email`` is None unless the provider has confirmed it."""

    issuer: str
    subject: str
    email: str | None
    name: str | None


class IdentityProvider(Protocol):
    """A site whose accounts can sign in here."""

    settings: IdentityProviderSettings

    async def authorization_url(self, authorization: AuthorizationRequest) -> str:
        """The URL that the browser opens to sign in. Raises ProviderUnavailable."""
        ...

    async def fetch_user_info(self, authorization: AuthorizationRequest, code: str) -> UserInfo:
        """The person who came back with this code. Raises ProviderUnavailable or InvalidProviderResponse."""
        ...


def make_identity_providers(settings: Mapping[str, IdentityProviderSettings]) -> dict[str, IdentityProvider]:
    """The configured providers by name. GitHub supports only OAuth 2."""
    return {name: GitHubProvider(each) if name == "github" else OidcProvider(each) for name, each in settings.items()}


class OidcProvider:
    """An OpenID Connect issuer. Its discovery document and keys are fetched for each request, because keys change."""

    def __init__(self, settings: IdentityProviderSettings) -> None:
        self.settings = settings

    async def authorization_url(self, authorization: AuthorizationRequest) -> str:
        async with _http_client() as client:
            told = await self._discover(client)
        questions = {"scope": "openid email profile", "nonce": authorization.nonce}
        return _authorization_url(told["authorization_endpoint"], self.settings, authorization, questions)

    async def fetch_user_info(self, authorization: AuthorizationRequest, code: str) -> UserInfo:
        async with _http_client() as client:
            told = await self._discover(client)
            by_form = _BASIC not in told.get("token_endpoint_auth_methods_supported", [_BASIC])
            tokens = await _exchange_code(
                client, told["token_endpoint"], self.settings, authorization, code, by_form=by_form
            )
            keys = await _fetch_json(client, "GET", told["jwks_uri"])
            claims = self._verify_id_token(tokens, keys, authorization)
            if "email" not in claims and "userinfo_endpoint" in told:
                bearer = {"authorization": f"Bearer {tokens.get('access_token')}"}
                more = await _fetch_json(client, "GET", told["userinfo_endpoint"], headers=bearer)
                if more.get("sub") == claims["sub"]:
                    claims = {**more, **claims}
        confirmed = claims.get("email_verified") in (True, "true")
        return _user_info(self.settings, claims["sub"], claims.get("email") if confirmed else None, claims.get("name"))

    async def _discover(self, client: httpx.AsyncClient) -> dict[str, Any]:
        issuer = self.settings.issuer
        told = await _fetch_json(client, "GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if told.get("issuer") != issuer:
            raise _invalid_response("the discovery document belongs to another issuer")
        methods = told.get("token_endpoint_auth_methods_supported", [])
        endpoints = [told.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
        endpoints += [told["userinfo_endpoint"]] if "userinfo_endpoint" in told else []
        if not isinstance(methods, list) or not all(self._is_allowed_url(each) for each in endpoints):
            raise _invalid_response("the discovery document names an endpoint that is not allowed")
        return told

    def _is_allowed_url(self, url: object) -> bool:
        """Whether the URL is as well protected as the issuer's."""
        if not isinstance(url, str) or not url.isprintable():
            return False
        try:
            parts = urlsplit(url)
        except ValueError:
            return False
        return bool(parts.hostname) and parts.scheme in ("https", urlsplit(self.settings.issuer).scheme)

    def _verify_id_token(
        self, tokens: Mapping[str, Any], keys: Mapping[str, Any], authorization: AuthorizationRequest
    ) -> dict[str, Any]:
        """The claims of the ID token, if it is from this issuer, current, and made for us and this request."""
        try:
            usable = [key for key in keys["keys"] if key.get("kty") in _KEY_TYPES and key.get("use", "sig") == "sig"]
            imported = KeySet.import_key_set({"keys": usable}).keys
            strong = [key for key in imported if not isinstance(key, RSAKey) or key.raw_value.key_size >= _MIN_RSA_BITS]
            token = jwt.decode(tokens["id_token"], KeySet(strong), algorithms=_ALGORITHMS)
            options = {
                "iss": {"essential": True, "value": self.settings.issuer},
                "aud": {"essential": True, "value": self.settings.client_id},
            }
            params = {"nonce": authorization.nonce, "client_id": self.settings.client_id}
            params["access_token"] = tokens.get("access_token", "")
            CodeIDToken(token.claims, token.header, options, params).validate(leeway=_CLOCK_SKEW_S)
        except (JoseError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as e:
            raise _invalid_response(f"{type(e).__name__}: {e}") from e
        return dict(token.claims)


class GitHubProvider:
    """GitHub or GitHub Enterprise Server: OAuth 2, with an API of its own for user information."""

    def __init__(self, settings: IdentityProviderSettings) -> None:
        self.settings = settings
        base = settings.issuer.rstrip("/")
        self._login = f"{base}/login/oauth"
        self._api = "https://api.github.com" if base == _GITHUB_URL else f"{base}/api/v3"

    async def authorization_url(self, authorization: AuthorizationRequest) -> str:
        return _authorization_url(
            f"{self._login}/authorize", self.settings, authorization, {"scope": "read:user user:email"}
        )

    async def fetch_user_info(self, authorization: AuthorizationRequest, code: str) -> UserInfo:
        async with _http_client() as client:
            tokens = await _exchange_code(
                client, f"{self._login}/access_token", self.settings, authorization, code, by_form=True
            )
            if not isinstance(tokens.get("access_token"), str):
                raise _invalid_response(f"no token: {str(tokens.get('error'))[:80]}")
            bearer = {"authorization": f"Bearer {tokens['access_token']}"}
            user = await _fetch_json(client, "GET", f"{self._api}/user", headers=bearer)
            emails = (await _fetch_json(client, "GET", f"{self._api}/user/emails", headers=bearer))["list"]
        if not isinstance(user.get("id"), int):
            raise _invalid_response("the user has no numeric ID")
        confirmed = [each for each in emails if isinstance(each, dict) and each.get("verified") is True]
        confirmed.sort(key=lambda each: each.get("primary") is not True)
        email = confirmed[0].get("email") if confirmed else None
        return _user_info(self.settings, str(user["id"]), email, user.get("name") or user.get("login"))


def _authorization_url(
    endpoint: str, settings: IdentityProviderSettings, authorization: AuthorizationRequest, questions: Mapping[str, str]
) -> str:
    asked = {
        "response_type": "code",
        "client_id": settings.client_id,
        "redirect_uri": authorization.redirect_uri,
        "state": authorization.state,
        "code_challenge": create_s256_code_challenge(authorization.verifier),
        "code_challenge_method": "S256",
        **questions,
    }
    return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(asked)}"


async def _exchange_code(
    client: httpx.AsyncClient,
    endpoint: str,
    settings: IdentityProviderSettings,
    authorization: AuthorizationRequest,
    code: str,
    *,
    by_form: bool,
) -> dict[str, Any]:
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": authorization.redirect_uri}
    form["code_verifier"] = authorization.verifier
    secret = settings.client_secret.get_secret_value()
    if by_form:
        return await _fetch_json(
            client, "POST", endpoint, data={**form, "client_id": settings.client_id, "client_secret": secret}
        )
    both = httpx.BasicAuth(quote(settings.client_id, safe=""), quote(secret, safe=""))
    return await _fetch_json(client, "POST", endpoint, data=form, auth=both)


async def _fetch_json(client: httpx.AsyncClient, method: str, url: str, **more: Any) -> dict[str, Any]:
    """Fetch the JSON object at a URL; a list is returned as ``{"list": …}``."""
    try:
        async with client.stream(method, url, **more) as answer:
            body = bytearray()
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > _MAX_RESPONSE_BYTES:
                    raise _invalid_response("the response is too long")
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as e:
        _log.warning("identity provider unavailable", url=url, error=f"{type(e).__name__}: {e}")
        raise ProviderUnavailable from e
    if answer.status_code >= 500 or answer.status_code == 429:
        _log.warning("identity provider unavailable", url=url, status=answer.status_code)
        raise ProviderUnavailable
    try:
        told = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise _invalid_response(f"{url} returned no JSON") from e
    if answer.status_code != 200:
        error = told.get("error") if isinstance(told, dict) else ""
        raise _invalid_response(f"{url} returned status {answer.status_code}: {str(error)[:80]}")
    if isinstance(told, list):
        return {"list": told}
    if not isinstance(told, dict):
        raise _invalid_response(f"{url} returned no JSON object")
    return told


def _http_client() -> httpx.AsyncClient:
    accept = {"accept": "application/json"}
    return httpx.AsyncClient(verify=_ssl_context(), timeout=_TIMEOUT_S, follow_redirects=False, headers=accept)


@cache
def _ssl_context() -> ssl.SSLContext:
    """Cached: loading the certificate authorities blocks the event loop for 20 ms."""
    return httpx.create_ssl_context()


def _user_info(settings: IdentityProviderSettings, subject: object, email: object, name: object) -> UserInfo:
    if not isinstance(subject, str) or not _SUBJECT.fullmatch(subject):
        raise _invalid_response("the subject is not a valid ID")
    address = normalize_email(email) if isinstance(email, str) else None
    shown = name if isinstance(name, str) and "@" not in name else ""  # an address in the name must not become public
    return UserInfo(settings.issuer, subject, address, normalize_name(shown))


def _invalid_response(why: str) -> InvalidProviderResponse:
    _log.warning("invalid response from an identity provider", why=why)
    return InvalidProviderResponse()


IDENTITY_PROVIDERS = AppKey[Mapping[str, IdentityProvider]]("identity_providers")
"""The configured identity providers, by the name in their URLs."""
IdentityProvidersDep = Annotated[Mapping[str, IdentityProvider], Depends(IDENTITY_PROVIDERS.from_request)]
