"""The cluster's metadata on this node: its log on disk, the controller that writes it, the image that all parts read.

A change is a proposal: decided at once by the active controller, appended, and answered in a later turn when the
metadata quorum has committed it.
"""
