"""Users of the manager: who sends a request, what each role may do, and how people and scripts prove who they are.

These users are the manager's own, kept in the catalog. They have nothing to do with the users of the cluster.
"""
