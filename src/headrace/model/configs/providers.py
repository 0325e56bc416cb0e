"""Config providers: references such as ${file:/etc/secrets:key} in a node's own config file.

They have the syntax of Kafka's FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider. Only the config
file of a node may have them, and they are replaced once, when the node starts: a request that could name a file or a
variable of the broker would read it (CVE-2024-31141). What replaces a reference is not searched for references again.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from headrace.model.configs.definition import ConfigError
from headrace.model.configs.sources import Setting, parse_properties

PROVIDERS_MAX = 16
REFERENCES_MAX = 1_000
"""References in one config file."""
PROVIDED_LENGTH_MAX = 1 << 20
"""Characters of a file that a reference names."""

FILE, DIRECTORY, ENV = "file", "directory", "env"

_PROVIDERS = "config.providers"
_PACKAGE = "org.apache.kafka.common.config.provider."
_REFERENCE = re.compile(r"\$\{(?P<provider>[A-Za-z0-9_-]{1,64}):(?:(?P<path>[^}]*?):)?(?P<key>[^}:]*)\}")
_OPTION = re.compile(r"config\.providers\.(?P<provider>[^.]+)\.(?P<option>class|param\.(?P<parameter>.+))")


class Kind(NamedTuple):
    label: str
    parameter: str
    """The one parameter of a provider."""


KINDS = {
    "FileConfigProvider": Kind(FILE, "allowed.paths"),
    "DirectoryConfigProvider": Kind(DIRECTORY, "allowed.paths"),
    "EnvVarConfigProvider": Kind(ENV, "allowlist.pattern"),
}
_DEFAULTS = {FILE: "FileConfigProvider", DIRECTORY: "DirectoryConfigProvider", ENV: "EnvVarConfigProvider"}
"""The names that can be used without `config.providers`."""


class SecretSource(Protocol):
    """The files and variables that references may name."""

    def read(self, path: str) -> str:
        """Return the text of a file with a secret; raise OSError or ValueError if it cannot be used."""

    def resolved(self, path: str) -> str:
        """Return the absolute path without symbolic links."""

    def variable(self, name: str) -> str | None: ...


class _Provider(NamedTuple):
    kind: Kind
    limit: str | None
    """Folders and files that may be read, separated by commas, or the pattern of variables; None for all."""


def expanded(settings: Iterable[Setting], source: SecretSource) -> list[Setting]:
    """Return the settings of a config file with references replaced, and without those that define providers."""
    given = list(settings)
    providers = _declared([each for each in given if _defines(each.name)])
    references = 0
    found: list[Setting] = []
    for setting in given:
        if _defines(setting.name):
            continue

        def replacement(match: re.Match[str], setting: Setting = setting) -> str:
            provider = providers.get(match["provider"])
            return match[0] if provider is None else _provided(match, provider, setting, source)

        text, count = _REFERENCE.subn(replacement, setting.text)
        references += count
        if references > REFERENCES_MAX:
            raise ConfigError(f"{setting.place}: more than {REFERENCES_MAX} references to config providers")
        found.append(setting if text == setting.text else setting._replace(text=text, written=setting.text))
    return found


def check_unreferenced(settings: Iterable[Setting]) -> None:
    """Raise ConfigError for a reference outside a config file, where it would be taken as it is."""
    for setting in settings:
        match = _REFERENCE.search(setting.text)
        if match is not None and match["provider"] in _DEFAULTS:
            raise ConfigError(
                f'{setting.place}: config "{setting.name}" refers to the config provider "{match["provider"]}", which '
                "works only in a config file: write it there, and name the file by --config"
            )


def _defines(name: str) -> bool:
    return name == _PROVIDERS or _OPTION.fullmatch(name) is not None


def _declared(settings: Iterable[Setting]) -> Mapping[str, _Provider]:
    """Return the providers by name: those that the file declares, or all kinds by their usual names."""
    names: list[str] | None = None
    classes: dict[str, str] = {}
    parameters: dict[str, tuple[str, Setting]] = {}
    place = ""
    for setting in settings:
        place = setting.place
        if setting.name == _PROVIDERS:
            names = [name.strip() for name in setting.text.split(",") if name.strip()]
            continue
        match = _OPTION.fullmatch(setting.name)
        assert match is not None
        if match["parameter"] is None:
            classes[match["provider"]] = setting.text.strip().removeprefix(_PACKAGE)
        else:
            parameters[match["provider"]] = (match["parameter"], setting)
    if names is None:
        names, classes = list(_DEFAULTS), {**_DEFAULTS, **classes}
    if len(names) > PROVIDERS_MAX:
        raise ConfigError(f"{place}: {len(names)} config providers, but at most {PROVIDERS_MAX} are allowed")
    return {name: _provider(name, classes.get(name), parameters.get(name), place) for name in names}


def _provider(name: str, class_name: str | None, parameter: tuple[str, Setting] | None, place: str) -> _Provider:
    kind = KINDS.get(class_name or "")
    if kind is None:
        known = ", ".join(_PACKAGE + each for each in KINDS)
        raise ConfigError(f'{place}: config "{_PROVIDERS}.{name}.class" must be one of {known}')
    if parameter is None:
        return _Provider(kind, None)
    option, setting = parameter
    if option != kind.parameter:
        raise ConfigError(
            f'{setting.place}: unknown config "{setting.name}": the parameter of this provider is {kind.parameter}'
        )
    if kind.label == ENV:
        try:
            re.compile(setting.text)
        except re.error as wrong:
            raise ConfigError(f'{setting.place}: config "{setting.name}" is not a pattern: {wrong}') from None
    return _Provider(kind, setting.text)


def _provided(match: re.Match[str], provider: _Provider, setting: Setting, source: SecretSource) -> str:
    """Return what replaces a reference. Its errors name the reference, never what it stands for."""
    try:
        if provider.kind.label == ENV:
            return _variable(match, provider, source)
        return _from_file(match, provider, source)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(f'{setting.place}: config "{setting.name}" refers to {match[0]}: {reason}') from None


def _variable(match: re.Match[str], provider: _Provider, source: SecretSource) -> str:
    name = match["key"]
    if match["path"] or not name:
        raise ValueError(f"write it as ${{{match['provider']}:VARIABLE}}")
    if provider.limit is not None and not re.fullmatch(provider.limit, name):
        raise ValueError("the variable does not match the provider's allowlist.pattern")
    value = source.variable(name)
    if value is None:
        raise ValueError("the environment has no such variable; set it, or remove the reference")
    return value


def _from_file(match: re.Match[str], provider: _Provider, source: SecretSource) -> str:
    path, key = match["path"], match["key"]
    is_directory = provider.kind.label == DIRECTORY
    if not path or not key:
        raise ValueError(f"write it as ${{{match['provider']}:/path:key}}")
    if is_directory and ("/" in key or key in (".", "..")):
        raise ValueError("the key is the name of a file in that directory")
    file = f"{path}/{key}" if is_directory else path
    if not _is_allowed(file, provider.limit, source):
        raise ValueError("the file is not below the provider's allowed.paths")
    text = source.read(file)
    if is_directory:
        return text.removesuffix("\n").removesuffix("\r")
    values = {each.name: each.text for each in parse_properties(text, file)}
    if key not in values:
        raise ValueError("the file has no such key")
    return values[key]


def _is_allowed(file: str, limit: str | None, source: SecretSource) -> bool:
    if limit is None:
        return True
    resolved = source.resolved(file)
    allowed = [source.resolved(each.strip()) for each in limit.split(",") if each.strip()]
    return any(resolved == each or resolved.startswith(f"{each.rstrip('/')}/") for each in allowed)
