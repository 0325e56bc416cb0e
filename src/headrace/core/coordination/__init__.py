"""The common parts of coordinators, which decide each event by records and responses, and wait by named deadlines.

The group coordinator and the transaction coordinator are such state machines; `broker/coordinators` runs each of them
on a partition of an internal topic.
"""
