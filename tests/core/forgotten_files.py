"""A location with a sentinel in everything that is kept of a user, and looking for it in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sqlalchemy import select

from hiermem_core import ApproximateCounter, HierMem
from hiermem_core.models.notes import Fact, ThreadState
from hiermem_core.storage.tables import metadata
from hiermem_core.testing import FakeClock, FakeEmbedder
from hiermem_core.testing.contracts.probes import notes_store

SENTINEL = "zqxjkv"
CONTENTS = [f"note {SENTINEL} number {number}" for number in range(6)]
SAID = f"Did you say {SENTINEL} yesterday?"
EMBEDDER = FakeEmbedder(32)
SECONDS = 60


def opened(location, **options):
    given = {"backend": "hybrid", "index_threshold": 0, "busy_seconds": 0.2, "clock": FakeClock()}
    return HierMem.open(
        location, counter=ApproximateCounter(), embedder=EMBEDDER, **given | options
    )


def fill(hiermem, *, user="bob", sentinel=SENTINEL):
    """Store a sentinel in everything that is kept of a user, and other things beside it."""
    tenant = hiermem.tenant("acme")
    for number in range(10):
        tenant.remember(f"ordinary note {number}", user_id="eve", namespace="n")
    for number, content in enumerate(CONTENTS):
        tenant.remember(
            content,
            key=f"{sentinel} {number}",
            tags=[sentinel, "common"],
            metadata={f"field {sentinel}": [sentinel]},
            namespace=f"private/{sentinel}",
            user_id=user,
        )
    first = tenant.memory.search(namespace="private", key=f"{sentinel} 0")[0].id
    tenant.memory.update(first, content=f"changed {sentinel}")
    tenant.memory.delete(namespace=f"private/{sentinel}", key=f"{sentinel} 1")
    thread = tenant.thread("t1")
    metadata_of_turn = {"about": sentinel}
    said = {"role": "user", "content": SAID, "user_id": user, "name": f"Bob {sentinel}"}
    thread.append([said | {"id": f"a {sentinel}", "metadata": metadata_of_turn}])
    thread.append([{"role": "assistant", "content": "Why do you ask?"}])
    thread.append([said | {"id": f"b {sentinel}"}])
    thread.append([{"role": "user", "content": "Never mind.", "name": "Eve"}], removing=[])
    thread.append([], removing=[f"b {sentinel}"])
    facts = (Fact(f"The fact is {sentinel}.", 1, ((1,),)),)
    state = ThreadState(f"They spoke of {sentinel}.", facts, 2)
    notes = notes_store(hiermem)
    assert notes.commit("acme", "t1", state, onto=notes.read("acme", "t1").mark)
    assert tenant.memory.wait_for_index(SECONDS)
    return tenant


def files_of(location):
    return [path for path in Path(location).rglob("*") if path.is_file()]


def texts_in(location, *texts):
    """Return the files that hold one of these texts, in UTF-8 or UTF-16, in any letter case."""
    wanted = [text.encode(code) for text in texts for code in ("utf-8", "utf-16-le", "utf-16-be")]
    return [
        path.relative_to(location).as_posix()
        for path in files_of(location)
        if any(text in path.read_bytes().lower() for text in wanted)
    ]


def vectors_in(location, texts=(*CONTENTS, f"changed {SENTINEL}")):
    """Return the files that hold three numbers in a row of a vector of one of these texts."""
    vectors = np.asarray(EMBEDDER.embed(list(texts)), dtype="<f4")
    parts = {row[place : place + 3].tobytes() for row in vectors for place in range(30)}
    return [
        path.relative_to(location).as_posix()
        for path in files_of(location)
        if any(part in path.read_bytes() for part in parts)
    ]


def marks_in(hiermem):
    with hiermem._services.database.read() as connection:
        keys = connection.execute(select(metadata.c.key)).scalars()
        return [key for key in keys if key.startswith("forget:")]
