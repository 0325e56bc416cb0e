"""The routes of the HTTP API, one module for each kind of resource: they translate and call."""
