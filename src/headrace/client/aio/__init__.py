"""The front for asyncio: the same core as the blocking one, driven by the running event loop. See `headrace.aio`."""
