"""The window of a thread: whole exchanges, sound pairs, within the budget, and at a flat cost."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from hiermem_core import (
    BudgetExceededError,
    FunctionCounter,
    HierMem,
    InvalidInputError,
    Profile,
    ThreadOptions,
)
from hiermem_core.models.warnings import warning_of
from hiermem_core.testing.contracts.probes import reads_of
from langchain_hiermem import HierMemChatMessageHistory, message_to_turn, turn_to_message

REPLY_TOKENS = 3


def call(call_id, **args):
    return {"id": call_id, "name": "find", "args": args, "type": "tool_call"}


def calling(*ids, text=""):
    return AIMessage(text, tool_calls=[call(one, of=one) for one in ids])


def result(call_id, text="found"):
    return ToolMessage(f"{text} {call_id}", tool_call_id=call_id)


def cost(hiermem, messages):
    """Return what messages cost by the HierMem's counter, counted anew."""
    turns = [message_to_turn(message) for message in messages]
    return REPLY_TOKENS + sum(hiermem.counter.count_turn(turn) for turn in turns)


def windows_of_every_budget(hiermem, history):
    """Return the window of every budget from nothing to everything; none where it raises."""
    windows = []
    for budget in range(cost(hiermem, history.messages) + 2):
        try:
            windows.append(history.window(budget))
        except BudgetExceededError:
            windows.append(None)
    return windows


def plain_exchanges(count, *, start=0):
    return [
        message
        for number in range(start, start + count)
        for message in (HumanMessage(f"question {number}"), AIMessage(f"answer {number}"))
    ]


def test_lc1_a_call_and_all_its_results_are_in_the_window_together_or_not_at_all(hiermem, history):
    unit = [HumanMessage("a"), calling("1", "2"), result("1"), result("2"), AIMessage("so")]
    newest = HumanMessage("b")
    history.add_messages([*unit, newest])

    windows = windows_of_every_budget(hiermem, history)

    seen = [window for window in windows if window is not None]
    assert [newest] in seen
    assert [*unit, newest] in seen
    assert all(window in ([newest], [*unit, newest]) for window in seen)


def test_lc1_in_the_newest_exchange_a_call_never_stands_without_a_result(hiermem, history):
    long = "a long tale of a tool " * 20
    history.add_messages(
        [HumanMessage("a"), calling("1", "2"), *(result(i, long) for i in "12"), AIMessage("so")]
    )

    windows = [window for window in windows_of_every_budget(hiermem, history) if window]

    assert windows
    for window in windows:
        results = [m.tool_call_id for m in window if isinstance(m, ToolMessage)]
        calls = [c["id"] for m in window if isinstance(m, AIMessage) for c in m.tool_calls]
        assert calls == results
        assert results in (["1", "2"], [])
        assert isinstance(window[0], HumanMessage)


def test_lc2_interleaved_calls_keep_all_their_results(hiermem, history):
    unit = [
        HumanMessage("a"),
        calling("A"),
        calling("B"),
        result("A"),
        result("B"),
        AIMessage("so"),
    ]
    newest = HumanMessage("b")
    history.add_messages([*unit, newest])

    seen = [window for window in windows_of_every_budget(hiermem, history) if window is not None]

    assert all(window in ([newest], [*unit, newest]) for window in seen)
    assert {len(window) for window in seen} == {1, 7}


def test_lc2_exchanges_tied_by_a_late_result_go_together(hiermem, history):
    tied = [
        *(HumanMessage("a"), calling("A"), HumanMessage("hurry"), calling("B")),
        *(result("A"), result("B"), AIMessage("so")),
    ]
    newest = HumanMessage("b")
    history.add_messages([*tied, newest])

    seen = [window for window in windows_of_every_budget(hiermem, history) if window is not None]

    assert all(window in ([newest], [*tied, newest]) for window in seen)
    assert {len(window) for window in seen} == {1, 8}


def test_a_pending_call_of_the_newest_exchange_stays(history):
    pending = [HumanMessage("a"), calling("A", "B"), result("A")]
    history.add_messages(pending)

    assert history.window(1000) == pending


