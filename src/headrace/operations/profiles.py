"""Profiles: named clusters with their addresses and client properties, in a TOML file that only its owner can read."""

import os
import re
import stat
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from headrace.client.config import ClientConfig
from headrace.client.errors import InvalidArgument
from headrace.model.nearest_names import guess
from headrace.model.secrets import HIDDEN, is_secret_name
from headrace.model.toml_text import toml_lines, toml_string
from headrace.operations.errors import OperationError

PROFILE_FILE_BYTES_MAX = 1 << 20
PROFILES_MAX = 1_000
FILE_MODE = 0o600
FOLDER_MODE = 0o700
OTHERS = stat.S_IRWXG | stat.S_IRWXO

BOOTSTRAP = "bootstrap.servers"
_HEADER = "# Written by `headrace profile`, which keeps no comments.\n"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_CURRENT, _PROFILES = "current", "profiles"


class ProfileError(OperationError):
    """A profile, or the file of profiles, cannot be used; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """The content of the file."""

    current: str | None = None
    """The profile that commands use when neither an address nor a profile is given."""
    properties: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """By the name of the profile: client properties by Kafka's names."""

    def find(self, name: str) -> Mapping[str, str]:
        """Return the properties of a profile; raise ProfileError if there is none with this name."""
        if name not in self.properties:
            known = f": {guess(name, list(self.properties))}" if self.properties else ""
            raise ProfileError(f'unknown profile "{name}"{known} (headrace profile list shows all)')
        return self.properties[name]

    def with_profile(self, name: str, properties: Mapping[str, str]) -> "Profiles":
        check_profile(name, properties)
        if len(self.properties) >= PROFILES_MAX and name not in self.properties:
            raise ProfileError(f"there are {PROFILES_MAX} profiles already: remove one with headrace profile remove")
        return replace(self, properties={**self.properties, name: dict(properties)})

    def without(self, name: str) -> "Profiles":
        self.find(name)
        kept = {each: properties for each, properties in self.properties.items() if each != name}
        return Profiles(current=None if self.current == name else self.current, properties=kept)

    def using(self, name: str | None) -> "Profiles":
        if name is not None:
            self.find(name)
        return replace(self, current=name)


def check_profile(name: str, properties: Mapping[str, str]) -> None:
    """Raise ProfileError for an illegal name, an unknown property or a missing address."""
    if not _NAME.fullmatch(name):
        raise ProfileError(f'a profile cannot be named "{name}": use letters, digits, dots, hyphens and underscores')
    if not properties.get(BOOTSTRAP):
        raise ProfileError(f'profile "{name}" has no address: give --bootstrap HOST:PORT')
    try:
        ClientConfig.from_names(properties)
    except InvalidArgument as wrong:
        raise ProfileError(f'profile "{name}": {wrong}') from None


def shown(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties without their secrets; the name of a file that has one is shown."""
    return {
        name: HIDDEN if is_secret_name(name) and not value.startswith("@") else value
        for name, value in properties.items()
    }


def default_file(environment: Mapping[str, str]) -> Path:
    folder = environment.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "headrace" / "profiles.toml"


def read_profiles(file: Path) -> Profiles:
    """Return the profiles of a file; none if it does not exist."""
    try:
        with file.open("rb") as opened:
            content = opened.read(PROFILE_FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return Profiles()
    except OSError as error:
        raise ProfileError(f"cannot read the profiles in {file}: {error.strerror}") from None
    if len(content) > PROFILE_FILE_BYTES_MAX:
        raise ProfileError(f"{file} is larger than {PROFILE_FILE_BYTES_MAX} bytes: it is not a file of profiles")
    try:
        document = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise ProfileError(
            f"{file} is not TOML: {wrong}; repair it, or move it away and add the profiles again"
        ) from None
    current, tables = document.get(_CURRENT), document.get(_PROFILES, {})
    is_valid = isinstance(tables, dict) and all(
        isinstance(table, dict) and all(isinstance(value, str) for value in table.values()) for table in tables.values()
    )
    if not is_valid or not isinstance(current, str | None) or set(document) - {_CURRENT, _PROFILES}:
        raise ProfileError(
            f'{file} must have tables such as [profiles.prod] with texts such as "{BOOTSTRAP}" = "host:9092", and '
            f'{_CURRENT} = "prod" above them'
        )
    return Profiles(current=current, properties=tables)


def others_may_read(file: Path) -> bool:
    """Tell whether the group of a file, or everyone, may read or change it."""
    try:
        return bool(file.stat().st_mode & OTHERS)
    except OSError:
        return False


def write_profiles(file: Path, profiles: Profiles) -> None:
    """Replace the file as a whole, so that a crash leaves the old one or the new one."""
    try:
        file.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)  # mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as opened:
                os.fchmod(opened.fileno(), FILE_MODE)
                opened.write(_toml(profiles))
                opened.flush()
                os.fsync(opened.fileno())
            os.replace(temporary, file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ProfileError(
            f"cannot write the profiles to {file}: {error.strerror}; HEADRACE_PROFILE_FILE names another file"
        ) from None


def _toml(profiles: Profiles) -> str:
    parts = [_HEADER]
    if profiles.current is not None:
        parts.append(toml_lines({_CURRENT: profiles.current}))
    for name, properties in sorted(profiles.properties.items()):
        parts.append(f"\n[{_PROFILES}.{toml_string(name)}]\n{toml_lines(properties)}")
    return "".join(parts)
