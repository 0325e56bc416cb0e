"""Jars from Maven, downloaded into the cache folder on first use."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from headrace.bench import processes
from headrace.bench.errors import ToolMissing
from headrace.bench.machine import cache_folder

FETCH_SECONDS_MAX = 600

_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
_PROJECT = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>headrace</groupId>'
    "<artifactId>bench</artifactId><version>1</version><packaging>pom</packaging><dependencies>{}</dependencies></project>"
)


class Artifact(NamedTuple):
    group: str
    name: str
    version: str


def fetched_jars(name: str, artifacts: Sequence[Artifact], *, what: str, alone: bool = False) -> Path:
    """Return the folder with these artifacts and, unless `alone`, their dependencies; raise ToolMissing without mvn."""
    jars = cache_folder() / name
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise ToolMissing(f"{what} is downloaded with mvn, which is not installed")
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        messages, fetched = Path(folder) / "messages", Path(folder) / "fetched"
        commands = _lone(artifacts) if alone else [_with_all_they_need(artifacts, Path(folder))]
        for command in commands:
            wanted = [maven, "-B", "-q", *command, f"-DoutputDirectory={fetched}"]
            processes.run(wanted, messages=messages, seconds_max=FETCH_SECONDS_MAX)
        fetched.replace(jars)
    return jars


def _lone(artifacts: Sequence[Artifact]) -> list[list[str]]:
    return [["dependency:copy", f"-Dartifact={':'.join(artifact)}"] for artifact in artifacts]


def _with_all_they_need(artifacts: Sequence[Artifact], folder: Path) -> list[str]:
    project = folder / "pom.xml"
    project.write_text(_PROJECT.format("".join(_DEPENDENCY.format(*artifact) for artifact in artifacts)))
    return ["-f", str(project), "dependency:copy-dependencies"]
