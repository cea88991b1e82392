"""Notes, replies of a model, and what the one makes of the other."""

from __future__ import annotations

from core.counting import COUNTERS
from hypothesis import strategies as st

from hiermem_core.learning.merging import merged
from hiermem_core.learning.replies import Reply, Statement
from hiermem_core.models.notes import Fact, ThreadState

QUARTERS = COUNTERS["function"]()


def merge(state, reply, *, listed=None, seqs=(7, 8, 9)):
    known = state.facts if listed is None else listed
    return merged(state, reply, listed=known, seqs=seqs, counter=QUARTERS)


def learned(*texts, summary="", retract=(), state=None, seqs=(7, 8, 9)):
    """Return the texts of the facts after a reply."""
    reply = Reply(summary, tuple(map(Statement, texts)), tuple(retract))
    return texts_of(merge(state or ThreadState(), reply, seqs=seqs).state)


def texts_of(state):
    return [fact.text for fact in state.facts]


def state_of(*texts, summary="Old."):
    return ThreadState(summary, tuple(Fact(text, 3, ((3,),)) for text in texts), 6)


WORDS = st.sampled_from(["a", "b", "a.", "- b", "c - b", "x - a - b", "d", "e", "f", "...", "1. d"])
STATEMENTS = st.builds(
    Statement,
    WORDS | st.integers(0, 70).map("fact {}".format) | st.text(max_size=400),
    st.lists(st.integers(5, 12), max_size=3).map(tuple),
)
SUMMARIES = st.text() | WORDS | st.sampled_from(["- a", "S.\n- a\n- b", "One. Two. " * 300])
REPLIES = st.builds(
    Reply,
    SUMMARIES,
    st.lists(STATEMENTS, max_size=70).map(tuple),
    st.lists(st.integers(-2, 60), max_size=6).map(tuple),
)


@st.composite
def states(draw):
    state = ThreadState(draw(st.sampled_from(["", "Old summary."])))
    for seqs in ((1, 2), (3, 4), (5,)):
        state = merge(state, draw(REPLIES), seqs=seqs).state
    return state
