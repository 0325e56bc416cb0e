"""Load tools of `headrace bench`: rates, CPU and latency of a broker on this machine.

Every figure is checked by end offsets and checksums after each round; a round with an error does not count. Broker CPU
(user and system time of its processes) is the most reliable figure; rates depend as much on the client beside it.
"""
