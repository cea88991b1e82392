"""The window over random threads written through the history: LC45 to LC48."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import assume, given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from hiermem_core import ApproximateCounter, BudgetExceededError, FunctionCounter, HierMem
from langchain_hiermem import HierMemChatMessageHistory, message_to_turn, turn_to_message

FRAGMENTS = (
    *("hello world ", "The quick brown fox. ", "x", "\n\n", "0123456789 ", "https://x.org/?a=b "),
    *("你好世界。", "日本語の文章です。", "Привет, мир! ", "مرحبا بالعالم "),
    *("\U0001f469\u200d\U0001f467", "e\u0301", "\u202eabc"),
    *("def f(x):\n    return x ** 2\n", '{"a": [1, null]} ', "<|endoftext|>"),
)
CALL_IDS = ("a", "b", "c")
COUNTERS = (
    ApproximateCounter(),
    FunctionCounter(len, id="characters"),
    FunctionCounter(lambda text: len(text.split()), id="words"),
)
BACKENDS = ("sqlite", "chroma", "hybrid")
REPLY_TOKENS = 3
LEFT_OUT = {
    "turns_trimmed",
    "turns_not_covered",
    "leading_turns_dropped",
    "orphan_results_dropped",
    "blank_turns_dropped",
}


@dataclass(frozen=True)
class Case:
    """A thread in the batches it is written in, and a window that is asked of it."""

    batches: list[list[BaseMessage]]
    budget: int
    counter: object
    backend: str

    def open(self):
        return HierMem.open(":memory:", counter=self.counter, backend=self.backend)

    def write(self, hiermem):
        """Write the thread, batch by batch, and return its history."""
        return written(hiermem, "acme", self.batches)


def written(hiermem, tenant_id, batches):
    history = HierMemChatMessageHistory(hiermem, tenant_id=tenant_id, thread_id="t1")
    for batch in batches:
        history.add_messages(batch)
    return history


def texts():
    """Give texts of several scripts; some long."""
    joined = st.lists(st.sampled_from(FRAGMENTS), max_size=5).map("".join)
    long = st.tuples(st.sampled_from(FRAGMENTS), st.integers(20, 80)).map(lambda t: t[0] * t[1])
    return joined | long


def blocks():
    text = texts().map(lambda value: {"type": "text", "text": value})
    image = st.just({"type": "image", "url": "https://example.org/a.png"})
    thought = st.just({"type": "reasoning", "reasoning": "let me think"})
    return st.lists(text | image | thought, max_size=3)


def contents():
    return texts() | blocks() | st.sampled_from(("", "  \n"))


def calls():
    one = st.builds(
        lambda call_id, args: {"id": call_id, "name": "find", "args": args},
        st.sampled_from(CALL_IDS),
        st.dictionaries(texts(), st.integers() | texts(), max_size=2),
    )
    return st.lists(one, min_size=1, max_size=3, unique_by=lambda call: call["id"])


def results(call_ids):
    return st.builds(ToolMessage, texts() | st.just(""), tool_call_id=call_ids)


def asking():
    return st.builds(AIMessage, contents(), tool_calls=calls())


@st.composite
def exchanges(draw):
    """Give a question, up to two rounds of calls with most of their results, and an answer."""
    messages = [HumanMessage("?" + draw(texts()), id=draw(st.sampled_from((None, "m1", "m2"))))]
    for _ in range(draw(st.integers(0, 2))):
        asked = draw(asking())
        messages.append(asked)
        answered = [c for c in draw(st.permutations(asked.tool_calls)) if draw(st.integers(0, 5))]
        messages += [draw(results(st.just(call["id"]))) for call in answered]
    return messages + draw(st.lists(st.builds(AIMessage, contents()), max_size=1))


def loose_messages():
    """Give any one message: a greeting, an orphan, a pending call, a system message, a critic."""
    return st.one_of(
        st.builds(HumanMessage, contents()),
        st.builds(AIMessage, contents()),
        asking(),
        results(st.sampled_from(CALL_IDS)),
        st.builds(SystemMessage, texts()),
        st.builds(FunctionMessage, texts(), name=st.just("add")),
        st.builds(ChatMessage, texts(), role=st.sampled_from(("critic", "assistant"))),
    )


def batches():
    piece = exchanges() | loose_messages().map(lambda message: [message])
    return st.lists(piece, min_size=1, max_size=8)


def cases():
    budgets = st.integers(0, 300) | st.integers(100, 4000) | st.integers(100, 4000)
    return st.builds(Case, batches(), budgets, st.sampled_from(COUNTERS), st.sampled_from(BACKENDS))


def window_of(history, budget):
    """Return the window, or `None` where the budget is too small for any."""
    try:
        return history.window(budget)
    except BudgetExceededError:
        return None


def pairing(messages):
    """Return where results without a call stand, and where calls without a result stand."""
    open_calls, known, orphans = {}, {}, []
    for place, message in enumerate(messages):
        for call in getattr(message, "tool_calls", []):
            known[call["id"]] = place
            open_calls[place, call["id"]] = place
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in known:
                orphans.append(place)
            open_calls.pop((known.get(message.tool_call_id), message.tool_call_id), None)
    return orphans, list(open_calls.values())


def start_of_newest(messages):
    """Return where the newest exchange of a window begins."""
    asked = [place for place, m in enumerate(messages) if message_to_turn(m).role == "user"]
    return asked[-1] if asked else 0


@given(cases())
def test_lc45_no_result_without_its_call_and_no_old_call_without_its_result(case):
    with case.open() as hiermem:
        window = window_of(case.write(hiermem), case.budget)
    assume(window is not None)

    orphans, unanswered = pairing(window)
    assert orphans == []
    assert all(place > start_of_newest(window) for place in unanswered)


@given(cases())
def test_lc45_after_the_system_messages_the_window_starts_with_a_user_turn(case):
    with case.open() as hiermem:
        window = window_of(case.write(hiermem), case.budget)
    assume(window is not None)

    roles = [message_to_turn(m).role for m in window if not isinstance(m, SystemMessage)]
    assert roles[:1] in ([], ["user"])


@given(cases())
def test_lc46_every_turn_is_in_the_window_or_counted_in_a_warning(case):
    with case.open() as hiermem:
        window = window_of(case.write(hiermem), case.budget)
        assume(window is not None)
        thread = hiermem.tenant("acme").thread("t1")
        context = thread.context(budget_tokens=case.budget, recall=False)
        stored = thread.turns()

    kept = {turn.seq for turn in context.messages}
    assert len(window) == len(kept) == len(context.messages)
    assert kept <= {turn.seq for turn in stored}
    counted = sum(warning.count for warning in context.warnings if warning.code in LEFT_OUT)
    assert len(kept) + counted == len(stored)


@given(cases())
def test_lc46_what_is_in_the_window_and_not_shortened_equals_what_is_stored(case):
    with case.open() as hiermem:
        history = case.write(hiermem)
        window = window_of(history, case.budget)
        assume(window is not None)
        thread = hiermem.tenant("acme").thread("t1")
        context = thread.context(budget_tokens=case.budget, recall=False)
        log = dict(zip((turn.seq for turn in thread.turns()), history.messages, strict=True))

    for turn, message in zip(context.messages, window, strict=True):
        assert message.id == log[turn.seq].id
        if not turn.origin.is_stale:
            assert message == log[turn.seq] == turn_to_message(turn)


@given(cases(), batches())
def test_lc47_what_another_tenant_writes_changes_no_message_and_no_window(case, foreign):
    with case.open() as hiermem:
        alone = case.write(hiermem)
        expected = alone.messages, window_of(alone, case.budget)
    with case.open() as shared:
        written(shared, "bob", foreign)
        acme = case.write(shared)
        written(shared, "bob", foreign)
        seen = acme.messages, window_of(acme, case.budget)

    assert seen == expected


@given(cases())
def test_lc48_the_window_is_within_the_budget_by_the_counter(case):
    with case.open() as hiermem:
        window = window_of(case.write(hiermem), case.budget)
    assume(window is not None)

    tokens = sum(case.counter.count_turn(message_to_turn(message)) for message in window)
    assert REPLY_TOKENS + tokens <= case.budget


@given(cases())
def test_lc48_a_larger_budget_never_keeps_fewer_messages(case):
    with case.open() as hiermem:
        history = case.write(hiermem)
        windows = [window_of(history, case.budget + more) for more in range(0, 300, 60)]

    sizes = [-1 if window is None else len(window) for window in windows]
    assert sizes == sorted(sizes)
