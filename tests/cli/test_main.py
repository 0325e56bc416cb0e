"""The root of the command line: help, version, completion, wrong use, and how failures look."""

import errno
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from headrace.cli.failures import Failure, failure_of, unwritable
from headrace.cli.main import COMMANDS, cli
from headrace.cli.options import confirm
from headrace.client.errors import ClientError
from headrace.model.configs import ConfigError
from headrace.operations.errors import OperationError

pytestmark = pytest.mark.process

HEAVY = ("rich", "prometheus_client", "yaml", "headrace.broker", "headrace.client", "headrace.log")


def test_help_lists_every_command() -> None:
    result = CliRunner().invoke(cli, ["--help"])
    assert result.exit_code == 0
    for name in COMMANDS:
        assert f"  {name} " in result.output


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_exists_and_says_what_the_list_says(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert (command.help or "").startswith(COMMANDS[name].help)
    shown = CliRunner().invoke(cli, [name, "--help"])
    assert shown.exit_code == 0
    assert "..." not in shown.output.rpartition("Commands:")[2] or not isinstance(command, click.Group)


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from headrace.cli.main import cli\n"
        "cli.main(['--help'], standalone_mode=False)\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "assert not loaded, loaded\n"
    )
    result = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_version() -> None:
    result = CliRunner().invoke(cli, ["--version"])
    assert result.exit_code == 0
    assert result.output.startswith("headrace 0.")


def test_a_misspelt_command_is_met_with_the_nearest() -> None:
    result = CliRunner().invoke(cli, ["topcs"])
    assert result.exit_code == 2
    assert 'unknown command "topcs": did you mean "topics"?' in result.output


def test_commands_and_options_further_in_are_met_in_the_same_way() -> None:
    assert 'unknown command "lst": did you mean "list"?' in CliRunner().invoke(cli, ["topics", "lst"]).output
    wrong = CliRunner().invoke(cli, ["topics", "list", "--jsn"])
    assert wrong.exit_code == 2
    assert 'unknown option "--jsn": did you mean "--json"?' in wrong.output
    assert 'unknown option "--zzz"' in CliRunner().invoke(cli, ["topics", "list", "--zzz"]).output
    early = CliRunner().invoke(cli, ["--bootstrap", "here:1", "topics", "list"])
    assert early.exit_code == 2
    assert 'unknown option "--bootstrap": options follow the command, as in headrace topics list' in early.output
    assert 'did you mean "--version"?' in CliRunner().invoke(cli, ["--verion"]).output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_call_back(shell: str) -> None:
    result = CliRunner().invoke(cli, ["completion", shell])
    assert result.exit_code == 0
    assert "_HEADRACE_COMPLETE" in result.output


def test_completion_of_commands() -> None:
    result = subprocess.run(
        [sys.executable, "-c", "from headrace.cli.main import main; main()"],
        env={"_HEADRACE_COMPLETE": "bash_complete", "COMP_WORDS": "headrace to", "COMP_CWORD": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert result.stdout.split() == ["plain,topics", "plain,top", "plain,tokens"]


def test_failures_have_a_message_and_a_code() -> None:
    misuse = failure_of(ConfigError("wrong name"))
    assert misuse is not None
    assert (misuse.exit_code, misuse.message) == (2, "wrong name")
    refused = failure_of(OperationError("no such partition"))
    assert isinstance(refused, Failure)
    assert refused.exit_code == 1
    assert refused.message == "no such partition"
    failed = failure_of(ClientError("no broker"))
    assert failed is not None
    assert failed.exit_code == 1
    large = failure_of(OSError(errno.EFBIG, "File too large", "report.json"))
    assert large is not None
    assert large.message.startswith(
        "report.json cannot be written: File too large: raise the file size limit (ulimit -f)"
    )
    denied = unwritable("run.log", PermissionError(errno.EACCES, "Permission denied"))
    assert denied.message.endswith("Permission denied: check its owner and permissions, or choose another place")
    assert failure_of(ZeroDivisionError()) is None


def test_an_interrupt_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command("interrupted")
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(cli), "get_command", lambda self, ctx, name: interrupted)
    result = CliRunner().invoke(cli, ["topics"])
    assert result.exit_code == 130
    assert result.output == ""


def test_an_interrupt_at_a_question_is_quiet_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_prompt: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("click.termui.visible_prompt_func", interrupted)
    with pytest.raises(SystemExit) as ended:
        confirm("delete everything?")
    assert ended.value.code == 130


def test_a_failure_is_one_line_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command("failing")
    def failing() -> None:
        raise Failure("the moon is full: wait a day")

    monkeypatch.setattr(type(cli), "get_command", lambda self, ctx, name: failing)
    result = CliRunner().invoke(cli, ["topics"])
    assert result.exit_code == 1
    assert result.stderr == "headrace: the moon is full: wait a day\n"
    assert result.stdout == ""


def test_a_full_disk_is_one_line() -> None:
    program = "from headrace.cli.main import main; main()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program, "configs", "list", "retention"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    said = "headrace: the output cannot be written: No space left on device: free some space, or write it elsewhere\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_a_closed_pipe_is_quiet() -> None:
    program = "from headrace.cli.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "configs", "list", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(timeout=30)
