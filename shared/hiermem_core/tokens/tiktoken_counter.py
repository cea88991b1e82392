"""Exact counts by tiktoken, from rank files that are at hand; never by a download unasked."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import logging
import os
import types
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from hiermem_core.errors import BackendUnavailableError, ConfigurationError
from hiermem_core.tokens.counters import ApproximateCounter, count_turn_with, scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tiktoken import Encoding

    from hiermem_core.models.turns import TurnDraft
    from hiermem_core.protocols import TokenCounter

DEFAULT_ENCODING = "o200k_base"

PIECE_CHARACTERS = 20_000
"""Longest text handed to tiktoken at once: a million spaces make it panic. Cutting at white space
over-counts by at most 0.01 %."""

_LOOK_BACK = 1_000
FETCH_SECONDS = 60.0

_logger = logging.getLogger(__name__)


class RanksNotFoundError(LookupError):
    """No local folder holds the rank file of an encoding."""


class TiktokenCounter:
    """Count with a tiktoken encoding.

    The vocabulary is read at the first count, which may take half a second.

    Args:
        encoding: Name of the encoding.
        folders: Where rank files may lie, in tiktoken's own cache layout.
        factor: Multiplies every count, for models with another vocabulary (1.15 to 1.25).

    Raises:
        RanksNotFoundError: No folder has the rank file.
    """

    def __init__(self, encoding: str, *, folders: Sequence[Path], factor: float = 1.0) -> None:
        self.id = encoding if factor == 1 else f"{encoding}*{factor:g}"
        self.exact = factor == 1
        self._factor = factor
        self._ranks = find_ranks(encoding, folders)
        self._encoding = encoding

    def count(self, text: str) -> int:
        """Return the tokens of a text; every text has a count."""
        encode = load_encoding(self._encoding, self._ranks).encode_ordinary
        return scaled(sum(len(encode(piece)) for piece in pieces(text)), self._factor)

    def count_turn(self, turn: TurnDraft) -> int:
        """Return the tokens of a turn."""
        return count_turn_with(self.count, turn)


def default_counter(
    encoding: str = DEFAULT_ENCODING,
    *,
    cache_dir: Path | None = None,
    factor: float = 1.0,
    download: bool = False,
) -> TokenCounter:
    """Return exact counting where the ranks are at hand, else the estimator, with one log line.

    Args:
        download: Fetch missing ranks first. Without it nothing is ever fetched.
    """
    folders = rank_folders(cache_dir)
    try:
        return TiktokenCounter(encoding, folders=folders, factor=factor)
    except RanksNotFoundError:
        if download:
            fetch_ranks(encoding, folders[0])
            return TiktokenCounter(encoding, folders=folders, factor=factor)
    _logger.info("no ranks of %s at hand; token counts are estimates", encoding)
    return ApproximateCounter(factor=factor)


def fetch_ranks(encoding: str, folder: Path, *, open_url: Callable[..., Any] | None = None) -> Path:
    """Fetch the rank file of an encoding from tiktoken's own address, and return its path.

    Raises:
        BackendUnavailableError: It cannot be fetched, or came damaged.
        ConfigurationError: tiktoken knows no such encoding.
    """
    from urllib.request import urlopen  # noqa: PLC0415 - paid for by those who fetch

    address, expected_hash = _address(encoding)
    try:
        with (open_url or urlopen)(address, timeout=FETCH_SECONDS) as answer:
            data = answer.read()
    except OSError as error:
        reason = f"{type(error).__name__}; try again, or copy its rank file to {folder}"
        raise BackendUnavailableError(f"fetching {encoding}", reason) from error
    if hashlib.sha256(data).hexdigest() != expected_hash:
        raise BackendUnavailableError(f"fetching {encoding}", "it came damaged; fetch it again")
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / rank_file_name(address)
    unfinished = target.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(data)
    unfinished.replace(target)
    return target


def rank_folders(cache_dir: Path | None) -> list[Path]:
    """Return the folders that may hold rank files: given or HierMem's own, then llama-index-core's.

    Fetched files go to the first.
    """
    own = cache_dir or platformdirs.user_cache_path("hiermem") / "tiktoken"
    try:
        spec = importlib.util.find_spec("llama_index")
    except (ImportError, ValueError):
        spec = None
    bases = (spec.submodule_search_locations if spec else None) or ()
    return [own, *(Path(base) / "core" / "_static" / "tiktoken_cache" for base in bases)]


def find_ranks(encoding: str, folders: Sequence[Path]) -> Path:
    """Return the rank file of an encoding.

    Raises:
        RanksNotFoundError: No folder has it.
        ConfigurationError: tiktoken knows no such encoding.
    """
    name = rank_file_name(_address(encoding)[0])
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise RanksNotFoundError(encoding)


def rank_file_name(address: str) -> str:
    """Return the name under which tiktoken caches the file of an address."""
    return hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()


@lru_cache(maxsize=8)
def _address(encoding: str) -> tuple[str, str | None]:
    asked: list[tuple[str, str | None]] = []

    def note(address: str, expected_hash: str | None = None) -> dict[bytes, int]:
        asked.append((address, expected_hash))
        return {}

    _construct(encoding, note)
    return asked[0]


@lru_cache(maxsize=8)
def load_encoding(encoding: str, ranks: Path) -> Encoding:
    """Return the encoding, read from its rank file once per process.

    No lock is held meanwhile, which a forked child would inherit: two threads may read it twice.

    Raises:
        ConfigurationError: The file is not the one tiktoken expects.
    """
    from tiktoken import Encoding  # noqa: PLC0415 - paid for at the first count only

    def read(address: str, expected_hash: str | None = None) -> dict[bytes, int]:
        del address
        data = ranks.read_bytes()
        if expected_hash and hashlib.sha256(data).hexdigest() != expected_hash:
            raise ConfigurationError("tiktoken_cache_dir", f"{ranks.name} is damaged; remove it")
        return dict(_parse_ranks(data))

    return Encoding(**_construct(encoding, read))


def _parse_ranks(data: bytes) -> Iterator[tuple[bytes, int]]:
    for line in data.splitlines():
        if line:
            token, rank = line.split()
            yield base64.b64decode(token), int(rank)


def _construct(encoding: str, load_ranks: Any) -> dict[str, Any]:
    """Run tiktoken's own constructor of an encoding with another way to load its ranks."""
    from tiktoken_ext import openai_public  # noqa: PLC0415 - paid for when counting begins

    try:
        constructor = openai_public.ENCODING_CONSTRUCTORS[encoding]
    except KeyError:
        raise ConfigurationError("encoding", f"tiktoken knows no {encoding!r}") from None
    scope = {**vars(openai_public), "load_tiktoken_bpe": load_ranks}
    scope |= {name: _rebound(maker, scope) for name, maker in _makers(openai_public).items()}
    result: dict[str, Any] = _rebound(constructor, scope)()
    return result


def _makers(module: types.ModuleType) -> dict[str, types.FunctionType]:
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__
    }


def _rebound(function: types.FunctionType, scope: dict[str, Any]) -> Any:
    return types.FunctionType(function.__code__, scope, function.__name__)


def pieces(text: str) -> Iterator[str]:
    """Yield `text` in encodable pieces of at most 20,000 characters, cut at white space."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        end = _cut(text, start + PIECE_CHARACTERS)
        yield text[start:end]
        start = end
    yield text[start:]


def _cut(text: str, end: int) -> int:
    spaces = (text.rfind(space, end - _LOOK_BACK, end) for space in (" ", "\n", "\t"))
    return max((space for space in spaces if space > 0), default=end)
