"""Functions of SQL that every engine has, each by another name."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

from hiermem_core.storage.sealing import Sealed, seal_of


class Each(GenericFunction[Any]):
    """The items of a JSON array, a row each, in a column `value`."""

    name = "json_each"
    package = "hiermem"
    inherit_cache = True


class Plain(GenericFunction[Any]):
    """An item as a value of SQL."""

    name = "plain"
    package = "hiermem"
    inherit_cache = True


class ByteLength(GenericFunction[int]):
    """How many bytes of UTF-8 a text has; of a sealed one, had."""

    name = "byte_length"
    package = "hiermem"
    type = BigInteger()
    inherit_cache = True


class Item(GenericFunction[Any]):
    """An item of an item, by its place, as a value of SQL."""

    name = "item"
    package = "hiermem"
    inherit_cache = True


@compiles(Each, "sqlite")
def _each_in_sqlite(element: Each, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


@compiles(Each, "postgresql")
def _each_in_postgres(element: Each, compiler: Any, **options: Any) -> str:
    return f"jsonb_array_elements(CAST({compiler.process(element.clauses, **options)} AS jsonb))"


@compiles(Plain, "sqlite")
def _plain_in_sqlite(element: Plain, compiler: Any, **options: Any) -> str:
    return str(compiler.process(element.clauses, **options))


@compiles(Plain, "postgresql")
def _plain_in_postgres(element: Plain, compiler: Any, **options: Any) -> str:
    return f"({compiler.process(element.clauses, **options)} #>> '{{}}'){_cast(element)}"


@compiles(Item, "sqlite")
def _item_in_sqlite(element: Item, compiler: Any, **options: Any) -> str:
    value, place = (compiler.process(one, **options) for one in element.clauses)
    return f"json_extract({value}, '$[{place}]')"


@compiles(Item, "postgresql")
def _item_in_postgres(element: Item, compiler: Any, **options: Any) -> str:
    value, place = (compiler.process(one, **options) for one in element.clauses)
    return f"({value} ->> {place}){_cast(element)}"


@compiles(ByteLength, "sqlite")
def _byte_length_in_sqlite(element: ByteLength, compiler: Any, **options: Any) -> str:
    text = compiler.process(element.clauses, **options)
    if _is_sealed(element, compiler):
        return f"CAST({text} AS INTEGER)"  # of what it begins with
    return f"length(CAST({text} AS BLOB))"


@compiles(ByteLength, "postgresql")
def _byte_length_in_postgres(element: ByteLength, compiler: Any, **options: Any) -> str:
    text = compiler.process(element.clauses, **options)
    if _is_sealed(element, compiler):
        return f"CAST(split_part({text}, ':', 1) AS bigint)"
    return f"octet_length({text})"


def _is_sealed(element: ByteLength, compiler: Any) -> bool:
    (column,) = element.clauses
    return isinstance(column.type, Sealed) and seal_of(compiler.dialect) is not None


def _cast(element: Any) -> str:
    return "::bigint" if isinstance(element.type, BigInteger) else ' COLLATE "C"'
