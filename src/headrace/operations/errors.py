"""The error that an operation raises when it cannot be carried out."""


class OperationError(Exception):
    """An operation cannot be carried out; the message is written for the user of a front end."""
