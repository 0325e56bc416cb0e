"""The stages of a Produce request. Each module hands the request to the next and imports none before it.

The order is: `parse` (bytes to offsets), `admit` (errors known from the request alone), `record_hold` and
`transaction_hold` (requests that wait for a helper or for a transaction coordinator), `append` (record sets to their
partitions) and `answer` (the response). `stages` connects them. `repeats` is the short path that most requests take.
"""
