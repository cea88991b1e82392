"""Objects that a setting names, as `package.module:name`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hiermem_core.errors import ConfigurationError


def object_at(path: str, *, setting: str) -> Any:
    """Return the object of an import path.

    Raises:
        ConfigurationError: There is none.
    """
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except Exception as error:  # a module may raise anything while it is imported
        reason = f"{path!r} leads nowhere; name it as package.module:name"
        raise ConfigurationError(setting, reason) from error
