"""librdkafka's own tests, run by its own test-runner against this broker and against Apache Kafka.

`suite.py` says which and what each checks, `sources.py` fetches and builds them, `runner.py` runs one, `outcomes.py`
keeps what came out in outcomes.json, and `section.py` makes the table of docs/compatibility.md from that.
`allow-list` names the tests that must pass: it only grows. FINDINGS.md tells of every other one why it does not.
"""
