from __future__ import annotations

from pathlib import Path

import pytest

from cache import Store
from cache import store as store_module
from flows.replies import StoredReplies
from rectom.errors import EndpointFault

KEY = "0" * 64


async def test_a_record_is_found_again(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        await StoredReplies(store).keep(KEY, {"text": "A"})
        assert StoredReplies(store).find(KEY) == {"text": "A"}


async def test_a_record_that_is_too_large_is_the_fault_of_one_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "VALUE_LIMIT", 100)
    with Store(tmp_path) as store:
        with pytest.raises(EndpointFault, match=r"the reply cannot be kept: .* over the 100 allowed"):
            await StoredReplies(store).keep(KEY, {"text": "A" * 100})
        assert StoredReplies(store).find(KEY) is None
