"""The CSV, XML and YAML exports of `claude-flow/advanced`.

None is written as its format asks: commas of the CSV stand unquoted, so values are found by
parsing; the YAML holds JSON values. Read as what was written.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import ParseError, fromstring

from hiermem_core.importing.claude_flow.advanced import advanced_record
from hiermem_core.importing.reading import read_each
from hiermem_core.importing.records import RecordError
from hiermem_core.models.plain import load_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from xml.etree.ElementTree import Element

    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record

CSV_HEAD = "key,value,type,namespace,tags"
_YAML_HEAD = "memory:"
_YAML_FIELD = re.compile(r"^(?:  - |    )(\w+): (.*)$")
_COLUMNS_AFTER = len(("", "type", "namespace", "tags"))
_DECODER = json.JSONDecoder()
_TEXT_FIELDS = ("key", "type", "namespace")


def reader_of(text: str) -> Callable[[str, Reading], Iterator[Record]] | None:
    """Return what reads a text, if it is one of these exports."""
    head = text.lstrip().partition("\n")[0].rstrip()
    if head == CSV_HEAD:
        return read_csv
    if head == _YAML_HEAD:
        return read_yaml
    if head.startswith("<memory") or (head.startswith("<?xml") and "<memory" in text):
        return read_xml
    return None


def read_csv(text: str, reading: Reading) -> Iterator[Record]:
    """Yield the records of the CSV export."""
    lines = enumerate(text.lstrip().splitlines()[1:], 2)
    items = ((f"line {number}", line) for number, line in lines if line.strip())
    yield from read_each(items, lambda line: advanced_record(csv_fields(line), reading))


def csv_fields(line: str) -> dict[str, Any]:
    """Return the fields of a line. Pure.

    Its value begins after the first comma at which JSON followed by a comma parses.

    Raises:
        RecordError: There is no value.
    """
    for comma in (place for place, one in enumerate(line) if one == ","):
        try:
            value, end = _DECODER.raw_decode(line, comma + 1)
        except (ValueError, RecursionError):
            continue
        rest = line[end:].split(",")
        if len(rest) >= _COLUMNS_AFTER and not rest[0]:
            return {
                "key": line[:comma],
                "value": value,
                "type": rest[1],
                "namespace": ",".join(rest[2:-1]),
                "tags": [tag for tag in rest[-1].split(";") if tag],
            }
    raise RecordError("invalid_record", "holds no value; mend the line")


def read_yaml(text: str, reading: Reading) -> Iterator[Record]:
    """Yield the records of the YAML export."""
    blocks: list[tuple[int, list[str]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("  - "):
            blocks.append((number, [line]))
        elif blocks and line.strip():
            blocks[-1][1].append(line)
    items = ((f"line {number}", block) for number, block in blocks)
    yield from read_each(items, lambda block: advanced_record(_yaml_fields(block), reading))


def _yaml_fields(lines: list[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for line in lines:
        field = _YAML_FIELD.match(line)
        value = None if field is None else _json(field[2])
        if field is None or value is None:
            raise RecordError("invalid_record", "has a line that cannot be read; mend it")
        fields[field[1]] = value[0]
    return fields


def read_xml(text: str, reading: Reading) -> Iterator[Record]:
    """Yield the records of the XML export; one with a document type is refused."""
    try:
        root = _xml(text)
    except (ParseError, ValueError) as error:
        detail = f"is no XML that is read here ({type(error).__name__}); mend it"

        def refuse(_: Any) -> Record:
            raise RecordError("invalid_record", detail)

        yield from read_each([("line 1", None)], refuse)
        return
    items = ((f"[{place}]", one) for place, one in enumerate(root.iter("entry")))
    yield from read_each(items, lambda one: advanced_record(_xml_fields(one), reading))


def _xml(text: str) -> Element:
    if "<!DOCTYPE" in text.partition("<memory")[0]:
        raise ValueError("a document type is refused")
    return fromstring(text.encode("utf-8", "replace"))  # noqa: S314 - what is dangerous needs one


def _xml_fields(one: Element) -> dict[str, Any]:
    fields: dict[str, Any] = {name: one.findtext(name) for name in _TEXT_FIELDS}
    value = _json(one.findtext("value") or "")
    if value is None:
        raise RecordError("invalid_record", "its value is no JSON; mend it")
    tags = [tag for tag in (one.findtext("tags") or "").split(",") if tag]
    return {**fields, "value": value[0], "tags": tags}


def _json(text: str) -> tuple[Any] | None:
    try:
        return (load_json(text),)
    except ValueError:
        return None
