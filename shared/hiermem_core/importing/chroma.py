"""Chroma collections, as LangChain's `Chroma` and LlamaIndex's `ChromaVectorStore` write them.

Read from the database, without Chroma: it holds documents, metadata, ids, and the vectors of the
newest writes. Older vectors lie in index files, whose entries are made anew from their documents.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from hiermem_core.importing.mem0_export import FORMAT as MEM0
from hiermem_core.importing.mem0_export import check_users, chosen, memory_record
from hiermem_core.importing.names import segment_of
from hiermem_core.importing.reading import Facts, entry_record, read_each
from hiermem_core.importing.records import SQLITE, RecordError
from hiermem_core.importing.times import iso_moment
from hiermem_core.importing.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hiermem_core.importing.databases import DatabaseCopy, Row
    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

LANGCHAIN = "chroma/langchain"
LLAMAINDEX = "chroma/llamaindex"
FORMATS = (LANGCHAIN, LLAMAINDEX)

_TABLES = frozenset(
    {
        *("collections", "segments", "embeddings", "embedding_metadata"),
        *("embeddings_queue", "max_seq_id"),
    }
)
_DOCUMENT = "chroma:document"
_NODE = ("_node_content", "_node_type")
_MEM0_TEXT = "data"
_SEGMENTS = """
SELECT c.id, c.name, s.id AS segment FROM collections c JOIN segments s ON s.collection = c.id
WHERE s.scope = 'METADATA' ORDER BY c.name
"""
_HAS_KEY = """
SELECT 1 FROM embedding_metadata m JOIN embeddings e ON e.id = m.id
WHERE e.segment_id = ? AND m.key = ? LIMIT 1
"""
_USERS = """
SELECT DISTINCT m.string_value AS user_id FROM embedding_metadata m
JOIN embeddings e ON e.id = m.id WHERE e.segment_id = ? AND m.key = 'user_id'
"""
_RECORDS = """
SELECT e.id AS number, e.embedding_id, e.created_at, m.key, m.string_value, m.int_value,
    m.float_value, m.bool_value
FROM embeddings e LEFT JOIN embedding_metadata m ON m.id = e.id
WHERE e.segment_id = ? ORDER BY e.id
"""
_WAITING = """
SELECT count(*) AS changes FROM embeddings_queue WHERE topic LIKE '%' || ?
AND seq_id > coalesce((SELECT seq_id FROM max_seq_id WHERE segment_id = ?), 0)
"""
_VECTOR = """
SELECT vector, encoding FROM embeddings_queue
WHERE id = ? AND vector IS NOT NULL AND topic LIKE '%' || ? ORDER BY seq_id DESC LIMIT 1
"""


def fits(tables: Mapping[str, frozenset[str]]) -> bool:
    """Tell whether the tables of a database are Chroma's."""
    return tables.keys() >= _TABLES


def collections_of(
    copy: DatabaseCopy, reading: Reading
) -> Iterator[tuple[str, str, Iterator[Record]]]:
    """Yield what is said of each collection, its format and its records."""
    copy.index("embeddings_queue", "id")
    for row in list(copy.select(_SEGMENTS)):
        segment, name = row.given("segment"), row.given("name")
        if any(copy.select(_HAS_KEY, segment, _NODE[0])):
            kind = LLAMAINDEX
        elif any(copy.select(_HAS_KEY, segment, _DOCUMENT)):
            kind = LANGCHAIN
        else:
            kind = MEM0 if any(copy.select(_HAS_KEY, segment, _MEM0_TEXT)) else LANGCHAIN
        collection = Collection(copy, row.given("id"), name, segment)
        yield collection.told(), kind, collection.records(kind, reading)


class Collection:
    """A collection in the copy of its database."""

    def __init__(self, copy: DatabaseCopy, collection: str, name: str, segment: str) -> None:
        self._copy = copy
        self._id = collection
        self._name = name
        self._segment = segment

    def told(self) -> str:
        """Return its name, and how many changes of it Chroma has not taken over yet."""
        (row,) = self._copy.select(_WAITING, self._id, self._segment)
        waiting = row.get("changes")
        more = f", {waiting} changes wait there; open it in Chroma once" if waiting else ""
        return f"collection {self._name}{more}"

    def records(self, kind: str, reading: Reading) -> Iterator[Record]:
        """Yield the records.

        Raises:
            InvalidInputError: It holds memories of several users, and not all are meant.
            DamagedError: They cannot be read on.
        """
        if kind == MEM0 and not reading.only:
            check_users([row.get("user_id") for row in self._select(_USERS)], reading)
        groups = groupby(self._select(_RECORDS), key=lambda row: row.get("number"))
        items = (
            (f"{self._name} row {number}", {"id": rows[0].get("embedding_id"), "rows": rows})
            for number, some in groups
            if (rows := list(some))
        )
        wanted = (item for item in items if kind != MEM0 or chosen(_memory(item[1]), reading))

        def read(item: dict[str, Any]) -> Record:
            if kind == MEM0:
                return memory_record(_memory(item), reading)
            return self._record(item, kind, reading)

        yield from read_each(wanted, read)

    def _record(self, item: dict[str, Any], kind: str, reading: Reading) -> Record:
        facts, source_id = _facts(item["rows"]), item["id"]
        if not isinstance(source_id, str) or not source_id:
            raise RecordError("missing_field", "has no id; add it")
        document = facts.pop(_DOCUMENT, None)
        if not isinstance(document, str):
            raise RecordError("missing_field", "has no document; its text is elsewhere")
        node = {name.lstrip("_"): facts.pop(name, None) for name in _NODE}
        entry = Facts(
            format=kind,
            value=Value(document),
            namespace=f"chroma/{segment_of(self._name)}",
            id=source_id,
            id_format=f"{kind}/{self._name}",
            metadata=facts,
            created_at=iso_moment(item["rows"][0].get("created_at")),
            fields={"collection": self._name, **(node if kind == LLAMAINDEX else {})},
            precedence=SQLITE,
            vector=self._vector(source_id),
        )
        return entry_record(entry, reading)

    def _vector(self, source_id: str) -> tuple[float, ...] | None:
        for row in self._copy.select(_VECTOR, source_id, self._id):
            raw = row.raw("vector")
            if row.text("encoding") == "FLOAT32" and isinstance(raw, bytes):
                return tuple(np.frombuffer(raw, "<f4").tolist())
        return None

    def _select(self, query: str) -> Iterator[Row]:
        return self._copy.select(query, self._segment)


def _memory(item: dict[str, Any]) -> dict[str, Any]:
    """Return a memory of mem0 as it stands in an export."""
    facts = _facts(item["rows"])
    known = ("hash", "user_id", "agent_id", "run_id", "actor_id", "role", "attributed_to")
    named = {name: facts.pop(name, None) for name in (*known, "created_at", "updated_at")}
    return {"id": item["id"], "memory": facts.pop(_MEM0_TEXT, None), **named, "metadata": facts}


def _facts(rows: list[Row]) -> dict[str, Any]:
    """Return document and metadata by key."""
    facts: dict[str, Any] = {}
    for row in rows:
        key = row.text("key")
        if key is None:
            continue
        value = next(
            (
                one
                for name in ("string_value", "int_value", "float_value")
                if (one := row.get(name)) is not None
            ),
            None,
        )
        flag = row.get("bool_value")
        facts[key] = bool(flag) if value is None and flag is not None else value
    return facts
