"""A pytest plugin that puts HierMem's classes in the place of LlamaIndex's own.

    LLAMAINDEX_SUBST=buffer,engine,chatstore,dbstore pytest -p llamaindex_subst FILES

- `buffer`: `ChatMemoryBuffer`, everywhere in the core;
- `engine`: `Memory`, in the chat engines;
- `chatstore`: `SimpleChatStore`, everywhere in the core;
- `dbstore`: `SQLAlchemyChatStore`, everywhere in the core.

Names are replaced before any test is collected, in modules and in default values. Where the plugin
for asyncio or the `openai` package is not installed, the tests run by anyio and without it.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import sys
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

CORE = "llama_index.core"
WHERE = ("memory", "chat_engine", "storage.chat_store", "agent.workflow")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "asyncio: runs in an event loop")
    for name in filter(None, os.environ.get("LLAMAINDEX_SUBST", "").split(",")):
        SUBSTITUTIONS[name]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if find_spec("pytest_asyncio") is None or getattr(sys.modules["pytest_asyncio"], "stub", False):
        for item in items:
            if inspect.iscoroutinefunction(getattr(item, "obj", None)):
                item.add_marker(pytest.mark.anyio)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def _stand_ins() -> None:
    """Give what upstream's tests import without needing it here."""
    if find_spec("pytest_asyncio") is None:
        asyncio_plugin: Any = types.ModuleType("pytest_asyncio")
        asyncio_plugin.fixture, asyncio_plugin.stub = pytest.fixture, True
        asyncio_plugin.__spec__ = importlib.machinery.ModuleSpec("pytest_asyncio", None)
        sys.modules["pytest_asyncio"] = asyncio_plugin
    if find_spec("openai") is None:
        openai: Any = types.ModuleType("openai")
        openai.api_key = openai.api_type = None
        sys.modules["openai"] = openai


def _core_modules(*under: str) -> list[types.ModuleType]:
    """Return the modules of these parts of the core, imported."""
    for part in under:
        package = importlib.import_module(f"{CORE}.{part}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(found.name)
    names = tuple(f"{CORE}.{part}" for part in under)
    return [module for name, module in list(sys.modules.items()) if name.startswith(names)]


def _replace(original: Any, new: Any, modules: list[types.ModuleType]) -> None:
    for module in modules:
        for name, value in list(vars(module).items()):
            if value is original:
                setattr(module, name, new)
            elif inspect.isclass(value) and value.__module__ == module.__name__:
                _replace_defaults(value, original, new)


def _replace_defaults(kind: type, original: Any, new: Any) -> None:
    for value in vars(kind).values():
        function = inspect.unwrap(getattr(value, "__func__", value))
        if inspect.isfunction(function) and function.__defaults__:
            function.__defaults__ = tuple(
                new if default is original else default for default in function.__defaults__
            )


def _buffer() -> None:
    from llama_index.core.memory import ChatMemoryBuffer

    from llamaindex_hiermem import HierMemChatMemoryBuffer

    _replace(ChatMemoryBuffer, HierMemChatMemoryBuffer, _core_modules(*WHERE))


def _engine() -> None:
    from llama_index.core.memory import Memory

    from llamaindex_hiermem import HierMemChatMemoryBuffer

    _replace(Memory, HierMemChatMemoryBuffer, _core_modules("chat_engine"))


def _chat_store() -> None:
    from llama_index.core.storage.chat_store import SimpleChatStore

    from llamaindex_hiermem import HierMemChatStore

    class Saved(HierMemChatStore):
        """The store in this process, with the ways of upstream's to save it to a file."""

        def persist(self, persist_path: str, fs: Any = None) -> None:
            text = json.dumps(self.to_dict(), ensure_ascii=False)
            Path(persist_path).write_text(text, encoding="utf-8")

        @classmethod
        def from_persist_path(cls, persist_path: str, fs: Any = None) -> Any:
            return cls.from_dict(json.loads(Path(persist_path).read_text(encoding="utf-8")))

    _replace(SimpleChatStore, Saved, _core_modules("storage.chat_store", "memory"))


def _db_store() -> None:
    from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

    from llamaindex_hiermem import HierMemDBChatStore

    class Addressed(HierMemDBChatStore):
        """The store made by a table and the address of a database, as upstream's is."""

        def __init__(
            self, table_name: str = "", async_database_uri: str | None = None, **others: Any
        ) -> None:
            place = (async_database_uri or "").partition(":///")[2]
            if place in {"", ":memory:"}:
                super().__init__(tenant=others.get("tenant"))
            else:
                super().__init__(location=f"{place}.hiermem.db", tenant_id=table_name)

    _replace(SQLAlchemyChatStore, Addressed, _core_modules("storage.chat_store", "memory"))


SUBSTITUTIONS = {
    "buffer": _buffer,
    "engine": _engine,
    "chatstore": _chat_store,
    "dbstore": _db_store,
}

_stand_ins()
