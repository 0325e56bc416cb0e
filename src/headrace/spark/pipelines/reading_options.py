"""Options that a pipeline file passes to the data source and the sinks, which also validate them."""

from collections.abc import Callable, Mapping

from headrace.spark.option_names import OptionError
from headrace.spark.pipelines.nodes import YamlSection
from headrace.spark.pipelines.reading_values import OPTIONS_OF_RUNNER

_ANYWHERE = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
"""Stands for the settings that the runner adds."""


def source_options(section: YamlSection) -> Mapping[str, str]:
    def parse(options: Mapping[str, str]) -> None:
        from headrace.spark.source_options import parse_source_options

        parse_source_options({**_ANYWHERE, "subscribe": "any", **options})

    return _checked(section, parse)


def topic_options(section: YamlSection) -> Mapping[str, str]:
    def parse(options: Mapping[str, str]) -> None:
        from headrace.spark.option_names import check_names
        from headrace.spark.sink.options import parse_sink_options

        check_names(options)
        parse_sink_options({**_ANYWHERE, "topic": "any", **options})

    return _checked(section, parse)


def table_options(section: YamlSection) -> Mapping[str, str]:
    def parse(options: Mapping[str, str]) -> None:
        from headrace.spark.sink.tables.options import parse_table_options

        parse_table_options({"path": "any", **options})

    return _checked(section, parse)


def check_address(url: str, table: str, options: Mapping[str, str]) -> None:
    """Refuse what is not the address of a database, or a table that it cannot have, with a ValueError."""
    from headrace.spark.sink.databases.dialects import SQLite, dialect_of

    if isinstance(dialect_of(url, options), SQLite) and "." in table:
        raise ValueError(f"SQLite has no schemas: write the table as {table.rpartition('.')[2]}")


def check_catalog(url: str, options: Mapping[str, str]) -> None:
    """Refuse what is not the address of a catalog, with a ValueError."""
    from headrace.spark.sink.iceberg.table import CatalogPlace

    CatalogPlace.of(url, "", options)


def _checked(section: YamlSection, parse: Callable[[Mapping[str, str]], None]) -> Mapping[str, str]:
    """Return the options; an invalid one is reported with its line."""
    options = section.pairs("options", secrets=True)
    own = [name for name in options if name in OPTIONS_OF_RUNNER]
    for name in own:
        section.wrong(f"options.{name}", f"use the key `{OPTIONS_OF_RUNNER[name]}` instead")
    if not options or own:
        return options
    try:
        parse(options)
    except OptionError as error:
        told = str(error).lower()
        guilty = next((name for name in options if name.lower().removeprefix("kafka.") in told), None)
        section.wrong("options" if guilty is None else f"options.{guilty}", str(error))
    return options
