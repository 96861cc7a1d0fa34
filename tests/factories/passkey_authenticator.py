"""A software authenticator for passkeys: it responds as a browser forwards it, correctly or as a forger would."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from webauthn import base64url_to_bytes
from webauthn.helpers import bytes_to_base64url as text

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


class Authenticator:
    """One passkey for one relying party. Change its fields to make its responses wrong."""

    def __init__(self, rp_id: str = "localhost", origin: str = "http://localhost") -> None:
        self.rp_id, self.origin = rp_id, origin
        self.id = secrets.token_bytes(32)
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.count = 0
        self.flags = PRESENT | VERIFIED
        self.user = b""

    def make(self, options: dict[str, Any], **told: Any) -> dict[str, Any]:
        """Answer a request for a new passkey. ``told``: what the browser reports instead of the truth."""
        self.user = base64url_to_bytes(options["user"]["id"])
        point = self.key.public_key().public_numbers()
        public = {1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32, "big"), -3: point.y.to_bytes(32, "big")}
        attested = bytes(16) + len(self.id).to_bytes(2, "big") + self.id + cbor2.dumps(public)
        data = self._data(self.flags | ATTESTED) + attested
        whole = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client("webauthn.create", options, told)
        return self._answer({"clientDataJSON": text(client), "attestationObject": text(whole), "transports": ["usb"]})

    def sign(self, options: dict[str, Any], **told: Any) -> dict[str, Any]:
        """Answer a request to sign in."""
        self.count += 1
        client, data = self._client("webauthn.get", options, told), self._data(self.flags)
        signature = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        parts = {"clientDataJSON": client, "authenticatorData": data, "signature": signature, "userHandle": self.user}
        return self._answer({name: text(value) for name, value in parts.items()})

    def _client(self, kind: str, options: dict[str, Any], told: dict[str, Any]) -> bytes:
        said = {"type": kind, "challenge": options["challenge"], "origin": self.origin, "crossOrigin": False}
        return json.dumps({**said, **told}).encode()

    def _data(self, flags: int) -> bytes:
        return hashlib.sha256(self.rp_id.encode()).digest() + bytes([flags]) + self.count.to_bytes(4, "big")

    def _answer(self, response: dict[str, Any]) -> dict[str, Any]:
        return {"id": text(self.id), "rawId": text(self.id), "type": "public-key", "response": response}
