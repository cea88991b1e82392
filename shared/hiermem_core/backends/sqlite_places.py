"""Places in a JSON text column, and what stands there, for SQLite.

`document -> path` gives a value as it is written, its token. Text, booleans, null and numbers are
equal if their tokens are, of which a number has several (`1`, `1.0`); lists and objects are
compared place by place. A path quotes a key as JSON text does and is found by comparing it with the
stored text. SQLite ends a quoted key at the first quotation mark, even an escaped one, so where a
key has one, document and path are both rewritten to the mark's code point first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sql

from hiermem_core.backends.json_numbers import around, integer_equal_to, number_tokens
from hiermem_core.models.plain import dump_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, TableValuedAlias

    Condition = ColumnElement[bool]

_MARK = '"'
_REWRITTEN = (("\\\\", "\\u005c"), ('\\"', "\\u0022"))
_TIGHTEST = 100


def is_not_true(condition: Condition) -> Condition:
    """Return the plain negation: true where a condition is false or NULL."""
    return condition.is_not(sql.true())


def listed(values: Iterable[Any]) -> sql.Select[Any]:
    """Return a subquery of scalars, all in one bound parameter."""
    return sql.select(_each(sql.literal(dump_json(list(values)))).c.value)


def path_to(field: str) -> str:
    """Return the path of a top-level key without a quotation mark."""
    return "$" + _step(field, is_rewritten=False)


def place_of(column: ColumnElement[str], field: str, operand: Any) -> Place:
    """Return the place of a top-level key whose value is compared with `operand`."""
    is_rewritten = any(_MARK in key for key in (field, *_keys(operand)))
    document: ColumnElement[Any] = column
    if is_rewritten:
        for plain, rewritten in _REWRITTEN:
            document = sql.func.replace(document, plain, rewritten)
    return Place(document, "$" + _step(field, is_rewritten=is_rewritten), is_rewritten=is_rewritten)


@dataclass(frozen=True, slots=True)
class Place:
    """A path in a document. Conditions on it are true, or else false or NULL.

    Attributes:
        is_rewritten: Document and path have no escaped quotation mark.
    """

    document: ColumnElement[Any]
    path: str
    is_rewritten: bool

    @property
    def value(self) -> ColumnElement[Any]:
        """What stands here, as a value of SQL: booleans as numbers, null as NULL."""
        return sql.func.json_extract(self.document, self.path)

    @property
    def kind(self) -> ColumnElement[str]:
        """Which of SQLite's names for JSON types it has; NULL if nothing stands here."""
        return _kind(self.document, self.path)

    def is_one_of(self, scalars: Iterable[Any]) -> Condition:
        """Return whether one of these scalars stands here."""
        return self.is_written([token for scalar in scalars for token in self._tokens(scalar)])

    def is_written(self, tokens: Sequence[str]) -> Condition:
        """Return whether one of these tokens stands here."""
        return _is_written(_token(self.document, self.path), tokens)

    def holds(self, wanted: Any, *, is_subset: bool = False) -> Condition:
        """Return whether this list or object stands here, or with `is_subset` one that has it."""
        nodes = list(_walk(wanted, self.path, is_subset=is_subset, is_rewritten=self.is_rewritten))
        kinds = {node.path: [node.kind, node.size] for node in nodes if node.kind}
        leaves = {node.path: self._tokens(node.scalar) for node in nodes if not node.kind}
        if is_subset:  # the kind of the outermost is all there is to ask of it
            del kinds[self.path]
        return sql.and_(
            self.kind == _kind_of(wanted),
            *_none_fails(kinds, self._lacks_kind),
            *_none_fails(leaves, self._lacks_token),
        )

    def contains(self, wanted: Any) -> Condition:
        """Return whether a list stands here with an item that is the wanted value."""
        items = _each(self.document, self.path)
        found = sql.select(sql.literal(1)).select_from(items)
        found = found.where(self._is_item(items, wanted))
        return sql.and_(self.kind == "array", sql.exists(found))

    def _tokens(self, scalar: Any) -> tuple[str, ...]:
        if isinstance(scalar, int | float) and not isinstance(scalar, bool):
            return number_tokens(scalar)
        return (_json(scalar, is_rewritten=self.is_rewritten),)

    def _lacks_kind(self, node: TableValuedAlias) -> Condition:
        items = _each(self.document, node.c.key)
        count = sql.select(sql.func.count()).select_from(items).scalar_subquery()
        kind = _kind(self.document, node.c.key)
        return sql.or_(
            kind.is_distinct_from(sql.func.json_extract(node.c.value, "$[0]")),
            sql.func.json_extract(node.c.value, "$[1]") != count,
        )

    def _lacks_token(self, node: TableValuedAlias) -> Condition:
        token = sql.func.coalesce(_token(self.document, node.c.key), "")
        return token.not_in(sql.select(_each(node.c.value).c.value))

    def _is_item(self, items: TableValuedAlias, wanted: Any) -> Condition:
        kind, value = items.c.type, items.c.value
        if isinstance(wanted, list | dict):
            # Nothing but JSON may be read as JSON.
            document = sql.case({_kind_of(wanted): value}, value=kind)
            return Place(document, "$", is_rewritten=self.is_rewritten).holds(wanted)
        if isinstance(wanted, str):
            return sql.and_(kind == "text", value == wanted)
        if wanted is None or isinstance(wanted, bool):
            return kind == dump_json(wanted)
        integer = integer_equal_to(wanted)
        whole = sql.false() if integer is None else value == integer
        return sql.case({"real": self._is_float_item(items, wanted), "integer": whole}, value=kind)

    def _is_float_item(self, items: TableValuedAlias, wanted: float) -> Condition:
        """Return whether an item is a float, by its token only where it is near.

        Only the items of a list have an integer for a key, and a token that is found by it.
        """
        key = items.c.key
        path = sql.literal(f"{self.path}[").concat(key).concat("]")
        is_near = sql.and_(
            items.c.value.between(*around(wanted)), sql.func.typeof(key) == "integer"
        )
        is_it = _is_written(_token(self.document, path), number_tokens(wanted))
        # CASE, for where its value is needed SQLite computes both sides of an AND.
        return sql.case((is_near, is_it))


