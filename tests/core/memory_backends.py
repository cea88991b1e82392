"""The backends that the contracts of entries run on."""

from __future__ import annotations

import pytest

from hiermem_core import ApproximateCounter, FernetCodec, HierMem

CODEC = FernetCodec(FernetCodec.generate_key())

OPTIONS = {
    "in_memory": {"backend": "in_memory"},
    "sqlite": {"backend": "sqlite"},
    "chroma": {"backend": "chroma"},
    "chroma_indexed": {"backend": "chroma", "exact_limit": 0},
    "hybrid": {"backend": "hybrid"},
    "hybrid_indexed": {"backend": "hybrid", "index_threshold": 0, "exact_limit": 0},
    "postgres": {"backend": "hybrid", "generation_check_seconds": 0},
    "postgres_chroma": {
        "backend": "hybrid",
        "generation_check_seconds": 0,
        "index_threshold": 0,
        "exact_limit": 0,
    },
    "sealed": {"backend": "hybrid", "codec": CODEC},
    "postgres_sealed": {"backend": "hybrid", "generation_check_seconds": 0, "codec": CODEC},
}
"""By name; on the `indexed` ones the approximate index answers whatever it can."""

EVERY = ("in_memory", "sqlite", "chroma_indexed", "hybrid", "hybrid_indexed")
PERSISTENT = ("sqlite", "chroma_indexed", "hybrid", "hybrid_indexed")
WITH_WORDS = ("in_memory", "sqlite", "hybrid")
WITH_VECTORS = ("in_memory", "chroma", "chroma_indexed", "hybrid", "hybrid_indexed")
WITH_BOTH = ("in_memory", "hybrid", "hybrid_indexed")


def on(*names):
    """Return the fixture `opened` of a contract of entries, for each of these backends."""

    @pytest.fixture(params=names)
    def opened(self, request, tmp_path, clock, embedder, events):  # noqa: PLR0917 - fixtures
        handles = []
        is_served = request.param.startswith("postgres")
        place = request.getfixturevalue("location") if is_served else tmp_path / "memory"
        with_chroma = request.param.endswith("_chroma")
        shared = {"chroma": request.getfixturevalue("chroma_server").url} if with_chroma else {}

        def open_one(**options):
            given = {"embedder": embedder, "clock": clock, "observer": events.append}
            handle = HierMem.open(
                place,
                counter=ApproximateCounter(),
                **OPTIONS[request.param] | shared | given | options,
            )
            handles.append(handle)
            return handle

        yield open_one
        for handle in handles:
            handle.close()

    return opened
