"""Transactions: which producer may write under a transactional id, and how each of its transactions ends.

A pure machine: nothing here knows a clock, a socket, a file or a random number.
"""
