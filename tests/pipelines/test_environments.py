"""Variables, environments, includes and secrets of a pipeline file: what they become, and what is never shown."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.client import Admin
from headrace.spark.pipelines.claims import new_run, run_claimed
from headrace.spark.pipelines.definition import Pipeline, TopicSink
from headrace.spark.pipelines.definition_reader import read_pipeline
from headrace.spark.pipelines.layers import Choices
from headrace.spark.pipelines.problems import DefinitionError
from headrace.spark.pipelines.records import RunState
from headrace.spark.pipelines.secret_texts import HIDDEN, Secrets
from headrace.spark.pipelines.status_topic import opened
from headrace.testing import EmbeddedBroker

BASE = """\
name: shop
include: ../shared/schemas.yml
variables:
  region: eu
  topic: orders-${region}
  bucket:
source: {topic: "${topic}", format: json, schema: order}
transform:
  sql: |
    SELECT id, '$${x}' AS text,
           '${region}' AS region
    FROM input
sinks:
  - topic: clean-${region}
    options: {kafka.client.id: "${env:SHOP_CLIENT}"}
  - topic: copy-${region}
    options: {kafka.client.id: "${env:SHOP_CLIENT}"}
restart: {attempts: 1, backoff: 1 second}
"""
SHARED = """\
schemas:
  order: id STRING NOT NULL, amount DOUBLE
  customer: {id: STRING}
