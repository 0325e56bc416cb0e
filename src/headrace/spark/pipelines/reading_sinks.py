"""Read the sinks of a pipeline file: one under `sink`, or several in a list under `sinks`."""

import os

from headrace.model.nearest_names import guess
from headrace.spark.pipelines.definition import (
    PARTITIONS_MAX,
    SINKS_MAX,
    ConsoleSink,
    DatabaseSinkDefinition,
    DeliveryGuarantee,
    DeltaSinkDefinition,
    IcebergSinkDefinition,
    ParquetSinkDefinition,
    Sink,
    TopicSink,
    WriteMode,
)
from headrace.spark.pipelines.nodes import YamlSection
from headrace.spark.pipelines.reading_options import check_address, check_catalog, table_options, topic_options
from headrace.spark.pipelines.reading_values import folder_path, table_name, topic_name
from headrace.spark.pipelines.sql_text import check_expression

KINDS = ("topic", "topic_from", "parquet", "delta", "iceberg", "database", "console")
CONSOLE_ROWS_MAX = 10_000
JSON_VALUE = "json"


def read_sinks(root: YamlSection) -> tuple[Sink, ...]:
    single, several = root.section("sink"), root.sections("sinks", most=SINKS_MAX)
    if single is not None and several:
        root.wrong("sinks", "sink is given as well: move it here")
    if single is None and not several and "sink" not in root and "sinks" not in root:
        root.missing("sink", "sink: {topic: orders-clean}")
    if root.kind("sinks") == "list" and not several:
        root.wrong("sinks", "there is none: a pipeline without a sink would lose its rows")
    found = [_sink(section) for section in ([single] if single is not None else several)]
    sinks = tuple(sink for sink in found if sink is not None)
    _refuse_shared_folders(root, sinks)
    topics = [sink for sink in sinks if isinstance(sink, TopicSink)]
    _refuse_two_shapes(root, topics)
    for sink in topics[1:]:
        if (sink.delivery, sink.options) != (topics[0].delivery, topics[0].options):
            text = "all topics are written together: give them the same delivery and options"
            root.findings.add_at(root.place_at(f"{sink.name}.delivery", sink.name), text)
    return sinks


def _refuse_two_shapes(root: YamlSection, sinks: list[TopicSink]) -> None:
    """Refuse different settings for a topic that two sinks write to, because it is created once."""
    owners: dict[str, TopicSink] = {}
    for sink in sinks:
        for topic in sink.named_topics:
            first = owners.setdefault(topic, sink)
            if (first.partitions, first.configs) != (sink.partitions, sink.configs):
                key = "partitions" if first.partitions != sink.partitions else "configs"
                place = root.place_at(f"{sink.name}.{key}", sink.name)
                root.findings.add_at(
                    place, f'{sink.name}.{key}: topic "{topic}" has another value in {first.name}: use the same'
                )


def _refuse_shared_folders(root: YamlSection, sinks: tuple[Sink, ...]) -> None:
    """Refuse two sinks for one table: it would have every row twice."""
    owners: dict[str, str] = {}
    for sink in sinks:
        if isinstance(sink, DatabaseSinkDefinition | IcebergSinkDefinition):
            key, address = (
                ("table", sink.database) if isinstance(sink, DatabaseSinkDefinition) else ("iceberg", sink.catalog)
            )
            first = owners.setdefault(f"{address} {sink.table}", sink.name)
            if first != sink.name:
                root.wrong(f"{sink.name}.{key}", f'"{sink.table}" is already the table of {first}')
        if isinstance(sink, ParquetSinkDefinition | DeltaSinkDefinition):
            first = owners.setdefault(os.path.normpath(sink.path), sink.name)
            if first != sink.name:
                kind = "parquet" if isinstance(sink, ParquetSinkDefinition) else "delta"
                root.wrong(f"{sink.name}.{kind}", f'"{sink.path}" is already the folder of {first}')


def _sink(section: YamlSection) -> Sink | None:
    kinds = [kind for kind in KINDS if kind in section]
    if len(kinds) != 1:
        if kinds:
            section.wrong(kinds[1], f"a sink has one kind, and {kinds[0]} is given as well: use two sinks")
        else:
            section.findings.add_at(section.place, f"{section.path} has no kind: {guess('', KINDS)}")
        return None
    readers = {"parquet": _parquet, "delta": _delta, "iceberg": _iceberg, "database": _database, "console": _console}
    sink = readers.get(kinds[0], _topic)(section)
    section.finish()
    return sink


