"""The least server that a chat client takes for one: a fixed latency, and no work that slows down what is measured.

    python bench/mock_server.py [--port P] [--latency S] [--refuse-first]

It prints its URL. `GET /stats` tells how many requests came, `GET /reset` forgets them. With `--refuse-first` the
first request of every prompt gets a 429 with Retry-After: 1.
"""

from __future__ import annotations

import asyncio
import hashlib
import json

import click

REPLY = json.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "model": "mock",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "A" * 300}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 480, "completion_tokens": 80, "total_tokens": 560},
    }
).encode()
REFUSAL = b'{"error": {"message": "slow down"}}'


class Server:
    """What all connections share."""

    def __init__(self, latency: float, refuse_first: bool) -> None:
        self.latency = latency
        self.refuse_first = refuse_first
        self.count = self.in_flight = self.most = 0
        self.seen: set[bytes] = set()

    def answer(self, head: bytes, body: bytes) -> tuple[float, bytes]:
        """The latency and the bytes of an answer."""
        if head.startswith(b"GET"):
            said = json.dumps({"requests": self.count, "most": self.most}).encode()
            if head.startswith(b"GET /reset"):
                self.count = self.most = 0
                self.seen.clear()
            return 0.0, response(b"200 OK", said)
        self.count += 1
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        if self.refuse_first and (digest := hashlib.blake2b(body).digest()) not in self.seen:
            self.seen.add(digest)
            return self.latency, response(b"429 Too Many Requests\r\nRetry-After: 1", REFUSAL)
        return self.latency, response(b"200 OK", REPLY)


class Connection(asyncio.Protocol):
    """One connection; requests may come in pieces."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.data = bytearray()

    # ruff: noqa: D102  asyncio tells what they mean
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        end = self.data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self.data[:end])
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        length = int(lengths[0].partition(b":")[2]) if lengths else 0
        if len(self.data) < end + 4 + length:
            return
        body = bytes(self.data[end + 4 : end + 4 + length])
        del self.data[: end + 4 + length]
        latency, answer = self.server.answer(head, body)
        asyncio.get_running_loop().call_later(latency, self.send, answer, head.startswith(b"POST"))

    def send(self, answer: bytes, counted: bool) -> None:
        self.server.in_flight -= counted
        self.transport.write(answer)


def response(status: bytes, body: bytes) -> bytes:
    """An HTTP response with a JSON body."""
    head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (status, len(body)) + body


async def serve(port: int, latency: float, refuse_first: bool) -> None:
    state = Server(latency, refuse_first)
    made = await asyncio.get_running_loop().create_server(lambda: Connection(state), "127.0.0.1", port, backlog=2048)
    print(f"http://127.0.0.1:{made.sockets[0].getsockname()[1]}/v1", flush=True)
    await made.serve_forever()


@click.command()
@click.option("--port", default=0)
@click.option("--latency", default=0.05)
@click.option("--refuse-first", is_flag=True)
def main(port: int, latency: float, refuse_first: bool) -> None:
    asyncio.run(serve(port, latency, refuse_first))


if __name__ == "__main__":
    main()
