"""The `headrace` command: a broker to run, and tools for topics, records, configs and data folders.

`main` is the entry point. Commands are imported only when they are called, so that `--help` and completion are quick;
the ones that talk to a broker do so as any Kafka client would, through `headrace.client`.
"""
