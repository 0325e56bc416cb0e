"""Texts that the requests about access rules share."""

NO_AUTHORIZER = (
    "the broker has no authorizer: set authorizer.class.name on every node, with super.users for those who administer"
)