def test_lc6_a_user_turn_above_the_budget_is_shortened_marked_and_reported(
    hiermem, history, thread
):
    history.add_messages([*plain_exchanges(2), HumanMessage("a very long question " * 300)])

    window = history.window(100)
    context = thread.context(budget_tokens=100, recall=False)

    (shortened,) = window
    over = warning_of(context.warnings, "over_budget")
    assert isinstance(shortened, HumanMessage)
    assert shortened.content.startswith("a very long question a very")
    assert "characters cut" in shortened.content
    assert cost(hiermem, window) <= 100
    assert over.detail["available"] == 100
    assert over.detail["needed"] == cost(hiermem, history.messages[-1:])


def test_lc6_whatever_the_budget_the_window_holds_the_question_or_an_error_is_raised(
    hiermem, history
):
    history.add_messages([*plain_exchanges(2), HumanMessage("a very long question " * 20)])

    windows = windows_of_every_budget(hiermem, history)

    assert windows[0] is None
    assert None not in windows[40:]
    assert windows[-1] == history.messages
    for budget, window in enumerate(windows):
        assert window is None or isinstance(window[-1], HumanMessage)
        assert window is None or cost(hiermem, window) <= budget


def test_lc6_under_raise_the_budget_is_an_error_with_its_figures(hiermem, history, thread):
    history.add_messages([HumanMessage("a very long question " * 300)])

    with pytest.raises(BudgetExceededError) as exceeded:
        thread.context(budget_tokens=100, on_over_budget="raise", recall=False)

    assert exceeded.value.available == 100
    assert exceeded.value.needed == cost(hiermem, history.messages)


def test_a_negative_budget_is_refused(history):
    history.add_messages(plain_exchanges(1))

    with pytest.raises(InvalidInputError):
        history.window(-1)


@pytest.mark.parametrize("k", [0, 1, 2, 5])
def test_lc7_a_window_of_k_exchanges_starts_at_a_user_turn_and_cuts_no_pair(history, thread, k):
    exchanges = [
        [
            *(HumanMessage(f"q{n}"), calling(f"a{n}", f"b{n}"), result(f"a{n}"), result(f"b{n}")),
            *(calling(f"c{n}"), result(f"c{n}"), AIMessage(f"done {n}")),
        ]
        for n in range(8)
    ]
    history.add_messages([message for exchange in exchanges for message in exchange])
    profile = Profile(working_memory=ThreadOptions(window_exchanges=k))

    context = thread.context(budget_tokens=100_000, profile=profile, recall=False)

    window = [turn_to_message(turn) for turn in context.messages]
    assert window == [message for exchange in exchanges[-(k + 1) :] for message in exchange]
    left_out = warning_of(context.warnings, "turns_not_covered")
    assert left_out.count == 7 * (8 - (k + 1))


def test_lc7_the_setting_caps_the_window_of_a_history_alike(location):
    with HierMem.open(location, window_exchanges=2) as hiermem:
        history = HierMemChatMessageHistory(hiermem, tenant_id="acme", thread_id="t1")
        history.add_messages(plain_exchanges(9))

        assert history.window(100_000) == plain_exchanges(3, start=6)


def test_system_messages_are_always_in_the_window_and_in_order(hiermem, history):
    rules = [SystemMessage("be brief"), SystemMessage("be kind")]
    history.add_messages([rules[0], *plain_exchanges(20), rules[1], *plain_exchanges(20)])
    newest = plain_exchanges(20)[-2:]

    window = history.window(cost(hiermem, [*rules, *newest]))

    assert window == [*rules, *newest]


def test_a_greeting_before_the_first_question_is_not_in_the_window(history):
    history.add_messages([AIMessage("welcome"), *plain_exchanges(2)])

    assert history.messages[0] == AIMessage("welcome")
    assert history.window(1000) == plain_exchanges(2)


def test_a_window_changes_nothing_and_is_the_same_each_time(history):
    history.add_messages(plain_exchanges(30))

    windows = [history.window(150) for _ in range(20)]

    assert all(window == windows[0] for window in windows)
    assert history.messages == plain_exchanges(30)


class Counting:
    """Characters, and how many turns were counted."""

    def __init__(self):
        self.counter = FunctionCounter(len, id="characters")
        self.id = self.counter.id
        self.turns = 0

    def count(self, text):
        return self.counter.count(text)

    def count_turn(self, turn):
        self.turns += 1
        return self.counter.count_turn(turn)


