"""The cluster's metadata on this node: its log on disk, the controller that writes it, the image that all parts read.

A change is a proposal: decided at once, appended, and answered in a later turn when it is committed. Today committed
means synced to this node's disk; a quorum will replace that without a change for callers.
"""
