"""Words: what a text puts into a keyword index, and what a question looks up there. Pure.

The index is an FTS5 table `(scope, body)` with `TOKENIZER`. A row's scope holds the tokens of its
tenant and thread or namespace; its body is a `keyword_body`. BM25 gives the scope no weight:

    CREATE VIRTUAL TABLE words USING fts5(scope, body, tokenize="...")
    SELECT rowid, -bm25(words, 0.0, 1.0) FROM words WHERE words MATCH ? ORDER BY rank LIMIT 200
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import date

MAX_QUERY_WORDS = 64
"""A longer question gives as many of its first as of its last words: there it says what it asks."""

_COMMON = (
    "a about after again all also am an and any anyone anything are as at be because been before "
    "being both but by can could did do does doing during each either else ever every few for from "
    "further had has have having he her here hers him his how i if in into is it its just me more "
    "most much my no nor not of off on once only or other our out over own same she should so some "
    "such than that the their them then there these they this those through to too under until up "
    "us very was we were what when where which while who whom whose why will with would you your "
    "d m s t ll re ve don aren couldn didn doesn hadn hasn haven isn shouldn wasn weren wouldn"
)

STOP_WORDS = frozenset(_COMMON.split())
"""Too common in English to tell texts apart; the last ones are what contractions leave behind."""

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)

# Scripts without spaces between words. Korean has them, but particles stick to its words.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\u30fc\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_RUN = regex.compile(rf"[[{_UNSPACED}]&&[\p{{L}}\p{{M}}]]+", regex.VERSION1)
_WORD = regex.compile(r"[\p{L}\p{N}\p{M}\p{Co}]+")
_MARK = regex.compile(r"\p{M}+")
_ACCENT = regex.compile("[\u0300-\u036f]+")
_OTHER_WIDTH = regex.compile("[\uff00-\uffef]+")
_POSSESSIVE = regex.compile(r"(?<=\p{L})['\u2019][sS](?!\p{L})")
_ASKING = regex.compile(
    r"[?\uff1f\u061f][!\uff01]*+[^\p{L}\p{N}?\uff1f\u061f.!\u2026\u3002\uff01]*+$"
)

# Few tokenizers ever take more tokens than bytes, and a small embedder reads 256 tokens.
_MAX_PREVIOUS_BYTES, _LONG_WORD = 200, 30

# As in FTS5.
K1, B, LEAST_IDF = 1.2, 0.75, 1e-6


def keyword_body(text: str) -> str:
    """Return what of `text` goes into the keyword index.

    Runs of scripts without spaces become pairs of neighbouring letters and the last letter, set
    apart from what surrounds them; everything else stays as it is.
    """
    return _spread(text, closing=True)


def query_words(text: str) -> list[str]:
    """Return the distinct words that a keyword search for `text` looks up, in their order.

    No character is an operator. Possessive endings and stop words are left out, unless nothing
    else is there; unspaced runs become pairs of letters. At most `MAX_QUERY_WORDS`.
    """
    found = _WORD.findall(_spread(_POSSESSIVE.sub("", text), closing=False))
    words: dict[str, str] = {}
    for word in found:
        words.setdefault(word.lower(), word)
    telling = [word for key, word in words.items() if key not in STOP_WORDS] or [*words.values()]
    half = MAX_QUERY_WORDS // 2
    return telling if len(telling) <= MAX_QUERY_WORDS else telling[:half] + telling[-half:]


def match_expression(words: Iterable[str], scope: Sequence[str]) -> str | None:
    """Return the FTS5 expression for rows that have all tokens of `scope` and any of `words`.

    Args:
        words: Of `query_words`.
        scope: Tokens of ASCII letters and digits.

    Returns:
        None when there is no word, as then nothing can match.
    """
    terms = " OR ".join(map(_term, words))
    if not terms:
        return None
    within = " AND ".join(map(_quoted, scope))
    return f"scope : ({within}) AND body : ({terms})" if within else f"body : ({terms})"


def plain_words(text: str) -> list[str]:
    """Return the words of `text` as `bm25` compares them: without case and accents."""
    return [_plain(word) for word in _WORD.findall(keyword_body(text))]


def bm25(words: Iterable[str], documents: Sequence[Sequence[str]]) -> list[float]:
    """Return how well each document answers `words`, by Okapi BM25; 0 without any of them.

    With k1, b and the idf of FTS5's `bm25()` (https://sqlite.org/fts5.html#the_bm25_function).

    Args:
        words: Of `query_words`.
        documents: Of `plain_words`.
    """
    scores = [0.0] * len(documents)
    average = sum(map(len, documents)) / max(1, len(documents)) or 1.0
    norms = [K1 * (1 - B + B * len(document) / average) for document in documents]
    counts = [Counter(document) for document in documents]
    for word in dict.fromkeys(map(_plain, words)):
        found = [_occurrences(word, count) for count in counts]
        rows = len(found) - found.count(0)
        idf = max(LEAST_IDF, math.log((len(found) - rows + 0.5) / (rows + 0.5)))
        for row, times in enumerate(found):
            scores[row] += idf * times * (K1 + 1) / (times + norms[row])
    return scores


def turn_body(
    text: str, *, author: str | None, created_at: date, captions: Sequence[str] = ()
) -> str:
    """Return the keyword body of a turn: its day, author, text and attachments' captions."""
    day = f"[{created_at.day} {_MONTHS[created_at.month - 1]} {created_at.year}] "
    return keyword_body(day + said(text, author=author, captions=captions))


