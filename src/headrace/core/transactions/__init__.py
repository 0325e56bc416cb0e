"""The transaction coordinator: decides which producer may write under a transactional id, and ends its transactions.

A pure state machine: nothing here reads a clock, a socket, a file or a random number.
"""
