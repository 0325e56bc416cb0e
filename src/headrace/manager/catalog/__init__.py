"""The catalog: users, sessions, audit records, history and the lease, in a database that the managers share.

It is SQLite in a file, or PostgreSQL for managers on several machines. Records, positions and results of requests are
in the brokers, so that a lost catalog loses none of them.
"""