restart: {window: 2 hours, attempts: 9}
"""
PROD = """\
variables: {region: us, bucket: landed}
bootstrap: broker:9092
restart: {attempts: 7}
sinks: [{topic: "out-${region}"}, {parquet: "${bucket}"}]
"""
SECRET = "s3cr3t/of the 'shop'"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "shop"
    for path, text in (("shop/pipeline.yml", BASE), ("shop/pipeline.prod.yml", PROD), ("shared/schemas.yml", SHARED)):
        tmp_path.joinpath(path).parent.mkdir(exist_ok=True)
        tmp_path.joinpath(path).write_text(text)
    monkeypatch.setenv("SHOP_CLIENT", SECRET)
    return found


def read(folder: Path, environment: str | None = None, **variables: str) -> Pipeline:
    return read_pipeline(folder, Choices(environment, variables))


def changed(folder: Path, *replaced: str, file: str = "pipeline.yml") -> list[str]:
    """The mistakes of a changed file, with their places."""
    path = folder / file
    text = path.read_text()
    for old, new in zip(replaced[::2], replaced[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    with pytest.raises(DefinitionError) as caught:
        read(folder, "prod" if "prod" in file else None)
    return [f"{each.file.name}:{each.line}: {each.text}" for each in caught.value.problems]


def test_defaults_includes_and_secrets_are_filled_in(folder: Path) -> None:
    pipeline = read(folder)
    (source,) = pipeline.sources
    assert source.topics == ("orders-eu",)
    assert [field.name for field in source.fields] == ["id", "amount"]
    assert pipeline.transform.sql == "SELECT id, '${x}' AS text,\n       'eu' AS region\nFROM input\n"
    first = pipeline.sinks[0]
    assert isinstance(first, TopicSink)
    assert (first.topic, first.options) == ("clean-eu", {"kafka.client.id": SECRET})
    assert (pipeline.restart.attempts, pipeline.restart.backoff_ms, pipeline.restart.window_ms) == (1, 1_000, 7_200_000)
    assert pipeline.checkpoint == folder / "checkpoint"


def test_an_environment_replaces_values_and_lists_and_merges_mappings(folder: Path) -> None:
    pipeline = read(folder, "prod")
    assert (pipeline.bootstrap, pipeline.environment) == ("broker:9092", "prod")
    assert pipeline.sources[0].topics == ("orders-us",)
    assert [getattr(sink, "topic", None) or getattr(sink, "path", None) for sink in pipeline.sinks] == [
        "out-us",
        "landed",
    ]
    assert (pipeline.restart.attempts, pipeline.restart.backoff_ms) == (7, 1_000)
    assert pipeline.checkpoint == folder / "checkpoint-prod"
    place = pipeline.place_of("restart.attempts")
    assert (place.file.name, place.line) == ("pipeline.prod.yml", 3)


def test_the_command_line_overrides_variables(folder: Path) -> None:
    assert read(folder, "prod", region="jp").sources[0].topics == ("orders-jp",)
    with pytest.raises(DefinitionError, match=r'--var regoin: there is no such variable: did you mean "region"\?'):
        read(folder, regoin="jp")


def test_the_text_of_a_key_shows_variables_but_no_secrets(folder: Path) -> None:
    pipeline = read(folder)
    assert pipeline.texts["source.topic"] == "orders-eu"
    assert pipeline.texts["sinks[0].options.kafka.client.id"] == "${env:SHOP_CLIENT}"
    assert SECRET not in repr(pipeline)


def test_a_password_in_the_file_itself_is_not_noted(folder: Path) -> None:
    sink = "{database: postgresql://h/d, table: t, options: {password: in-the-file, sslmode: require}}"
    folder.joinpath("pipeline.yml").write_text(f"name: shop\nsource: {{topic: a}}\nsink: {sink}\n")
    texts = read(folder).texts
    assert (texts["sink.options.password"], texts["sink.options.sslmode"]) == (HIDDEN, "require")
    assert "in-the-file" not in str(texts)


def test_a_variable_without_a_value_is_reported_with_file_line_and_key(folder: Path) -> None:
    assert changed(folder, "clean-${region}", "clean-${bucket}") == [
        'pipeline.yml:14: sinks[0].topic: the variable "bucket" has no value: use --var bucket=VALUE, '
        "or the file of an environment"
    ]


MISTAKES = [
    (
        ("'${region}'", "'${regoin}'"),
        11,
        'transform.sql: the variable "regoin" is not declared: did you mean "region"?',
    ),
    (("'${region}'", "'${vault:x}'"), 11, '"${vault:x}" is not a reference: write ${NAME}'),
    (("'${region}'", "'${region'"), 11, '"${region\'" has no closing brace'),
    (("'${region}'", "'${env:SHOP_CLIENT}'"), 10, "transform.sql: a secret is not possible here"),
    (("clean-${region}", "${env:SHOP_CLIENT}"), 14, "sinks[0].topic: a secret is not possible here"),
    (("SHOP_CLIENT", "SHOP_CLEINT"), 15, "${env:SHOP_CLEINT}: the environment variable SHOP_CLEINT is not set"),
    (("${env:SHOP_CLIENT}", "${file:none.txt}"), 15, "none.txt cannot be read: No such file or directory"),
    (("region: eu", "region: ${topic}"), 7, 'the variable "region": the variable "topic" refers to itself'),
    (("region: eu", "2nd: eu"), 4, "variables.2nd: a variable has a name of letters"),
    (("region: eu", "region: [eu]"), 4, "variables.region: a single value is needed"),
    (("schema: order", "schema: oder"), 7, 'there is no schema "oder": did you mean "order"?'),
    (('"${topic}"', "${topic}"), 7, 'within braces, a reference needs quotes: "${name}"'),
    (("backoff: 1 second", "backoff: soon"), 18, 'restart.backoff: "soon" is not a duration'),
]


@pytest.mark.parametrize(("change", "line", "said"), MISTAKES)
def test_a_wrong_reference_is_reported_with_its_line(
    folder: Path, change: tuple[str, str], line: int, said: str
) -> None:
    found = changed(folder, *change)
    assert any(each.startswith(f"pipeline.yml:{line}: ") and said in each for each in found), found


def test_mistakes_of_other_layers_name_their_files(folder: Path) -> None:
    assert "pipeline.prod.yml:3: restart.attempts: a whole number is needed" in "\n".join(
        changed(folder, "attempts: 7", "attempts: many", file="pipeline.prod.yml")
    )
    assert changed(folder, "bootstrap:", "include:", file="pipeline.prod.yml") == [
        "pipeline.prod.yml:2: include: only pipeline.yml can include files"
    ]
    shared = changed(folder, "restart:", "name:", file="../shared/schemas.yml")
    assert any(each.startswith("schemas.yml:4: name: an included file cannot have it") for each in shared)
    assert [each.partition(": ")[0] for each in changed(folder, "schemas.yml", "schema.yml")] == [
        "schema.yml:0",
        "pipeline.yml:2",
    ]


def test_an_unknown_environment_is_reported_with_those_that_exist(folder: Path) -> None:
    with pytest.raises(DefinitionError, match=r'"prd" has no file: did you mean "prod"\?'):
        read(folder, "prd")
    with pytest.raises(DefinitionError, match="is not the name of an environment"):
        read(folder, "../prod")


def test_a_secret_can_be_a_file_and_the_value_of_a_variable(folder: Path) -> None:
    folder.joinpath("token").write_text("of a file\n")
    text = folder.joinpath("pipeline.yml").read_text().replace("${env:SHOP_CLIENT}", "${bucket}")
    folder.joinpath("pipeline.yml").write_text(text.replace("bucket:", 'bucket: "a-${file:token}"'))
    pipeline = read(folder)
    sink = pipeline.sinks[0]
    assert isinstance(sink, TopicSink)
    assert sink.options == {"kafka.client.id": "a-of a file"}
    assert pipeline.texts["sinks[0].options.kafka.client.id"] == "a-${file:token}"
    assert pipeline.secrets.hide("it was a-of a file.") == f"it was a-{HIDDEN}."


def test_secrets_are_hidden_in_the_forms_in_which_messages_quote_them() -> None:
    secrets = Secrets()
    secrets.add("a'b\"c/d")
    for text in ("a'b\"c/d", repr("a'b\"c/d"), json.dumps("a'b\"c/d"), "a%27b%22c%2Fd"):
        assert HIDDEN in secrets.hide(f"before {text} after"), text
    secrets.add("-----BEGIN KEY-----\nabcdefgh\n-----END KEY-----\n")
    assert secrets.hide("line abcdefgh") == f"line {HIDDEN}"


def test_a_secret_that_is_too_short_to_be_hidden_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_CLIENT", "abc")
    with pytest.raises(DefinitionError, match="SHOP_CLIENT must contain 4 to 65536 characters"):
        read(folder)


def command(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["pipeline", *arguments])


def test_commands_take_an_environment_and_variables(folder: Path) -> None:
    assert command("validate", str(folder), "--env", "prod", "--var", "region=jp").exit_code == 0
    wrong = command("checkpoint", "show", str(folder), "--env", "prod", "--var", "regon=jp")
    assert wrong.exit_code == 2
    assert 'did you mean "region"?' in wrong.output
    assert '"region" has no value: write --var region=VALUE' in command("validate", "--var", "region").output
    others = ("run", "plan", "deploy", "status", "lag", "stop", "replay-dlq", "test")
    for line in (*others, "rewind --to-earliest", "backfill --from earliest"):
        told = command(*line.split(), str(folder), "--env", "prd")
        assert 'the environment "prd" has no file: did you mean "prod"?' in told.output, line
    assert "the folder or the file of a pipeline is needed" in command("status", "--env", "prod").output
    assert '"shop" is the name of a pipeline: --env' in command("stop", "shop", "--env", "prod").output
    assert "checkpoint-prod: generation 0" in command("checkpoint", "show", str(folder), "--env", "prod").output
    project = folder / "spark-pipeline.yml"
    project.write_text("name: x\n")
    told = command("validate", str(project), "--env", "prod")
    assert (told.exit_code, "--env and --var are for a pipeline.yml" in told.output) == (2, True)


@pytest.mark.parametrize("arguments", [["validate", "--json"], ["validate"], ["checkpoint", "show"]])
def test_mistakes_show_no_secret(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    text = folder.joinpath("pipeline.yml").read_text()
    folder.joinpath("pipeline.yml").write_text(text.replace("kafka.client.id", "kafka.acks"))
    told = command(*arguments, str(folder))
    assert told.exit_code != 0
    assert SECRET not in told.output
    assert HIDDEN in told.output


def test_an_error_of_a_later_step_shows_no_secret(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.joinpath("checkpoint").mkdir()
    folder.joinpath("checkpoint", "headrace.json").write_text("{}")
    monkeypatch.setenv("SHOP_CLIENT", "incompatible")  # a word of the message, in place of a value that is in one
    told = command("checkpoint", "show", str(folder))
    assert told.exit_code == 1
    assert f"was written by an {HIDDEN} version" in told.output


@pytest.mark.process
def test_the_published_end_of_a_run_shows_no_secret(folder: Path) -> None:
    def fail(_claim: object) -> None:
        raise ValueError(f"cannot log in with {SECRET}")

    with EmbeddedBroker() as broker, Admin(broker.bootstrap_servers) as admin:
        settings, record = {"bootstrap.servers": broker.bootstrap_servers}, new_run("shop")
        with pytest.raises(ValueError, match="cannot log in"):
            run_claimed(admin, settings, record, fail, hide=read(folder).secrets.hide)  # type: ignore[arg-type]
        with opened(settings) as bulletin:
            holder = bulletin.catch_up().pipelines["shop"].holder
    assert holder is not None
    assert (holder.state, holder.message) == (RunState.FAILED, f"cannot log in with {HIDDEN}")
