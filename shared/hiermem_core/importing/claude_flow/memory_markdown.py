"""The Markdown tree of `claude-flow/memory-manager`: an index, and a rendering of each entry.

The renderings are read only for what the index lacks. Their content may imitate headings: the
first Content heading begins it, and only the last fences of the file are metadata and context.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hiermem_core.importing.claude_flow.memory_manager import noted
from hiermem_core.importing.reading import read_each
from hiermem_core.importing.records import RENDERING, RecordError
from hiermem_core.models.plain import load_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

_TITLE = re.compile(r"\A\s*# Memory Entry: (.+)")
_BOLD = re.compile(r"^\*\*(\w+)\*\*: ?(.*)$", re.MULTILINE)
_CONTENT = re.compile(r"^## Content[ \t]*\n", re.MULTILINE)
_FENCE = re.compile(r"\n## (Context|Metadata)\n+```json\n((?:(?!\n```).)*)\n```\s*\Z", re.DOTALL)
_NAMES = {
    "Agent": "agentId",
    "Session": "sessionId",
    "Type": "type",
    "Timestamp": "timestamp",
    "Version": "version",
    "Parent": "parentId",
    "Tags": "tags",
}


def read_renderings(
    texts: Iterable[tuple[str, str]], known: set[str], reading: Reading
) -> Iterator[Record]:
    """Yield the records of renderings whose ids are not known; `texts` are path and text."""
    for path, text in texts:
        title = _TITLE.match(text)
        if title is None or title[1].strip() not in known:
            yield from read_each(
                [(path, text)], lambda one: noted(parsed(one), reading, precedence=RENDERING)
            )


def parsed(text: str) -> tuple[str, dict[str, Any]]:
    """Return id and fields of a rendering, named as in the index. Pure.

    Raises:
        RecordError: It is none.
    """
    text = text.replace("\r\n", "\n")
    title, begin = _TITLE.match(text), _CONTENT.search(text)
    if title is None or begin is None:
        raise RecordError("invalid_record", "is no rendering of an entry; leave it out")
    name = title[1].strip()
    fields = {
        _NAMES[bold[1]]: bold[2].strip()
        for bold in _BOLD.finditer(text, 0, begin.start())
        if bold[1] in _NAMES
    }
    content, fences = _without_fences(text[begin.end() :])
    return name, {"id": name, "content": content.strip("\n")} | _typed(fields) | fences


def _typed(fields: dict[str, str]) -> dict[str, Any]:
    typed: dict[str, Any] = dict(fields)
    if "tags" in fields:
        typed["tags"] = [tag for tag in fields["tags"].split(", ") if tag]
    if fields.get("version", "").isdigit():
        typed["version"] = int(fields["version"])
    return typed


def _without_fences(body: str) -> tuple[str, dict[str, Any]]:
    """Return a body without the fences at its end, and what they hold; at most one of each."""
    found: dict[str, Any] = {}
    for _ in ("metadata", "context"):
        fence = _FENCE.search("\n" + body)
        if fence is None or fence[1].lower() in found or "context" in found:
            break
        try:
            found[fence[1].lower()] = load_json(fence[2])
        except ValueError:
            break
        body = body[: max(0, fence.start() - 1)]
    return body, found