def thread_of(exchanges):
    """Return exchanges that are all of one size."""
    return [
        message
        for number in range(exchanges)
        for message in (HumanMessage(f"{number:99}"), AIMessage(f"{number:99}"))
    ]


def work_of(action, exchanges):
    """Return rows read, turns counted and steps of SQLite for an action on a long thread."""
    counter = Counting()
    with HierMem.open(":memory:", counter=counter) as hiermem:
        history = HierMemChatMessageHistory(hiermem, tenant_id="acme", thread_id="t1")
        history.add_messages(thread_of(exchanges))
        counter.turns = 0
        with reads_of(hiermem) as reads:
            action(history)
        return (reads.rows, counter.turns), reads.steps


ACTIONS = {
    "window": lambda history: history.window(4000),
    "save": lambda history: history.add_messages([HumanMessage("q"), AIMessage("a")]),
    "save with ids": lambda history: history.add_messages(
        [HumanMessage("q", id="m1"), AIMessage("a", id="m2")]
    ),
}


@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)
def test_lc10_the_work_of_a_window_and_of_a_save_does_not_grow_with_the_thread(action):
    counted_of_short, steps_of_short = work_of(action, exchanges=100)
    counted_of_long, steps_of_long = work_of(action, exchanges=2000)

    assert counted_of_long == counted_of_short
    assert 0 < steps_of_long <= 1.1 * steps_of_short


def test_lc10_only_what_is_new_is_counted():
    counter = Counting()
    with HierMem.open(":memory:", counter=counter) as hiermem:
        history = HierMemChatMessageHistory(hiermem, tenant_id="acme", thread_id="t1")
        history.add_messages(plain_exchanges(500))
        counter.turns = 0

        history.add_messages(plain_exchanges(1))
        assert history.window(1_000_000) == history.messages

        assert counter.turns == 2


def test_lc11_one_warning_says_how_many_turns_of_which_roles_and_tokens_went(
    hiermem, history, thread
):
    history.add_messages(
        [HumanMessage("first"), calling("A"), result("A"), AIMessage("so"), *plain_exchanges(30)]
    )
    stored = thread.turns()

    context = thread.context(budget_tokens=150, recall=False)

    kept = {turn.seq for turn in context.messages}
    gone = [turn for turn in stored if turn.seq not in kept]
    (trimmed,) = context.warnings
    facts = trimmed.detail
    assert [turn_to_message(turn) for turn in context.messages] == history.window(150)
    assert 0 < len(gone) < len(stored)
    assert (trimmed.code, trimmed.count) == ("turns_trimmed", len(gone))
    assert trimmed.tokens == sum(hiermem.counter.count_turn(turn) for turn in gone)
    assert facts["roles"] == {
        role: sum(turn.role == role for turn in gone) for role in ("user", "assistant", "tool")
    }
    assert facts["exchanges"] == sum(turn.role == "user" for turn in gone)


def test_lc11_the_warning_names_the_turns_that_went(history, thread):
    history.add_messages(plain_exchanges(30))

    context = thread.context(budget_tokens=150, recall=False)

    (trimmed,) = context.warnings
    first, last = trimmed.detail["first_seq"], trimmed.detail["last_seq"]
    named = thread.turns(after=first - 1, before=last + 1)
    assert [turn.id for turn in named] + [turn.id for turn in context.messages] == [
        turn.id for turn in thread.turns()
    ]


def test_the_context_of_a_window_says_what_was_left_out(history):
    history.add_messages(plain_exchanges(30))

    context = history.context(150)

    assert [turn_to_message(turn) for turn in context.messages] == history.window(150)
    assert [warning.code for warning in context.warnings] == ["turns_trimmed"]
    assert context.receipt.total <= 150


def test_a_refusal_beside_the_content_is_in_the_window(history):
    refused = AIMessage("", additional_kwargs={"refusal": "I cannot help with that."})
    history.add_messages([HumanMessage("how?"), refused])

    assert history.window(150) == [HumanMessage("how?"), refused]
    assert history.context(150).to_openai()[-1]["content"] == "I cannot help with that."


def test_what_is_no_message_is_refused(history):
    with pytest.raises(InvalidInputError, match="no LangChain message"):
        history.add_messages(["hello"])
