"""The two scripts of a Kafka distribution that the tests call, over the jars that Maven fetched."""

from pathlib import Path

from compat.environments import HOME, jars_from_maven
from compat.segments import ARTIFACTS, KAFKA_VERSION

SCRIPTS = {
    "kafka-topics.sh": 'exec java -Xmx128M -cp "$home/libs/*" org.apache.kafka.tools.TopicCommand "$@"',
    "kafka-run-class.sh": 'exec java -Xmx256M -cp "$CLASSPATH:$home/libs/*" "$@"',
}
SCRIPT = """#!/bin/sh
home=$(cd "$(dirname "$0")/.." && pwd)
{command}
"""


def kafka_home() -> Path:
    """A folder for the tests' KAFKA_PATH; raises Missing without Maven."""
    jars = jars_from_maven(f"kafka-{KAFKA_VERSION}", ARTIFACTS)
    home = HOME / f"kafka-home-{KAFKA_VERSION}"
    scripts = home / "bin"
    scripts.mkdir(parents=True, exist_ok=True)
    libraries = home / "libs"
    if not libraries.is_symlink():
        libraries.symlink_to(jars)
    for name, command in SCRIPTS.items():
        path = scripts / name
        path.write_text(SCRIPT.format(command=command))
        path.chmod(0o755)
    return home
