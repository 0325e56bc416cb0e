"""Headrace's client for asyncio.

    from headrace.aio import Consumer, Producer

    async with Producer("127.0.0.1:9092") as producer:
        delivery = await producer.send("orders", b"value", key=b"key")
        (await delivery).offset
    async with Consumer("orders", bootstrap_servers="127.0.0.1:9092", group_id="billing") as consumer:
        async for record in consumer:
            ...

The names and options are those of `headrace.Producer`, `headrace.Consumer` and `headrace.Admin`.
"""

from headrace.client.aio.admin import Admin
from headrace.client.aio.consumer import Consumer
from headrace.client.aio.producer import Delivery, Producer, Transaction

__all__ = ["Admin", "Consumer", "Delivery", "Producer", "Transaction"]
