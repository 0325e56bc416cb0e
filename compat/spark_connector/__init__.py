"""Spark's own connector for Kafka (a jar from Maven) with this broker, and beside the format of this project.

`make compat` runs the tests here where Maven and Java are at hand, keeps what came out in outcomes.json, and
`outcomes.py` makes the table of docs/compatibility.md from that.
"""
