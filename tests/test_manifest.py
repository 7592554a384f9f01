from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from rectom.errors import DataError
from rectom.results.exported import Exported
from rectom.results.finished import Finished
from rectom.results.folder import RunFolder
from rectom.results.manifest import MEND, manifest, mending
from rectom.results.paged import Paged
from tests.test_finished import SETTINGS, answer, write_run


class Told(BaseModel):
    settings: dict[str, object]
    questions: int = 0


@pytest.mark.parametrize(
    ("read", "then"),
    [(Finished.read, " first"), (Exported.read, ", then export it"), (Paged.read, ", then look at it")],
)
@pytest.mark.parametrize("state", ["running", "interrupted", "stopped", "failed"])
def test_whoever_reads_a_run_back_says_that_it_has_not_ended(
    tmp_path: Path, read: Callable[[Path], object], then: str, state: str
) -> None:
    folder = write_run(tmp_path / "night", [answer(0)], state=state)
    with pytest.raises(DataError) as refused:
        read(folder)
    told = f"run its command to the end{then} (rectom resume night gives it again)"
    assert str(refused.value) == f"{folder} is not finished but {state}: {told}"


def test_a_manifest_comes_as_it_is_and_as_it_is_checked(tmp_path: Path) -> None:
    run = RunFolder(write_run(tmp_path / "night", [answer(0)], questions="3"))
    raw, told = manifest(run, Told, "")
    assert (raw["questions"], told.questions, told.settings) == ("3", 3, SETTINGS)


def test_a_damaged_manifest_says_where(tmp_path: Path) -> None:
    run = RunFolder(write_run(tmp_path / "night", [answer(0)], questions="many"))
    with pytest.raises(DataError) as refused:
        manifest(run, Told, "")
    assert str(refused.value).startswith(f"{tmp_path / 'night' / 'manifest.json'}: questions: Input should be")
    assert str(refused.value).endswith(f"; {MEND}")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "denied"), "cannot read r: denied"),
        (DataError("r is odd"), "r is odd"),
    ],
)
def test_what_is_wrong_with_a_file_comes_with_its_mend(error: Exception, said: str) -> None:
    with pytest.raises(DataError) as refused, mending(Path("r")):
        raise error
    assert str(refused.value) == f"{said}; {MEND}"
