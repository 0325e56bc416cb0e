"""A small identity provider for tests: it approves every login, and can be made to lie."""

import json
import threading
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

CLIENT_ID, CLIENT_SECRET = "headrace", "the client's secret"


class IdentityServer:
    """`claims` replace those of the next tokens, `token_header` and `signing_key` change how they are signed."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"})
        self.claims: dict[str, Any] = {}
        self.token_header = {"alg": "RS256", "kid": "first"}
        self.signing_key: Any = self.key
        self.description: dict[str, Any] = {}
        self.token_status = 200
        self.forge: Callable[[dict[str, Any]], str] | None = None
        self.codes: dict[str, dict[str, str]] = {}
        self.refusals: list[str] = []
        handler = type("Handler", (IdentityHandler,), {"provider": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.issuer = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def behave(self) -> None:
        """Be honest again."""
        self.claims, self.description, self.token_status, self.forge = {}, {}, 200, None
        self.token_header, self.signing_key = {"alg": "RS256", "kid": str(self.key.kid)}, self.key

    def described(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            **self.description,
        }

    def authorized(self, query: dict[str, str]) -> str:
        """Return the address to which the browser is sent back."""
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT_ID
        assert query["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        asked = self.codes.pop(form["code"], None)
        verifier = urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        secret = b64decode(authorization.removeprefix("Basic ")).decode()
        if asked is None or verifier != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
            self.refusals.append(form["code"])
            return None
        assert secret == "headrace:the%20client%27s%20secret"
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "sub": "subject-1",
            "nonce": asked["nonce"],
            "iat": now,
            "exp": now + 300,
            "groups": ["operators", "others"],
            **self.claims,
        }
        if self.forge is not None:
            return {"id_token": self.forge(claims)}
        header = dict(self.token_header)
        return {"id_token": jwt.encode(header, claims, self.signing_key, algorithms=[header["alg"]]), "token_type": "x"}

    def keys(self) -> dict[str, Any]:
        return dict(KeySet([self.key]).as_dict(private=False))


def encoded(value: object) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


class IdentityHandler(BaseHTTPRequestHandler):
    provider: ClassVar[IdentityServer]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/authorize":
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            self.send_response(302)
            self.send_header("location", self.provider.authorized(query))
            self.send_header("content-length", "0")
            self.end_headers()
        elif parts.path == "/keys":
            self._answer(200, self.provider.keys())
        else:
            self._answer(200, self.provider.described())

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        fields = {name: values[0] for name, values in form.items()}
        made = self.provider.token(fields, self.headers.get("authorization", ""))
        if made is None:
            self._answer(400, {"error": "invalid_grant"})
        else:
            self._answer(self.provider.token_status, made)

    def _answer(self, status: int, value: object) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        if status == 302:
            self.send_header("location", f"{self.provider.issuer}/keys")
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass
