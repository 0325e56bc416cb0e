"""A producer of the Java client with its defaults that writes one record after another while brokers stop and fail."""

import subprocess
import tempfile
import threading
from pathlib import Path

from compat.environments import jars_from_maven
from compat.segments import ARTIFACTS, KAFKA_VERSION

STOP_S_MAX = 60.0
PAUSE_MS = 5

PROGRAM = """
import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;

public class SteadyProducer {
    static volatile boolean stopped = false;
    static long longest = 0;

    static synchronized void gap(long nanos) { longest = Math.max(longest, nanos); }
    static synchronized long take() { long was = longest; longest = 0; return was; }

    public static void main(String[] arguments) throws Exception {
        Thread commands = new Thread(() -> {
            Scanner lines = new Scanner(System.in);
            while (lines.hasNextLine() && !lines.nextLine().equals("stop"))
                System.out.println("gap " + TimeUnit.NANOSECONDS.toMillis(take()));
            stopped = true;
        });
        commands.setDaemon(true);
        commands.start();
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0]);
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            int number = 0;
            long last = 0;
            while (!stopped) {
                producer.send(new ProducerRecord<>(
                    arguments[1], Integer.parseInt(arguments[2]), null, Integer.toString(number++).getBytes())).get();
                long now = System.nanoTime();
                if (last == 0) System.out.println("ready"); else gap(now - last);
                last = now;
                Thread.sleep(Long.parseLong(arguments[3]));
            }
            System.out.println("sent " + number);
        }
    }
}
"""


class JavaProducer:
    """Ends with status 0 if no error reached the application."""

    def __init__(self, bootstrap: str, topic: str, partition: int) -> None:
        jars = jars_from_maven(f"kafka-{KAFKA_VERSION}", ARTIFACTS)
        self.errors: list[str] = []
        self.acknowledged = 0
        self._folder = tempfile.TemporaryDirectory(prefix="headrace-java-")
        program = Path(self._folder.name) / "SteadyProducer.java"
        program.write_text(PROGRAM)
        self._process = subprocess.Popen(
            ["java", "-Xmx128M", "-cp", f"{jars}/*", str(program), bootstrap, topic, str(partition), str(PAUSE_MS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._said: list[str] = []
        self._reader = threading.Thread(target=self._read_errors)
        self._reader.start()
        self._expect("ready")

    def _read_errors(self) -> None:
        """Keep the pipe empty, or the program would wait for it."""
        assert self._process.stderr is not None
        self._said += self._process.stderr.readlines()

    def _expect(self, word: str) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().split()
        if line[:1] != [word]:
            self._process.kill()
            self._process.wait()
            self._reader.join()
            raise AssertionError(f"the Java program ended: {''.join(self._said)[-2_000:]}")
        return line[-1]

    def take_longest_gap_ms(self) -> int:
        """Return the longest time between two acknowledgements since the last call."""
        self._command("gap")
        return int(self._expect("gap"))

    def stop(self) -> None:
        """Raise AssertionError if an error reached the application."""
        self._command("stop")
        self.acknowledged = int(self._expect("sent"))
        self._process.wait(STOP_S_MAX)
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()
        self._folder.cleanup()

    def _command(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
