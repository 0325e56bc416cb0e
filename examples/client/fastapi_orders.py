"""Orders over HTTP into a topic, and what was counted of them back: FastAPI with Headrace's asyncio client.

Install fastapi and uvicorn, start `headrace broker` and run `uvicorn fastapi_orders:app` in this folder.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from pydantic import BaseModel

from headrace.aio import Admin, Consumer, Producer
from headrace.client import NewTopic

SERVERS = os.environ.get("BOOTSTRAP_SERVERS", "127.0.0.1:9092")
TOPIC = "orders"


class Order(BaseModel):
    customer: str
    item: str
    count: int


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One producer for all requests, and one consumer beside them, for as long as the application runs."""
    async with Admin(SERVERS) as admin:
        await admin.create_topics([NewTopic(TOPIC, partitions=4)])
    app.state.counted = Counter()
    async with Producer(SERVERS, key_serializer="str", value_serializer="json") as producer:
        app.state.producer = producer
        counting = asyncio.create_task(count_orders(app.state.counted))
        yield
        counting.cancel()
        await asyncio.gather(counting, return_exceptions=True)


async def count_orders(counted: Counter[str]) -> None:
    async with Consumer(
        TOPIC, bootstrap_servers=SERVERS, group_id="counters", auto_offset_reset="earliest", value_deserializer="json"
    ) as consumer:
        async for record in consumer:
            counted[record.value["item"]] += record.value["count"]


app = FastAPI(lifespan=lifespan)


@app.post("/orders")
async def take_order(order: Order, request: Request) -> dict[str, int]:
    """Answer when the order is safe: the broker has it."""
    delivered = await request.app.state.producer.send_and_wait(TOPIC, order.model_dump(), key=order.customer)
    return {"partition": delivered.partition, "offset": delivered.offset}


@app.get("/counts")
async def counts(request: Request) -> dict[str, int]:
    return dict(request.app.state.counted)
