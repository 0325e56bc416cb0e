"""A small identity provider for tests: it issues tokens, and serves its public keys over HTTP."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

ISSUER, AUDIENCE = "https://login.example.org", "the-cluster"


class TokenIssuer:
    def __init__(self):
        self.keys: dict[str, RSAKey | ECKey] = {"first": RSAKey.generate_key(2048)}

    def add_key(self, key_id):
        self.keys[key_id] = ECKey.generate_key("P-256")

    def document(self) -> bytes:
        public = [{**key.as_dict(private=False), "kid": key_id} for key_id, key in self.keys.items()]
        return json.dumps({"keys": public}).encode()

    def token(self, user="alice", *, key_id="first", header=None, key=None, **claims):
        """A token, valid for an hour if no claim says otherwise; a claim that is None is left out."""
        now = time.time()
        made = {"iss": ISSUER, "aud": AUDIENCE, "sub": user, "iat": int(now), "exp": int(now) + 3_600, **claims}
        key = key or self.keys[key_id]
        algorithm = "RS256" if isinstance(key, RSAKey) else "ES256"
        full = {"alg": algorithm, "kid": key_id, **(header or {})}
        return jwt.encode(
            {name: value for name, value in full.items() if value is not None},
            {name: value for name, value in made.items() if value is not None},
            key,
            algorithms=[full["alg"]],
        )


class KeyServer:
    """Serves the keys of an issuer; `status` and `wait` change how."""

    def __init__(self, issuer):
        server = self
        self.requests = 0
        self.status = 200
        self.released = threading.Event()
        self.released.set()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.requests += 1
                server.released.wait(60)
                content = issuer.document()
                self.send_response(server.status)
                if server.status == 302:
                    self.send_header("location", f"{server.url}/elsewhere")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format, *args):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/keys"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self):
        self.released.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