def _topic(section: YamlSection) -> Sink | None:
    topic = section.parsed("topic", topic_name)
    topics = section.texts("topics")
    for text in topics:
        try:
            topic_name(text)
        except ValueError as error:
            section.wrong("topics", str(error))
    if topic is not None and topics:
        section.wrong("topics", "this lists the topics that topic_from may name: leave it out for a single topic")
    value = _expression(section, "value")
    return TopicSink(
        name=section.path,
        topic=topic,
        topic_from=_expression(section, "topic_from"),
        topics=topics,
        key=_expression(section, "key"),
        value=None if value == JSON_VALUE else value,
        headers=_expression(section, "headers"),
        partition=_expression(section, "partition"),
        delivery=section.choice("delivery", DeliveryGuarantee, DeliveryGuarantee.EXACTLY_ONCE),
        partitions=section.integer("partitions", least=1, most=PARTITIONS_MAX),
        configs=section.pairs("configs"),
        options=topic_options(section),
    )


def _parquet(section: YamlSection) -> Sink | None:
    path = section.parsed("parquet", folder_path)
    partition_by, options = section.texts("partition_by"), table_options(section)
    if path is None:
        return None
    return ParquetSinkDefinition(name=section.path, path=path, partition_by=partition_by, options=options)


def _delta(section: YamlSection) -> Sink | None:
    path = section.parsed("delta", folder_path)
    mode, keys, order_by = _mode(section)
    partition_by, options = section.texts("partition_by"), table_options(section)
    if mode is WriteMode.UPSERT and options:
        section.wrong("options", "an upsert has no options: leave them out")
    if path is None:
        return None
    return DeltaSinkDefinition(
        name=section.path,
        path=path,
        mode=mode,
        keys=keys,
        order_by=order_by,
        partition_by=partition_by,
        options=options,
    )


def _mode(section: YamlSection) -> tuple[WriteMode, tuple[str, ...], str | None]:
    """Return the mode, the keys of an upsert, and the column that orders rows with one key."""
    mode, keys = section.choice("mode", WriteMode, WriteMode.APPEND), section.texts("keys")
    order_by = section.text("order_by")
    if mode is WriteMode.UPSERT and not keys:
        section.missing("keys", "keys: [id]")
    if mode is WriteMode.UPSERT and order_by is None:
        section.missing("order_by", "order_by: changed_at")
    if mode is WriteMode.APPEND:
        for key in ("keys", "order_by"):
            if key in section:
                section.wrong(key, "this is for `mode: upsert` only")
    return mode, keys, order_by


def _database(section: YamlSection) -> Sink | None:
    database, table = section.text("database"), section.parsed("table", table_name)
    mode, keys, order_by = _mode(section)
    options = section.pairs("options", secrets=True)
    if "table" not in section:
        section.missing("table", "table: orders")
    if database is None or table is None:
        return None
    try:
        check_address(database, table, options)
    except ValueError as error:
        section.wrong("database", str(error))
    return DatabaseSinkDefinition(
        name=section.path, database=database, table=table, mode=mode, keys=keys, order_by=order_by, options=options
    )


def _iceberg(section: YamlSection) -> Sink | None:
    table = section.parsed("iceberg", table_name)
    catalog, warehouse = section.text("catalog"), section.text("warehouse")
    partition_by, options = section.texts("partition_by"), section.pairs("options", secrets=True)
    for key, example in (("catalog", "catalog: sqlite:///catalog.db"), ("warehouse", "warehouse: warehouse")):
        if key not in section:
            section.missing(key, example)
    if table is not None and "." not in table:
        section.wrong("iceberg", f"a table is in a namespace: write shop.{table}, for example")
    if table is None or catalog is None or warehouse is None:
        return None
    try:
        check_catalog(catalog, options)
    except ValueError as error:
        section.wrong("catalog", str(error))
    return IcebergSinkDefinition(
        name=section.path,
        table=table,
        catalog=catalog,
        warehouse=warehouse,
        partition_by=partition_by,
        options=options,
    )


def _console(section: YamlSection) -> Sink:
    if section.boolean("console") is False:
        section.wrong("console", "write true, or leave the sink out")
    rows = section.integer("rows", least=1, most=CONSOLE_ROWS_MAX)
    return ConsoleSink(name=section.path) if rows is None else ConsoleSink(name=section.path, rows=rows)


def _expression(section: YamlSection, key: str) -> str | None:
    text = section.text(key)
    if text is None:
        return None
    for mistake in check_expression(text):
        section.findings.add_at(section.place_of(key).below(mistake.line), f"{section.path_of(key)}: {mistake.text}")
    return text
