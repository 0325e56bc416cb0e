"""The primitives of Kafka's protocol: numbers, strings, arrays and tagged fields, read (`readers`) and written
(`writers`).

"Compact" is the encoding of flexible versions (KIP-482): lengths are unsigned varints, one larger than the length, and
0 means null.
"""
