"""The models that a server offers."""

from __future__ import annotations

import logging

from rectom.llm.address import Address

_LOG = logging.getLogger(__name__)
_PATIENCE_S = 10.0


async def list_models(base_url: str, api_key: str | None) -> list[str]:
    """The names of the models at `base_url`, sorted; none where the server does not tell."""
    import openai  # takes a second to import, which only an error is worth

    address = Address.parse(base_url)
    try:
        async with openai.AsyncOpenAI(
            base_url=address.root, api_key=api_key or "none", timeout=_PATIENCE_S, max_retries=0
        ) as client:
            return sorted([str(model.id) async for model in client.models.list()])
    except Exception as fault:  # a hint must not hide the error that it is for
        _LOG.debug("%s does not list its models: %s", address, type(fault).__name__)
        return []
