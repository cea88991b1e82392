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
from hiermem_core import HierMem, errors
from hiermem_core.testing.contracts.samples import asked_and_answered, said
from hiermem_core.tokens.counters import ApproximateCounter

SENTINEL = "xyzzy-4711"

EXAMPLES = [
    errors.ConfigurationError("backend", "is unknown; use sqlite"),
    errors.MissingExtraError("chroma", feature='backend="chroma"'),
    errors.InvalidInputError("role", "is unknown; use user"),
    errors.MissingIdentityError("tenant"),
    errors.LimitExceededError("turn", limit=5, actual=7),
    errors.NotFoundError("turn 't9' not found; read the thread for its ids"),
    errors.ThreadNotFoundError("t1"),
    errors.ConflictError("something else is stored; read again"),
    errors.VersionConflictError(expected=4, actual=5),
    errors.TurnConflictError("id-1"),
    errors.BudgetExceededError(needed=120, available=100, parts={"system": 90, "current": 30}),
    errors.BackendError("writing", "SQLITE_IOERR; check the disk"),
    errors.BackendUnavailableError("writing", "the database stays locked; retry later"),
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
    with HierMem.open(tmp_path / "memory", counter=ApproximateCounter()) as hiermem:
        hiermem.tenant("acme").thread("t1").append(operations.SEED)
        yield hiermem
        trouble.clear()


def every_failing_call(trouble, error, call):
    """Have each driver call of an operation fail in turn; yield what the operation raised."""
    for first in range(1, 200):
        trouble.set(first, error)
        try:
            call()
        except Exception as raised:  # noqa: BLE001 - what it is, is what the tests judge
            trouble.clear()
            yield raised
        else:
            reached, _ = trouble.seen, trouble.clear()
            assert reached < first
            return
    raise AssertionError("the operation never succeeded")


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
        [{"role": "user", "content": SENTINEL, "created_at": datetime(2026, 1, 1)}]  # noqa: DTZ001
    ),
    "written time": lambda thread: thread.append([{"role": "user", "created_at": SENTINEL}]),
    "content": lambda thread: thread.append([{"role": "user", "content": {SENTINEL: 1}}]),
    "part": lambda thread: thread.append([{"role": "user", "parts": [{"text": SENTINEL}]}]),
    "pin": lambda thread: thread.append([{"role": "tool", "content": SENTINEL, "pinned": True}]),
}


@pytest.mark.parametrize("refused", REFUSALS.values(), ids=REFUSALS.keys())
def test_e1_no_content_stands_in_an_error_or_in_its_causes(hiermem, refused):
    with pytest.raises(errors.HierMemError) as raised:
        refused(hiermem.tenant("acme").thread("t1"))

    shown = "".join(traceback.format_exception_only(raised.value))
    causes = [str(cause) for cause in causes_of(raised.value)]
    assert SENTINEL not in shown + repr(vars(raised.value)) + "".join(causes)


def test_e1_no_content_stands_in_a_driver_error_or_its_traceback(trouble, hiermem):
    thread = hiermem.tenant("acme").thread("t1")

    for raised in every_failing_call(
        trouble, DRIVER_ERRORS[0], lambda: thread.append(said([SENTINEL]))
    ):
        assert SENTINEL not in str(raised) + repr(vars(raised))
        assert SENTINEL not in "".join(str(cause) for cause in causes_of(raised))


def causes_of(error):
    """Return every error that a printed traceback shows below this one."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return [] if cause is None else [cause, *causes_of(cause)]


def calls_on(hiermem):
    """Return every operation that touches the rows, by name."""
    tenant = hiermem.tenant("acme")
    thread = tenant.thread("t1")
    on_tenant = {
        name: lambda call=call: call(tenant)
        for name, call in operations.ON_TENANT.items()
        if name not in operations.IMMEDIATE
    }
    return on_tenant | {
        name: lambda call=call: call(thread) for name, call in operations.ON_THREAD.items()
    }


@pytest.mark.parametrize(
    "operation", sorted({*operations.ON_TENANT, *operations.ON_THREAD} - operations.IMMEDIATE)
)
def test_e2_a_driver_error_anywhere_in_an_operation_becomes_a_backend_error(
    trouble, hiermem, operation
):
    thread = hiermem.tenant("acme").thread("t1")
    before = thread.turns()
    failures = 0

    for raised in every_failing_call(trouble, DRIVER_ERRORS[0], calls_on(hiermem)[operation]):
        assert type(raised) is errors.BackendUnavailableError, repr(raised)
        assert raised.__cause__ is DRIVER_ERRORS[0]
        assert thread.turns() == before
        failures += 1

    assert failures >= 2


@pytest.mark.parametrize("error", DRIVER_ERRORS, ids=lambda error: type(error).__name__)
def test_e2_every_kind_of_driver_error_is_the_cause_of_a_backend_error(trouble, hiermem, error):
    thread = hiermem.tenant("acme").thread("t1")

    for raised in every_failing_call(trouble, error, lambda: thread.append(said("x"))):
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


def test_e2_health_reports_a_driver_error_instead_of_raising_it(trouble, hiermem):
    trouble.set(1, DRIVER_ERRORS[0])

    health = hiermem.health()

    assert health.status == "unhealthy"
    assert health.rows.status == "unhealthy"
    assert hiermem.health().status == "healthy"


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
    ],
)
def test_e2_a_figure_that_no_driver_can_carry_is_served_or_refused_in_our_words(hiermem, call):
    try:
        answered = call(hiermem.tenant("acme"))
    except errors.InvalidInputError:
        answered = "refused"

    assert answered is not None
