"""Config providers: references are replaced in a node's own file alone, once, and errors do not show secrets."""

import pytest
from click.testing import CliRunner

from headrace.cli import broker
from headrace.cli.failures import Misuse
from headrace.cli.main import cli
from headrace.model.configs import BROKER_CONFIGS, ConfigError
from headrace.model.configs.definition import ConfigType
from headrace.model.configs.providers import REFERENCES_MAX, expanded
from headrace.model.configs.sources import Setting, parse_properties
from headrace.operations.secret_files import SecretFiles, others_may

SECRET = "correct-horse"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "secrets.properties").write_text(f"key={SECRET}\nnested=${{env:RACK}}\n")
    (tmp_path / "password").write_text(f"{SECRET}\n")
    for file in tmp_path.iterdir():
        file.chmod(0o600)
    return tmp_path


def texts(folder, text, **variables):
    found = expanded(parse_properties(text.replace("FOLDER", str(folder)), "server.properties"), SecretFiles(variables))
    return {each.name: each.text for each in found}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a=${file:FOLDER/secrets.properties:key}", SECRET),
        ("a=${directory:FOLDER:password}", SECRET),
        ("a=${env:RACK}", "r1"),
        ("a=x-${env:RACK}-${env:RACK}", "x-r1-r1"),
        ("a=${file:FOLDER/secrets.properties:nested}", "${env:RACK}"),  # never searched again
        ("a=${env}", "${env}"),
        ("a=${vault:path:key}", "${vault:path:key}"),  # not a provider, as in Kafka
        ("a=RULE:^CN=(.*?)$/$1/", "RULE:^CN=(.*?)$/$1/"),
        ("config.providers=v\nconfig.providers.v.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
         "a=${v:RACK}${env:RACK}", "r1${env:RACK}"),
        ("config.providers.env.param.allowlist.pattern=R.*\na=${env:RACK}", "r1"),
        ("config.providers.file.param.allowed.paths=FOLDER\na=${file:FOLDER/secrets.properties:key}", SECRET),
    ],
)  # fmt: skip
def test_references_are_replaced(folder, written, meant):
    assert texts(folder, written, RACK="r1") == {"a": meant}


@pytest.mark.parametrize(
    ("written", "advice"),
    [
        ("a=${file:FOLDER/secrets.properties:other}", "no such key"),
        ("a=${file:FOLDER/none:key}", "No such file"),
        ("a=${file:FOLDER:key}", "Is a directory"),
        ("a=${file:key}", "${file:/path:key}"),
        ("a=${directory:FOLDER:../password}", "name of a file in that directory"),
        ("a=${env:NONE}", "set it, or remove the reference"),
        ("a=${env:x:y}", "${env:VARIABLE}"),
        ("config.providers.file.param.allowed.paths=/nowhere,FOLDER/pass\na=${directory:FOLDER:password}\n"
         "b=${file:FOLDER/secrets.properties:key}", "allowed.paths"),
        ("config.providers.file.param.allowed.paths=FOLDER/x\n"
         "a=${file:FOLDER/x/../secrets.properties:key}", "allowed.paths"),
        ("config.providers.env.param.allowlist.pattern=H.*\na=${env:RACK}", "allowlist.pattern"),
        ("config.providers=v\na=1", "config.providers.v.class"),
        ("config.providers=v\nconfig.providers.v.class=com.example.Vault", "EnvVarConfigProvider"),
        ("config.providers.env.param.x=1", "allowlist.pattern"),
        ("a=" + "${env:RACK}" * (REFERENCES_MAX + 1), str(REFERENCES_MAX)),
    ],
)  # fmt: skip
def test_wrong_references_say_what_to_do(folder, written, advice):
    with pytest.raises(ConfigError) as wrong:
        texts(folder, written, RACK="r1")
    assert advice in str(wrong.value)
    assert SECRET not in str(wrong.value)
    assert "server.properties:" in str(wrong.value)


