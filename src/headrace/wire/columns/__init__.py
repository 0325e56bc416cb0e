"""Record batches as columns: the fields of all records of a fetch as arrays, without an object per record.

`opened` checks and decompresses batches, `places` (with numpy) or `native` (compiled) locate each field, and `arrow`
builds Arrow arrays. Only users of this package import numpy and pyarrow, never a broker.
"""
