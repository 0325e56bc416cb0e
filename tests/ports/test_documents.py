"""Documents of other servers: files, HTTP and HTTPS, with limits and without redirects."""

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headrace.ports.network import DocumentSource
from headrace.ports.real.documents import fetch, http_exchange
from tests.security.certificates import Authority

pytestmark = pytest.mark.process

CONTENT = b'{"keys": []}'
WAIT_MS = 60_000


class QuietServer(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Say nothing: clients that do not trust the certificate leave in the middle of the handshake."""


class Server:
    """Answers every request with `content`, in as many pieces as `pieces` says, each after `wait`."""

    def __init__(self, certificate=None, key=None):
        server = self
        self.content, self.status = CONTENT, 200
        self.requests: list[tuple[str, str]] = []
        self.released = threading.Event()
        self.released.set()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.requests.append((self.command, self.path))
                self.send_response(server.status)
                if server.status == 302:
                    self.send_header("location", f"{server.url}/elsewhere")
                self.end_headers()
                try:
                    self.wfile.write(server.content[:1])
                    self.wfile.flush()
                    server.released.wait(60)
                    self.wfile.write(server.content[1:])
                except OSError:
                    pass  # the client did not wait

            def log_message(self, format, *args):
                pass

        self._http = QuietServer(("127.0.0.1", 0), Handler)
        scheme = "http"
        if certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate, key)
            # The handshake is part of the handler, which closes the connection if it fails.
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
            scheme = "https"
        self.port = self._http.server_port
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self):
        self.released.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture
def server():
    found = Server()
    yield found
    found.stop()


def source(url, *, authorities=None, bytes_max=1_000, ms_max=WAIT_MS):
    return DocumentSource(url, authorities, bytes_max, ms_max)


def test_a_document_of_another_server(server):
    assert fetch(source(f"{server.url}/keys?version=2")) == CONTENT
    assert fetch(source(server.url)) == CONTENT
    assert server.requests == [("GET", "/keys?version=2"), ("GET", "/")]


def test_redirects_are_not_followed(server):
    server.status = 302
    with pytest.raises(OSError, match="status 302"):
        fetch(source(f"{server.url}/keys"))
    assert len(server.requests) == 1


def test_a_document_that_is_too_long_is_not_read_to_its_end(server):
    server.content = b"x" * 50_000_000
    with pytest.raises(OSError, match="more than 1000 bytes"):
        fetch(source(server.url))
    server.content = b"x" * 1_000
    assert fetch(source(server.url)) == server.content


def test_a_server_that_does_not_end_its_response_is_left(server):
    server.released.clear()
    with pytest.raises(OSError, match="does not answer"):
        fetch(source(server.url, ms_max=300))


def test_a_server_that_is_not_there():
    gone = Server()
    gone.stop()
    with pytest.raises(OSError, match="does not answer"):
        fetch(source(gone.url))


def test_a_certificate_needs_an_authority_that_is_trusted_and_the_right_host(tmp_path_factory):
    ours, others = (Authority(tmp_path_factory.mktemp("ca")) for _ in range(2))
    server = Server(ours.broker)
    try:
        assert fetch(source(f"{server.url.replace('127.0.0.1', 'localhost')}/keys", authorities=ours.ca)) == CONTENT
        for authorities in (others.ca, None):
            with pytest.raises(OSError, match="certificate"):
                fetch(source(f"https://localhost:{server.port}/keys", authorities=authorities))
    finally:
        server.stop()
    stranger = Server(ours.certificate("alice"), ours.key("alice"))
    try:
        with pytest.raises(OSError, match=r"certificate|[Hh]ostname"):
            fetch(source(f"https://localhost:{stranger.port}/keys", authorities=ours.ca))
    finally:
        stranger.stop()


def test_something_that_is_not_http(server):
    with pytest.raises(OSError, match=r"does not answer|as HTTP requires"):
        http_exchange(f"https://127.0.0.1:{server.port}/", ssl.create_default_context(), bytes_max=9, seconds_max=60)


def test_a_file(tmp_path):
    path = tmp_path / "with a blank.json"
    path.write_bytes(CONTENT)
    assert fetch(source(path.as_uri())) == CONTENT
    with pytest.raises(OSError, match="more than 5 bytes"):
        fetch(source(path.as_uri(), bytes_max=5))
    with pytest.raises(OSError):
        fetch(source((tmp_path / "missing").as_uri()))