def test_a_link_out_of_the_allowed_folder_is_refused(folder):
    allowed = folder / "allowed"
    allowed.mkdir()
    (allowed / "link").symlink_to(folder / "secrets.properties")
    with pytest.raises(ConfigError, match=r"allowed\.paths"):
        texts(folder, "config.providers.file.param.allowed.paths=FOLDER/allowed\na=${file:FOLDER/allowed/link:key}")


def loaded(folder, text, *assignments):
    file = folder / "server.properties"
    file.write_text(text.replace("FOLDER", str(folder)))
    file.chmod(0o600)
    return broker.load_config(file, assignments, None, None)


def test_a_secret_of_a_wrong_config_is_not_shown(folder):
    """A password that stands for a number by mistake is in no message."""
    with pytest.raises(ConfigError) as wrong:
        loaded(folder, "num.partitions=${file:FOLDER/secrets.properties:key}")
    assert SECRET not in str(wrong.value)
    assert "server.properties:1" in str(wrong.value)


@pytest.mark.parametrize("place", ["argument", "environment"])
def test_references_outside_the_file_are_refused(folder, monkeypatch, place):
    monkeypatch.setattr("os.environ", {"HEADRACE_BROKER_RACK": "${env:HOME}"} if place == "environment" else {})
    with pytest.raises(ConfigError, match="only in a config file"):
        loaded(folder, "", *(["broker.rack=${env:HOME}"] if place == "argument" else []))


def test_files_that_others_can_read_are_warned_about_and_refused_if_strict(folder, capsys):
    text = "ssl.key.password=${directory:FOLDER:password}\n"
    assert loaded(folder, text).layers.static["ssl.key.password"] == SECRET
    assert capsys.readouterr().err == ""
    (folder / "password").chmod(0o644)
    loaded(folder, text)
    assert f"chmod 600 {folder / 'password'}" in capsys.readouterr().err
    with pytest.raises(Misuse, match="chmod 600"):
        loaded(folder, text + "headrace.secrets.strict=true\n")


def test_a_secret_in_the_file_itself_or_among_the_arguments(folder, capsys):
    file = folder / "server.properties"
    file.write_text(f"ssl.key.password={SECRET}\n")
    file.chmod(0o604)
    broker.load_config(file, (), None, None)
    assert f"chmod 600 {file}" in capsys.readouterr().err
    loaded(folder, "", f"ssl.key.password={SECRET}")
    told = capsys.readouterr().err
    assert "arguments of this process" in told
    assert SECRET not in told
    result = CliRunner().invoke(
        cli, ["broker", "--set", f"ssl.key.password={SECRET}", "--set", "headrace.secrets.strict=true"]
    )
    assert result.exit_code == 2
    assert SECRET not in result.output


@pytest.mark.parametrize(("mode", "owner", "exposed"), [
    (0o600, 1, False), (0o640, 1, True), (0o640, 0, False), (0o660, 0, True), (0o604, 0, True), (0o602, 1, True),
])  # fmt: skip
def test_who_can_read_a_file(mode, owner, exposed):
    assert others_may(mode, owner=owner) is exposed


def test_every_config_like_a_password_is_sensitive_and_its_values_are_in_no_repr():
    suspicious = [key for key in BROKER_CONFIGS if any(part in key.name for part in ("password", "secret.", "jaas"))]
    assert len(suspicious) >= 4
    hidden = {key.name for key in BROKER_CONFIGS if key.sensitive}
    assert {key.name for key in suspicious} <= hidden
    assert {key.name for key in BROKER_CONFIGS if key.type is ConfigType.PASSWORD} == hidden
    assert SECRET not in repr(Setting("ssl.key.password", SECRET, "--set"))
    config = loaded_with_password()
    assert config.layers.static["ssl.key.password"] == SECRET
    assert SECRET not in repr(config)
    described = {each.key.name: each for each in config.describe()}["ssl.key.password"]
    assert SECRET not in repr(described)


def loaded_with_password():
    return broker.BrokerConfig.from_texts({"ssl.key.password": SECRET})
