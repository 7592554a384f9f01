"""The models that a server offers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson

from rectom.llm.address import Address
from rectom.llm.secret import Secret

_LOG = logging.getLogger(__name__)
_PATIENCE_S = 10.0
_LONGEST_BODY = 2**20


async def list_models(base_url: str, api_key: str | None) -> list[str]:
    """The names of the models at `base_url`, sorted; none where the server does not tell within 10 s and 1 MiB."""
    address, secret = Address.parse(base_url), Secret(api_key)
    try:
        async with asyncio.timeout(_PATIENCE_S):
            names = _names(orjson.loads(await _body(address.models, secret)))
    except Exception as fault:  # a hint must not hide the error that it is for
        _LOG.debug("%s does not list its models: %s", address, type(fault).__name__)
        return []
    return sorted(secret.hide(name) for name in names)


async def _body(url: str, secret: Secret) -> bytes:
    body = bytearray()
    # A redirect is not followed: it could carry the key to another server.
    async with (
        aiohttp.ClientSession(headers=secret.headers(), cookie_jar=aiohttp.DummyCookieJar()) as session,
        session.get(url, allow_redirects=False, raise_for_status=True) as response,
    ):
        async for piece in response.content.iter_any():
            body += piece
            if len(body) > _LONGEST_BODY:
                raise ValueError("a list of more than 1 MiB")
    return bytes(body)


def _names(listing: Any) -> list[str]:
    return [str(model["id"]) for model in listing["data"] if isinstance(model, Mapping) and "id" in model]
