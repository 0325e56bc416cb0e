"""Authorities and certificates of tests, and the configs that use them."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from headrace.operations.development_ca import init_authority

SECURE = "SSL://127.0.0.1:0"


class Authority:
    """A folder that `headrace tls init` fills."""

    def __init__(self, folder: Path, *clients: str) -> None:
        self.folder = folder
        init_authority(folder, hosts=(), clients=clients or ("alice",), days=1)

    @property
    def ca(self) -> str:
        return str(self.folder / "ca.pem")

    @property
    def broker(self) -> str:
        return str(self.folder / "broker.pem")

    def certificate(self, name: str) -> str:
        return str(self.folder / f"{name}.pem")

    def key(self, name: str) -> str:
        return str(self.folder / f"{name}.key")

    def configs(self, client_auth: str = "none", **more: str) -> Mapping[str, str]:
        """The broker's configs; an underscore in a name stands for a dot."""
        return {
            "listeners": SECURE,
            "ssl.keystore.location": self.broker,
            "ssl.truststore.location": self.ca,
            "ssl.client.auth": client_auth,
            **{name.replace("_", "."): text for name, text in more.items()},
        }

    def renew(self) -> None:
        """Replace the authority and everything that it has signed."""
        names = [path.stem for path in self.folder.glob("*.key") if path.stem != "ca"]
        shutil.rmtree(self.folder)
        init_authority(self.folder, hosts=(), clients=names, days=1)
