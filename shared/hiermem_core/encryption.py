"""Encryption at rest: a codec on Fernet, of the `cryptography` package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hiermem_core.errors import ConfigurationError, InvalidInputError, MissingExtraError
from hiermem_core.protocols import Codec

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

    from hiermem_core.settings import HierMemSettings


class FernetCodec:
    """Encrypt and authenticate what is kept by Fernet: AES-128-CBC and HMAC-SHA256.

    To change keys, give the new one before the old one: what is written from then on is by the new
    one, and what is there is read by whichever made it. The old one may go when nothing is left
    that it made, which a new location has: `hiermem move`, or export and import.

    Args:
        keys: As `generate_key` makes them; the first encrypts, and all decrypt.

    Raises:
        ConfigurationError: There is no key, or one is none of Fernet's.
        MissingExtraError: The extra `encryption` is not installed.
    """

    def __init__(self, *keys: str) -> None:
        self._fernet = _fernet_of(keys)
        self._count = len(keys)

    @staticmethod
    def generate_key() -> str:
        """Return a new key. Keep it apart from what it encrypts: without it nothing is readable.

        Raises:
            MissingExtraError: The extra `encryption` is not installed.
        """
        try:
            from cryptography.fernet import Fernet  # noqa: PLC0415 - of an extra
        except ImportError:
            raise MissingExtraError("encryption", feature="FernetCodec") from None
        return Fernet.generate_key().decode()

    def encode(self, text: str) -> str:
        """Return a text encrypted."""
        return self._fernet.encrypt(text.encode()).decode()

    def decode(self, text: str) -> str:
        """Return the text of an encrypted one.

        Raises:
            cryptography.fernet.InvalidToken: None of the keys made it, or it was changed.
        """
        return self._fernet.decrypt(text.encode()).decode()

    def __repr__(self) -> str:
        """Tell how many keys there are; never one of them."""
        return f"FernetCodec({self._count} key{'' if self._count == 1 else 's'})"


def codec_in_use(codec: Codec | None, settings: HierMemSettings) -> Codec | None:
    """Return the codec that was given, else the one that the settings have a key for.

    Raises:
        InvalidInputError: What was given is none.
    """
    if codec is None and settings.encryption_key is not None:
        return FernetCodec(*settings.encryption_key.split(","))
    if codec is not None and not isinstance(codec, Codec):
        raise InvalidInputError("codec", "must have the methods encode and decode")
    return codec


def _fernet_of(keys: tuple[str, ...]) -> MultiFernet:
    try:
        from cryptography.fernet import Fernet, MultiFernet  # noqa: PLC0415 - of an extra
    except ImportError:
        raise MissingExtraError("encryption", feature="FernetCodec") from None
    if not keys:
        raise ConfigurationError("codec", "needs a key; make one by FernetCodec.generate_key()")
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except (TypeError, ValueError):
        reason = "a key is none of Fernet's; make one by FernetCodec.generate_key()"
        raise ConfigurationError("codec", reason) from None
