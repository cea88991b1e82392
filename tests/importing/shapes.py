"""Tables and records of other systems, made for tests."""

from __future__ import annotations

STORE = """CREATE TABLE memory_entries (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT,
value TEXT, namespace TEXT DEFAULT 'default', metadata TEXT, created_at INTEGER, updated_at INTEGER,
accessed_at INTEGER, access_count INTEGER DEFAULT 0, ttl INTEGER, expires_at INTEGER)"""
PUT = (
    "INSERT INTO memory_entries (key, value, namespace, created_at, updated_at) VALUES (?,?,?,?,?)"
)
PUT_EXPIRING = "INSERT INTO memory_entries (key, value, created_at, expires_at) VALUES (?,?,?,?)"
MIXED = (
    STORE,
    *(
        f"ALTER TABLE memory_entries ADD COLUMN {column}"
        for column in (
            "content TEXT DEFAULT ''",
            "type TEXT DEFAULT 'semantic'",
            "embedding TEXT",
            "tags TEXT",
            "owner_id TEXT",
            "embedding_model TEXT",
            "status TEXT DEFAULT 'active'",
        )
    ),
)
LATER = """CREATE TABLE memory_entries (id TEXT PRIMARY KEY, key TEXT NOT NULL, namespace TEXT,
content TEXT NOT NULL, type TEXT, embedding TEXT, embedding_model TEXT, tags TEXT, metadata TEXT,
owner_id TEXT, created_at INTEGER, updated_at INTEGER, expires_at INTEGER,
last_accessed_at INTEGER, access_count INTEGER DEFAULT 0, status TEXT DEFAULT 'active')"""
COLLECTIVE = """CREATE TABLE collective_memory (id TEXT PRIMARY KEY, swarm_id TEXT, key TEXT,
value TEXT, type TEXT, confidence REAL, created_by TEXT, created_at TEXT, accessed_at INTEGER)"""
PATTERNS = """CREATE TABLE patterns (id TEXT PRIMARY KEY, type TEXT, pattern_data TEXT,
confidence REAL, usage_count INTEGER, created_at TEXT, last_used TEXT)"""
LANGCHAIN = "CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id TEXT, message TEXT)"
LLAMAINDEX = """CREATE TABLE llama_index_memory (id INTEGER PRIMARY KEY, key TEXT,
timestamp BIGINT, role TEXT, status TEXT, data JSON)"""
MEM0 = """CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT,
new_memory TEXT, event TEXT, created_at DATETIME, updated_at DATETIME, is_deleted INTEGER,
actor_id TEXT, role TEXT)"""
MEM0_MESSAGES = """CREATE TABLE messages (id TEXT PRIMARY KEY, session_scope TEXT, role TEXT,
content TEXT, name TEXT, created_at DATETIME)"""
MEM0_PUT = "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)"

SECOND = 1796048835
"""2026-11-30T14:27:15Z."""


def state_entry(name, key, value, **more):
    moment = "2026-11-30T14:00:00.000Z"
    return {
        "id": name,
        "key": key,
        "value": value,
        "type": "knowledge",
        "tags": [],
        "createdAt": moment,
        "updatedAt": moment,
        "version": 1,
    } | more


def state(*entries, partition="default", **more):
    parts = [{"id": "p1", "name": partition, "entries": list(entries)}]
    return {"namespace": "default", "entries": list(entries), "partitions": parts} | more


def noted(name, **more):
    return {
        "id": name,
        "agentId": "a",
        "sessionId": "s",
        "type": "insight",
        "content": f"about {name}",
        "timestamp": "2025-06-01T12:34:56.789Z",
        "tags": [],
        "version": 1,
    } | more


def memory(name, text, **more):
    moment = "2026-11-30T07:00:00-08:00"
    return {"id": name, "memory": text, "created_at": moment, "updated_at": None} | more
