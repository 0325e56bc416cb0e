"""The group coordinator: membership, assignments and committed offsets of consumer groups.

It only decides, as a state machine of `core/coordination`; `broker/coordinators` stores its records in
`__consumer_offsets`.
"""
