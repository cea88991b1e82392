"""What errors are, whatever goes wrong below."""

from __future__ import annotations

import copy
import pickle
import sqlite3
import traceback
from datetime import datetime

import pytest
from core import operations
from core.drivers import troubled_driver

import hiermem_core
from hiermem_core import Health, HierMem, errors
from hiermem_core.models.warnings import warning_of
from hiermem_core.testing import FakeEmbedder
from hiermem_core.testing.contracts.samples import asked_and_answered, said
from hiermem_core.tokens.counters import ApproximateCounter

SENTINEL = "xyzzy-4711"

EXAMPLES = [
    errors.ConfigurationError("backend", "is unknown; use sqlite"),
    errors.MissingExtraError("chroma", feature='backend="chroma"'),
    errors.InvalidInputError("role", "is unknown; use user"),
    errors.MissingIdentityError("tenant"),
    errors.LimitExceededError("turn", limit=5, actual=7),
    errors.InvalidNamespaceError("is empty; name its segments"),
    errors.InvalidFilterError("age", "$betwen", "is no operator; use $gte and $lte"),
    errors.DimensionMismatchError(expected=32, actual=33),
    errors.NotFoundError("turn 't9' not found; read the thread for its ids"),
    errors.ThreadNotFoundError("t1"),
    errors.PatternNotFoundError("retry"),
    errors.SessionNotFoundError("s1"),
    errors.ConflictError("something else is stored; read again"),
    errors.VersionConflictError(expected=4, actual=5),
    errors.KeyConflictError("e1", "city"),
    errors.TurnConflictError("id-1"),
    errors.BudgetExceededError(needed=120, available=100, parts={"system": 90, "current": 30}),
    errors.QuotaExceededError("max_entries", limit=100, used=100, requested=1),
    errors.RedactionError("turn", "the redactor raised ValueError"),
    errors.RejectedByRedactorError("entry", "holds a card number"),
    errors.UsageDeniedError("the month is used up; wait for the next"),
    errors.UnsupportedSearchError("semantic", "sqlite", 'open with backend="hybrid"'),
    errors.EmbedderMismatchError(stored="one (384)", given="another (768)"),
    errors.BackendError("writing", "SQLITE_IOERR; check the disk"),
    errors.BackendUnavailableError("writing", "the database stays locked; retry later"),
    errors.IndexUnavailableError("semantic search", "it is being built; ask again"),
    errors.MigrationError(stored=9, supported=1, reason="upgrade hiermem-core"),
    errors.ClosedError(),
    errors.HierMemError("something; do something"),
]

DRIVER_ERRORS = [
    sqlite3.OperationalError("disk I/O error"),
    sqlite3.DatabaseError("database disk image is malformed"),
    sqlite3.IntegrityError("constraint failed"),
    sqlite3.InterfaceError("bad parameter or other API misuse"),
    sqlite3.ProgrammingError("cannot operate on a closed database"),
]


def error_types(kind=errors.HierMemError):
    return {kind, *(found for child in kind.__subclasses__() for found in error_types(child))}


@pytest.fixture
def trouble():
    with troubled_driver() as trouble:
        yield trouble


@pytest.fixture
def hiermem(trouble, tmp_path):
    given = {"counter": ApproximateCounter(), "embedder": FakeEmbedder()}
    with HierMem.open(tmp_path / "memory", **given) as hiermem:
        tenant = hiermem.tenant("acme")
        tenant.thread("t1").append(operations.SEED)
        tenant.memory.bulk_insert(operations.ENTRIES)
        operations.seed_runs(tenant)
        yield hiermem
        trouble.clear()


def every_failing_call(trouble, error, call):
    """Have each driver call of an operation fail in turn; yield what the operation raised.

    An operation may go on without what failed, if its answer says so, or if its commit is done:
    what it raises then would say that nothing was stored.
    """
    for first in range(1, 300):
        trouble.set(first, error)
        try:
            answer = call()
            if hasattr(answer, "raise_for_errors"):
                answer.raise_for_errors()
        except Exception as raised:  # noqa: BLE001 - what it is, is what the tests judge
            trouble.clear()
            yield raised
        else:
            has_failed, has_written = trouble.seen >= first, trouble.written > 0
            trouble.clear()
            if has_written or not has_failed:
                assert has_written or not is_weakened(answer)
                return
            assert is_weakened(answer), f"call {first} failed, and nobody was told"
    raise AssertionError("the operation never succeeded")


