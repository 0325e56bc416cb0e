"""Spark's own connector for Kafka, from Maven, for comparison."""

from pathlib import Path

from tools.bench.maven import Artifact, fetched_jars

CONNECTOR_VERSION = "4.2.0"
"""The newest in Maven's registry; it runs in Spark 4.3 as well."""

_ARTIFACTS = (
    Artifact("org.apache.spark", "spark-sql-kafka-0-10_2.13", CONNECTOR_VERSION),
    Artifact("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    Artifact("org.apache.kafka", "kafka-clients", "3.9.1"),
    Artifact("org.apache.commons", "commons-pool2", "2.12.1"),
)
"""Artifacts that Spark does not include. The registry has no newer version of the second one."""


def connector_jars() -> list[Path]:
    """Return the jars, downloaded on first use; ToolMissing names a missing tool."""
    name = f"spark-kafka-{CONNECTOR_VERSION}"
    return sorted(fetched_jars(name, _ARTIFACTS, what="Spark's connector for Kafka", alone=True).glob("*.jar"))
