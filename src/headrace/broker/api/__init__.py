"""One module per Kafka API: passes a decoded request to the part of the broker that decides, and builds the response.

`dispatch.py` finds the module of a request, `context.py` connects it with the broker, `response_writer.py` encodes what
it returns, and `support/` has the steps that several modules share.
"""