def is_weakened(answer):
    """Tell whether an answer says that something failed."""
    if isinstance(answer, Health) and answer.status != "healthy":
        return True
    return warning_of(getattr(answer, "warnings", ()), "recall_failed") is not None


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_e1_an_error_survives_pickling_and_copying(error):
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert again.args == error.args
        assert vars(again) == vars(error)


def test_e1_every_public_error_is_an_example_and_exported():
    exported = {name for name in hiermem_core.__all__ if name.endswith("Error")}

    assert {type(error) for error in EXAMPLES} == error_types()
    assert exported == {kind.__name__ for kind in error_types()}


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.ConfigurationError, ValueError),
        (errors.MissingExtraError, ImportError),
        (errors.InvalidInputError, ValueError),
        (errors.NotFoundError, LookupError),
        (errors.ClosedError, RuntimeError),
    ],
)
def test_e1_an_error_is_also_the_builtin_one_expects(kind, builtin):
    assert issubclass(kind, builtin)


@pytest.mark.parametrize("error", EXAMPLES[:-1], ids=lambda error: type(error).__name__)
def test_e1_an_error_ends_with_the_remedy(error):
    assert any(mark in str(error) for mark in (";", ":"))


def long_turn():
    return {"role": "user", "content": SENTINEL * (17 * 1024 * 1024 // len(SENTINEL))}


REFUSALS = {
    "conflict": lambda thread: thread.append([{"role": "user", "content": SENTINEL, "id": "q1"}]),
    "version": lambda thread: thread.append(said([SENTINEL]), expected_seq=99),
    "size": lambda thread: thread.append([long_turn()]),
    "budget": lambda thread: thread.context(system=SENTINEL * 99, budget_tokens=9),
    "current": lambda thread: thread.context(current=SENTINEL * 99, budget_tokens=5),
    "metadata": lambda thread: thread.append(
        [{"role": "user", "content": "x", "metadata": {SENTINEL: [SENTINEL, float("nan")]}}]
    ),
    "arguments": lambda thread: thread.append(
        [{"role": "assistant", "tool_calls": [{"name": "f", "args": {SENTINEL: {SENTINEL}}}]}]
    ),
    "time": lambda thread: thread.append(
        [{"role": "user", "content": SENTINEL, "created_at": datetime(2026, 1, 1)}]  # noqa: DTZ001 - refused
    ),
    "written time": lambda thread: thread.append([{"role": "user", "created_at": SENTINEL}]),
    "content": lambda thread: thread.append([{"role": "user", "content": {SENTINEL: 1}}]),
    "part": lambda thread: thread.append([{"role": "user", "parts": [{"text": SENTINEL}]}]),
    "pin": lambda thread: thread.append([{"role": "tool", "content": SENTINEL, "pinned": True}]),
}

REFUSED_ENTRIES = {
    "key conflict": lambda memory: memory.store(SENTINEL, id="e2", namespace="drinks", key="hot"),
    "version": lambda memory: memory.update("e1", content=SENTINEL, expected_version=9),
    "metadata": lambda memory: memory.store("x", metadata={"a": [SENTINEL, float("nan")]}),
    "metadata value": lambda memory: memory.store("x", metadata={"a": {SENTINEL}}),
    "size": lambda memory: memory.store(SENTINEL * (17 * 1024 * 1024 // len(SENTINEL))),
    "vector": lambda memory: memory.store(SENTINEL, embedding=[1.0, 2.0]),
    "vector value": lambda memory: memory.store(SENTINEL, embedding=[SENTINEL]),
    "time": lambda memory: memory.store(SENTINEL, created_at=datetime(2026, 1, 1)),  # noqa: DTZ001 - refused
    "time to live": lambda memory: memory.store(SENTINEL, ttl=-1),
    "content": lambda memory: memory.store({"content": [SENTINEL]}),
    "search": lambda memory: memory.search(SENTINEL, limit=-1),
    "filter": lambda memory: memory.search(filter={"a": {"$in": SENTINEL}}),
    "bulk": lambda memory: memory.bulk_insert([{"content": [SENTINEL]}]).raise_for_errors(),
    "bulk update": lambda memory: memory.bulk_update([SENTINEL]).raise_for_errors(),
}


@pytest.mark.parametrize("refused", REFUSALS.values(), ids=REFUSALS.keys())
def test_e1_no_content_stands_in_an_error_or_in_its_causes(hiermem, refused):
    with pytest.raises(errors.HierMemError) as raised:
        refused(hiermem.tenant("acme").thread("t1"))

    assert_holds_no_content(raised.value)


@pytest.mark.parametrize("refused", REFUSED_ENTRIES.values(), ids=REFUSED_ENTRIES.keys())
def test_e1_no_content_of_an_entry_stands_in_an_error_or_in_its_causes(hiermem, refused):
    with pytest.raises(errors.HierMemError) as raised:
        refused(hiermem.tenant("acme").memory)

    assert_holds_no_content(raised.value)


def test_e1_no_content_stands_in_the_error_of_an_embedder_that_quotes_it(tmp_path):
    given = {"counter": ApproximateCounter(), "embedder": FakeEmbedder(failing=[SENTINEL])}
    with HierMem.open(tmp_path / "memory", **given) as hiermem:
        hiermem.tenant("acme").remember("likes tea")

        with pytest.raises(errors.HierMemError) as raised:
            hiermem.tenant("acme").memory.search_semantic(SENTINEL)

    assert SENTINEL not in "".join(traceback.format_exception_only(raised.value))
    assert SENTINEL not in repr(vars(raised.value))


def assert_holds_no_content(error):
    shown = "".join(traceback.format_exception_only(error))
    causes = [str(cause) for cause in causes_of(error)]
    assert SENTINEL not in shown + repr(vars(error)) + "".join(causes)


@pytest.mark.parametrize(
    "call",
    [
        lambda tenant: tenant.thread("t1").append(said([SENTINEL])),
        lambda tenant: tenant.remember(SENTINEL),
        lambda tenant: tenant.recall(SENTINEL),
    ],
    ids=["append", "remember", "recall"],
)
def test_e1_no_content_stands_in_a_driver_error_or_its_traceback(trouble, hiermem, call):
    for raised in every_failing_call(
        trouble, DRIVER_ERRORS[0], lambda: call(hiermem.tenant("acme"))
    ):
        assert SENTINEL not in str(raised) + repr(vars(raised))
        assert SENTINEL not in "".join(str(cause) for cause in causes_of(raised))


def causes_of(error):
    """Return every error that a printed traceback shows below this one."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return [] if cause is None else [cause, *causes_of(cause)]


OPERATIONS = {
    "tenant": operations.ON_TENANT,
    "memory": operations.ON_MEMORY,
    "thread": operations.ON_THREAD,
    "patterns": operations.ON_PATTERNS,
    "session": operations.ON_SESSION,
}
OF_NO_ROWS = {("memory", "health"), ("thread", "save_context"), ("thread", "learn")}
CALLS = [
    (kind, name)
    for kind, calls in OPERATIONS.items()
    for name in calls
    if name not in operations.IMMEDIATE and (kind, name) not in OF_NO_ROWS
]


def called_on(hiermem, kind, name):
    """Return an operation that touches the rows, as a call without arguments."""
    tenant = hiermem.tenant("acme")
    handles = {
        "tenant": tenant,
        "memory": tenant.memory,
        "thread": tenant.thread("t1"),
        "patterns": tenant.patterns,
        "session": tenant.session("s1"),
    }
    return lambda: OPERATIONS[kind][name](handles[kind])


def everything_in(hiermem):
    """Return the turns and entries that the operations start from."""
    tenant = hiermem.tenant("acme")
    entries = tenant.memory.bulk_get(entry["id"] for entry in operations.ENTRIES)
    runs = tenant.patterns.list(), tenant.sessions(), tenant.session("s1").steps()
    return tenant.thread("t1").turns(), tenant.memory.generation(), entries, runs


@pytest.mark.parametrize(("kind", "name"), CALLS)
def test_e2_a_driver_error_anywhere_in_an_operation_becomes_a_backend_error(
    trouble, hiermem, kind, name
):
    before = everything_in(hiermem)
    failures = 0

    for raised in every_failing_call(trouble, DRIVER_ERRORS[0], called_on(hiermem, kind, name)):
        assert type(raised) is errors.BackendUnavailableError, repr(raised)
        assert raised.__cause__ is DRIVER_ERRORS[0]
        assert everything_in(hiermem) == before
        failures += 1

    assert failures >= 1


@pytest.mark.parametrize(
    "call",
    [
        lambda tenant: tenant.thread("t1").append(said("x")),
        lambda tenant: tenant.remember("likes tea"),
        lambda tenant: tenant.recall("which question"),
    ],
    ids=["append", "remember", "recall"],
)
@pytest.mark.parametrize("error", DRIVER_ERRORS, ids=lambda error: type(error).__name__)
def test_e2_every_kind_of_driver_error_is_the_cause_of_a_backend_error(
    trouble, hiermem, error, call
):
    for raised in every_failing_call(trouble, error, lambda: call(hiermem.tenant("acme"))):
        assert isinstance(raised, errors.BackendError), repr(raised)
        assert raised.__cause__ is error


def test_e2_a_driver_error_while_opening_becomes_a_backend_error(trouble, tmp_path):
    def open_and_close():
        HierMem.open(tmp_path / "memory", counter=ApproximateCounter()).close()

    failures = list(every_failing_call(trouble, DRIVER_ERRORS[0], open_and_close))

    assert len(failures) > 5
    for raised in failures:
        assert isinstance(raised, errors.BackendError), repr(raised)
        assert raised.__cause__ is DRIVER_ERRORS[0]


def test_e2_a_file_that_is_no_database_is_refused_with_the_drivers_error(tmp_path):
    (tmp_path / "notes.db").write_text("these are my notes, and no database " * 99)

    with pytest.raises(errors.BackendError) as raised:
        HierMem.open(tmp_path / "notes.db")

    assert isinstance(raised.value.__cause__, sqlite3.DatabaseError)


@pytest.mark.parametrize("of", [lambda h: h, lambda h: h.tenant("acme").memory], ids=["all", "one"])
def test_e2_health_reports_a_driver_error_anywhere_instead_of_raising_it(trouble, hiermem, of):
    of(hiermem).health()

    (*raised,) = every_failing_call(trouble, DRIVER_ERRORS[0], of(hiermem).health)
    trouble.set(1, DRIVER_ERRORS[0])
    health = of(hiermem).health()

    assert raised == []
    assert health.status == "unhealthy"
    assert health.rows.status == "unhealthy"
    assert of(hiermem).health().status == "healthy"


def test_e2_an_unwritable_file_makes_writes_raise_and_reads_go_on(hiermem):
    thread = hiermem.tenant("acme").thread("t1")
    with hiermem._services.database.read() as connection:
        connection.exec_driver_sql("PRAGMA query_only=ON")

    with pytest.raises(errors.BackendError) as raised:
        thread.append(asked_and_answered("a"))

    assert isinstance(raised.value.__cause__, sqlite3.OperationalError)
    assert len(thread.turns()) == len(operations.SEED)


@pytest.mark.parametrize(
    "call",
    [
        lambda tenant: tenant.threads(limit=2**64),
        lambda tenant: tenant.threads(offset=2**64),
        lambda tenant: tenant.thread("t1").turns(after=2**64),
        lambda tenant: tenant.thread("t1").turns(before=2**64),
        lambda tenant: tenant.thread("t1").turns(last=2**64),
        lambda tenant: tenant.thread("t1").context(budget_tokens=2**64),
        lambda tenant: tenant.thread("t1").prune(max_turns=2**64),
        lambda tenant: tenant.recall("question", limit=2**64),
        lambda tenant: tenant.memory.search(limit=2**64),
        lambda tenant: tenant.memory.search(offset=2**64),
        lambda tenant: tenant.memory.list_namespaces(limit=2**64),
        lambda tenant: tenant.memory.purge_expired(limit=2**64),
        lambda tenant: tenant.memory.search(filter={"n": {"$gt": 2**64}}),
        lambda tenant: tenant.memory.store("x", ttl=2**64),
        lambda tenant: tenant.memory.store("x", metadata={"n": 2**64}),
    ],
)
def test_e2_a_figure_that_no_driver_can_carry_is_served_or_refused_in_our_words(hiermem, call):
    try:
        answered = call(hiermem.tenant("acme"))
    except errors.InvalidInputError:
        answered = "refused"

    assert answered is not None
