"""Stock Kafka clients against this broker: one set of cases, one adapter per client, and a table of what works.

`tests/client/stock` runs the cases with the clients of the development environment; `compat/run.py` runs them with more
clients and older releases, and writes docs/compatibility.md.
"""
