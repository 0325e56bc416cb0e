"""The cluster's metadata on this node: its log on disk, the controller that writes it, the image everybody reads.

A change is a proposal: decided at once, appended, and answered in a later turn when it is committed. Today that
means synced to this node's disk; a quorum will go beneath it without changing who calls what.
"""