def said(text: str, *, author: str | None, captions: Sequence[str] = ()) -> str:
    """Return `Author: text [caption; caption]`, without what is missing."""
    spoken = f"{author}: {text}" if author else text
    return f"{spoken} [{'; '.join(captions)}]" if captions else spoken


def word_count(text: str) -> int:
    """Return how many words `text` has; two letters of an unspaced script count as one."""
    letters = sum(len(_MARK.sub("", run)) for run in _RUN.findall(text))
    return len(_WORD.findall(_RUN.sub(" ", text))) + (letters + 1) // 2


def is_question(text: str) -> bool:
    """Tell whether `text` ends by asking."""
    return _ASKING.search(text) is not None


def is_unspaced(text: str) -> bool:
    """Tell whether `text` has letters of a script without spaces between words."""
    return not text.isascii() and _RUN.search(text) is not None


def turn_embedding_text(
    text: str, *, author: str | None, previous: str | None, captions: Sequence[str] = ()
) -> str:
    """Return what to embed for a turn: the turn before it, cut to its end, then what it says.

    Args:
        previous: What the turn before it in its part says, by `said`.
    """
    spoken = said(text, author=author, captions=captions)
    return f"{_end_of(previous)}\n{spoken}" if previous else spoken


def _end_of(text: str) -> str:
    """Return the last words of `text`, at most `_MAX_PREVIOUS_BYTES` of UTF-8."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= _MAX_PREVIOUS_BYTES:
        return text
    end = encoded[-_MAX_PREVIOUS_BYTES:].decode("utf-8", "ignore")
    cut_word, _, words = end.partition(" ")
    return words if len(cut_word) < _LONG_WORD else end


def _spread(text: str, *, closing: bool) -> str:
    """Return `text` with its unspaced runs as pairs of letters, `closing` with the last alone."""
    if text.isascii():
        return text
    return _RUN.sub(lambda run: f" {' '.join(_pairs(run[0], closing=closing))} ", _composed(text))


def _pairs(run: str, *, closing: bool) -> list[str]:
    """Return each letter of `run` with the next; `closing` (or a run of one) adds the last."""
    letters = _MARK.sub("", run)
    pairs = [first + second for first, second in pairwise(letters)]
    return pairs + [letters[-1:]] * (closing or not pairs)


def _composed(text: str) -> str:
    """Return `text` with composed letters, and full and half width forms in the usual width."""
    narrowed = _OTHER_WIDTH.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)
    return unicodedata.normalize("NFC", narrowed)


def _term(word: str) -> str:
    """Return the FTS5 term of `word`; a lone unspaced letter finds all pairs it begins."""
    return f"{_quoted(word)}*" if is_lone(word) else _quoted(word)


def _quoted(word: str) -> str:
    """Return `word` as an FTS5 string."""
    return '"' + word.replace('"', '""') + '"'


def is_lone(word: str) -> bool:
    """Tell whether `word` is a single letter of an unspaced script."""
    return len(word) == 1 and _RUN.match(word) is not None


def _plain(word: str) -> str:
    """Return `word` without case and accents."""
    if word.isascii():
        return word.lower()
    bare = _ACCENT.sub("", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", bare).casefold()


def _occurrences(word: str, count: Counter[str]) -> int:
    """Return how often `word` stands in a counted document."""
    if is_lone(word):
        return sum(times for found, times in count.items() if found.startswith(word))
    return count[word]
