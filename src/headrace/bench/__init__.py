"""Load tools and the side-by-side benchmark: what a broker costs on this machine, and what the bare machine costs.

Every figure is checked: end offsets and checksums after each round, and a round with one error does not count. Broker
CPU (user and system of its processes) is the figure to trust; rates say as much about the client beside it.
"""
