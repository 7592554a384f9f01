"""The content-addressed store on disk: model replies and stage results by the digest of their inputs."""

from cache.archive import Imported, Rescued, export, import_, rescue
from cache.care import Problem, Size, Stats, prune, stats, verify
from cache.entry import KINDS, Entry, Value
from cache.errors import (
    ArchiveError,
    CacheCorrupt,
    CacheError,
    CacheFormat,
    CacheFull,
    CacheReadOnly,
    CacheTooLarge,
)
from cache.explain import Reason, Verdict, compare
from cache.keys import digest
from cache.store import Store

__all__ = [
    "KINDS",
    "ArchiveError",
    "CacheCorrupt",
    "CacheError",
    "CacheFormat",
    "CacheFull",
    "CacheReadOnly",
    "CacheTooLarge",
    "Entry",
    "Imported",
    "Problem",
    "Reason",
    "Rescued",
    "Size",
    "Stats",
    "Store",
    "Value",
    "Verdict",
    "compare",
    "digest",
    "export",
    "import_",
    "prune",
    "rescue",
    "stats",
    "verify",
]