@dataclass(frozen=True, slots=True)
class _Node:
    """A value inside an operand, by its path. Scalars have no kind.

    Attributes:
        size: How many items a list or object must have; `None`: any number.
    """

    path: str
    kind: str | None = None
    size: int | None = None
    scalar: Any = None


def _walk(value: Any, path: str, *, is_subset: bool, is_rewritten: bool) -> Iterator[_Node]:
    if isinstance(value, dict):
        yield _Node(path, _kind_of(value), None if is_subset else len(value))
        for key, item in value.items():
            below = path + _step(key, is_rewritten=is_rewritten)
            yield from _walk(item, below, is_subset=is_subset, is_rewritten=is_rewritten)
    elif isinstance(value, list):
        yield _Node(path, _kind_of(value), len(value))
        for at, item in enumerate(value):
            below = f"{path}[{at}]"
            yield from _walk(item, below, is_subset=False, is_rewritten=is_rewritten)
    else:
        yield _Node(path, scalar=value)


def _none_fails(
    nodes: Mapping[str, Any], fails: Callable[[TableValuedAlias], Condition]
) -> Iterator[Condition]:
    """Yield the condition that no node, by its path, fails, unless there is no node."""
    if nodes:
        node = _each(sql.literal(dump_json(nodes)))
        failing = sql.select(sql.literal(1)).select_from(node)
        yield ~sql.exists(failing.where(fails(node)))


def _token(document: ColumnElement[Any], path: str | ColumnElement[Any]) -> ColumnElement[str]:
    """Return what stands at a path, as written; NULL if nothing does."""
    return document.op("->", precedence=_TIGHTEST, return_type=sql.Text())(path)


def _kind(document: ColumnElement[Any], path: str | ColumnElement[Any]) -> ColumnElement[str]:
    return sql.func.json_type(document, path, type_=sql.Text())


def _is_written(token: ColumnElement[str], tokens: Sequence[str]) -> Condition:
    return token == tokens[0] if len(tokens) == 1 else token.in_(listed(tokens))


def _kind_of(container: Any) -> str:
    return "object" if isinstance(container, dict) else "array"


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _keys(item)


def _step(key: str, *, is_rewritten: bool) -> str:
    return "." + _json(key, is_rewritten=is_rewritten)


def _json(value: Any, *, is_rewritten: bool) -> str:
    text = dump_json(value)
    for plain, rewritten in _REWRITTEN if is_rewritten else ():
        text = text.replace(plain, rewritten)
    return text


def _each(*source: Any) -> TableValuedAlias:
    return sql.func.json_each(*source).table_valued("key", "value", "type").alias()
