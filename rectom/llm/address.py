"""The server's address, however a person writes it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from rectom.errors import SettingsError

_VERSION = re.compile(r"/v\d\w*(/|$)")
_FOREIGN = re.compile(r"[\s\x00-\x1f@?#]")
_CHAT = "/chat/completions"
_MODELS = "/models"


@dataclass(frozen=True)
class Address:
    """The root of an OpenAI-compatible API: scheme, host and a path that names the version."""

    root: str

    @classmethod
    def parse(cls, base_url: str) -> Address:
        """Take `base_url` with or without `/v1`, a trailing slash or `/chat/completions`.

        Raises `SettingsError` where it is no plain http address. The message does not repeat it: it may hold
        a password.
        """
        text = base_url.strip()
        try:
            parts = urlsplit(text)
            plain = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            plain = False
        if not plain or _FOREIGN.search(text):
            raise SettingsError(
                "the base URL must look like http://host:port/v1, without a password or a query; "
                "set --base-url or OPENAI_BASE_URL"
            )
        path = parts.path.rstrip("/").removesuffix(_CHAT).rstrip("/")
        return cls(f"{parts.scheme}://{parts.netloc}{path}{'' if _VERSION.search(path) else '/v1'}")

    @property
    def chat(self) -> str:
        """Where chat completions are asked for."""
        return self.root + _CHAT

    @property
    def models(self) -> str:
        """Where the server lists its models."""
        return self.root + _MODELS

    def __str__(self) -> str:
        return self.root
