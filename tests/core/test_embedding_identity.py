"""By what an embedder is known again."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiermem_core.embedding.identity import (
    PROBE_TEXTS,
    EmbedderIdentity,
    agrees,
    identity_of,
)
from hiermem_core.embedding.minilm import MiniLM
from hiermem_core.errors import BackendError, DimensionMismatchError
from hiermem_core.testing import FakeEmbedder


def turned(probe, cosine):
    """Return a vector that has this cosine to `probe`."""
    probe = np.asarray(probe) / np.linalg.norm(probe)
    other = np.zeros_like(probe)
    other[0], other[1] = probe[1], -probe[0]
    other /= np.linalg.norm(other)
    return cosine * probe + np.sqrt(1 - cosine**2) * other


def test_an_identity_costs_one_call():
    embedder = FakeEmbedder(8, "model-x")

    identity = identity_of(embedder)

    assert (identity.model_id, identity.dimensions) == ("model-x", 8)
    assert str(identity) == "model-x (8)"
    assert embedder.calls == [PROBE_TEXTS]


def test_an_identity_survives_storing():
    identity = identity_of(FakeEmbedder(8, "modèle \N{GRINNING FACE}"))

    assert EmbedderIdentity.from_json(identity.to_json()) == identity


@given(
    probes=st.lists(
        st.lists(st.floats(width=32, allow_nan=False), min_size=3, max_size=3).map(tuple),
        max_size=4,
    ).map(tuple)
)
def test_any_identity_survives_storing(probes):
    identity = EmbedderIdentity("x", 3, probes)

    assert EmbedderIdentity.from_json(identity.to_json()) == identity


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "7", "null", "{}", '{"model_id": "x", "dimensions": 2}'),
        json.dumps({"model_id": "x", "dimensions": 2, "probes": ["not base64"]}),
        json.dumps({"model_id": "x", "dimensions": 2, "probes": ["AAAA"]}),
        json.dumps({"model_id": "x", "dimensions": 2, "probes": ["AAAAAA=="]}),
        json.dumps({"model_id": "x", "dimensions": None, "probes": []}),
    ],
)
def test_a_damaged_record_is_one_clear_error(text):
    with pytest.raises(BackendError, match="reindex"):
        EmbedderIdentity.from_json(text)


def test_a58_another_model_of_equal_name_and_length_does_not_agree():
    stored = identity_of(FakeEmbedder(32, "fake"))

    assert agrees(stored, FakeEmbedder(32, "fake").embed(PROBE_TEXTS))
    assert not agrees(stored, FakeEmbedder(32, "fake", seed=1).embed(PROBE_TEXTS))


@pytest.mark.parametrize(("cosine", "expected"), [(1.0, True), (0.996, True), (0.994, False)])
def test_rounding_passes_and_more_does_not(cosine, expected):
    stored = identity_of(FakeEmbedder())

    *same, last = stored.probes

    assert agrees(stored, [*same, turned(last, cosine)]) is expected


def test_lengths_of_vectors_do_not_matter():
    stored = identity_of(FakeEmbedder())

    assert agrees(stored, np.array(stored.probes) * 7)


@pytest.mark.parametrize(
    "probes",
    [
        [],
        [[1.0] * 32] * 3,
        [[1.0] * 16] * 4,
        [[0.0] * 32] * 4,
        [[float("nan")] * 32] * 4,
    ],
    ids=["none", "fewer", "shorter", "zero", "nan"],
)
def test_what_cannot_be_compared_does_not_agree(probes):
    assert not agrees(identity_of(FakeEmbedder()), probes)


def test_the_default_embedder_agrees_with_itself_however_it_is_called():
    stored = identity_of(MiniLM())

    assert agrees(stored, [MiniLM().embed([text])[0] for text in PROBE_TEXTS])
    assert not agrees(stored, stored.probes[::-1])


def test_an_embedder_that_rejects_the_probes_has_no_identity():
    with pytest.raises(BackendError):
        identity_of(FakeEmbedder(failing=PROBE_TEXTS))


def test_an_embedder_that_declares_another_length_has_no_identity():
    embedder = FakeEmbedder(8)
    embedder.embed = FakeEmbedder(9).embed

    with pytest.raises(DimensionMismatchError):
        identity_of(embedder)
