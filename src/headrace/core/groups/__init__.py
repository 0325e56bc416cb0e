"""Consumer groups and their offsets: who is a member, who decides the assignment, and how far each group has read.

Decisions only, as a machine of `core/coordination`; `broker/coordinators` keeps its records in `__consumer_offsets`.
"""
