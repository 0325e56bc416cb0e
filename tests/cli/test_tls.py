"""`headrace tls init`: the files that it makes, and what it leaves alone."""

import ssl
import stat

from click.testing import CliRunner

from headrace.cli.main import cli


def run(*arguments):
    return CliRunner().invoke(cli, ["tls", "init", *map(str, arguments)])


def test_the_files_are_private_and_work(tmp_path):
    folder = tmp_path / "certs"
    result = run(folder, "--host", "broker1.example.org", "--client", "alice", "--client", "bob")
    assert result.exit_code == 0, result.output
    assert "ssl.keystore.location" in result.output
    assert {path.name for path in folder.iterdir()} == {
        "ca.key", "ca.pem", "broker.pem", "alice.pem", "alice.key", "bob.pem", "bob.key",
    }  # fmt: skip
    readable = [path.name for path in folder.iterdir() if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert readable == ["ca.pem"]
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.load_cert_chain(folder / "broker.pem")
    context.load_cert_chain(folder / "bob.pem", folder / "bob.key")


def test_a_second_run_adds_clients_and_keeps_the_rest(tmp_path):
    assert run(tmp_path, "--client", "alice").exit_code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert run(tmp_path, "--client", "alice", "--client", "bob").exit_code == 0
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert after.keys() - before.keys() == {"bob.pem", "bob.key"}
    assert {name: after[name] for name in before} == before
    assert "--renew replaces them" in run(tmp_path, "--client", "bob").output


def test_renewal_replaces_certificates_and_keeps_the_authority(tmp_path):
    assert run(tmp_path).exit_code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert run(tmp_path, "--renew").exit_code == 0
    same = {path.name for path in tmp_path.iterdir() if path.read_bytes() == before[path.name]}
    assert same == {"ca.key", "ca.pem"}


def test_names_that_cannot_be_are_refused(tmp_path):
    for name in ("ca", "broker", "a/b", "x" * 65):
        result = run(tmp_path, "--client", name)
        assert result.exit_code == 1
        assert "client's name" in result.output
    (tmp_path / "ca.pem").write_text("not an authority")
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "choose another folder" in result.output
    result = run(tmp_path / "ca.pem" / "below")
    assert result.exit_code == 1
    assert "cannot be written" in result.output
