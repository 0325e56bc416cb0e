"""The smallest pieces of Kafka's protocol: numbers, strings, arrays and tagged fields, read (`reading`) and written
(`writing`).

"Compact" is the encoding of flexible versions (KIP-482): lengths are unsigned varints, one larger than the length, and
0 means null.
"""
