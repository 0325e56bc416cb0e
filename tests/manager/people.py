"""Users of a manager for tests: one of each role, with a token each."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from sqlalchemy import Connection

from headrace.manager.access.passwords import hashed
from headrace.manager.access.users import add_user, create_token
from headrace.manager.catalog.command_line import catalog_commands
from headrace.manager.catalog.engine import now_ms
from tests.manager.manager_process import REQUEST_S_MAX, ManagerProcess

PEOPLE = ("viewer", "editor", "admin")
"""Each user has the name of the role."""


def password_of(name: str) -> str:
    return f"the password of {name}"


class TeamOfUsers:
    manager: ManagerProcess

    def __init__(self, catalog: str) -> None:
        self.catalog = catalog
        self.tokens: dict[str, str] = {}
        for name in PEOPLE:
            self.add(name, name)

    def add(self, name: str, role: str) -> None:
        """Add a user with a token."""

        password = hashed(password_of(name))

        def added(connection: Connection) -> str:
            add_user(connection, name, role, password, now=now_ms(connection))
            return create_token(connection, name, "", None, now=now_ms(connection))[1]

        with catalog_commands(self.catalog) as commands:
            self.tokens[name] = commands.change("users add", name, added)

    @contextmanager
    def log_in(self, name: str) -> Iterator[httpx.Client]:
        """Lend a browser with a session of the user and the token that changes need."""
        with httpx.Client(base_url=self.manager.url, timeout=REQUEST_S_MAX) as browser:
            entered = browser.post("/v1/session", json={"user": name, "password": password_of(name)})
            assert entered.status_code == 204, entered.text
            browser.headers["x-csrf-token"] = browser.get("/v1/session").json()["csrf_token"]
            yield browser

    def bearer(self, name: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self.tokens[name]}"}
