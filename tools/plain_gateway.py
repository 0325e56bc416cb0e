"""A short program that produces over HTTP by Uvicorn and confluent-kafka, to measure the manager beside it.

    python -m tools.plain_gateway BOOTSTRAP

It has what a team writes in an afternoon: no checks, keys, users or limits.
"""

import asyncio
import json
import socket
import sys
from typing import Any

import uvicorn
from confluent_kafka import Producer


class PlainGateway:
    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, "acks": "all"})

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body, has_more = b"", True
        while has_more:
            message = await receive()
            body, has_more = body + message.get("body", b""), message.get("more_body", False)
        posted = json.loads(body)
        places = await asyncio.gather(*(self._send(scope["path"], each) for each in posted.get("records", [posted])))
        content = json.dumps({"records": places}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def _send(self, path: str, record: Any) -> "asyncio.Future[dict[str, int]]":
        loop = asyncio.get_running_loop()
        stored: asyncio.Future[dict[str, int]] = loop.create_future()

        def delivered(error: Any, message: Any) -> None:
            place = {"partition": message.partition(), "offset": message.offset()}
            loop.call_soon_threadsafe(stored.set_exception, OSError(error)) if error else stored.set_result(place)

        self._producer.produce(path.split("/")[3], record["value"].encode(), on_delivery=delivered)
        return stored

    async def poll(self) -> None:
        while True:
            self._producer.poll(0)
            await asyncio.sleep(0.001)


async def main() -> None:
    gateway, listener = PlainGateway(sys.argv[1]), socket.create_server(("127.0.0.1", 0))
    print("plain gateway on http://{}:{}".format(*listener.getsockname()), flush=True)
    polling = asyncio.create_task(gateway.poll())
    await uvicorn.Server(uvicorn.Config(gateway, http="httptools", lifespan="off", log_level="warning")).serve(
        [listener]
    )
    polling.cancel()


if __name__ == "__main__":
    asyncio.run(main())
