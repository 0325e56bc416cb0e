"""What every coordinator has in common: it decides on an event by records and answers, and waits by named deadlines.

Groups and transactions are such machines; `broker/coordinators` runs them, each on a partition of an internal topic.
"""
