"""Sessions and steps of the formats that have them.

Columns without a field of their own are data of the session, or the state of the step. Steps keep
the order of the source, and are numbered as they are stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hiermem_core.errors import InvalidInputError, RedactionError
from hiermem_core.importing.claude_flow.patterns import BANK, LATER, moment
from hiermem_core.importing.names import derived_id
from hiermem_core.importing.reading import json_column, read_each, record_error
from hiermem_core.importing.records import RecordError, SessionRecord, StepRecord, failed
from hiermem_core.importing.values import compact_json
from hiermem_core.models.ids import check_name
from hiermem_core.models.sessions import SESSION_STATUSES
from hiermem_core.sessions.checking import StepDraft, checked_data, checked_step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hiermem_core.importing.databases import Row
    from hiermem_core.importing.reading import Reading
    from hiermem_core.importing.records import Record
    from hiermem_core.models.sessions import SessionStatus

TRAJECTORIES_ORDER = "trajectory_id, step_number, id"

_ACTIONS = ("action", "tool", "name", "type")
_RESULTS = ("observation", "next_state", "result", "output")


def read_task_trajectories(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield a session of each row of `reasoning-bank`, and its steps, where it lists them."""
    for position, row in rows:
        yield from read_each([(position, row)], lambda one: _of_task(one, reading), kind="session")
        yield from _steps_of_task(position, row, reading)


def read_trajectories(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the sessions that are the trajectories of `v3`."""
    own = ("id", "status", "started_at", "ended_at")

    def read(row: Row) -> Record:
        return _session(
            row.needed("id"),
            _rest(row, own),
            reading,
            status=row.get("status"),
            started_at=moment(row.get("started_at")),
            ended_at=moment(row.get("ended_at")),
        )

    yield from read_each(rows, read, kind="session")


def read_sessions(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the sessions of `v3`; one that is over ended when it was last changed."""
    own = ("id", "status", "created_at", "updated_at")

    def read(row: Row) -> Record:
        is_over = row.get("status") not in {None, "active", "paused"}
        return _session(
            row.needed("id"),
            _rest(row, own),
            reading,
            status=row.get("status"),
            started_at=moment(row.get("created_at")),
            ended_at=moment(row.get("updated_at")) if is_over else None,
        )

    yield from read_each(rows, read, kind="session")


def read_steps(rows: Iterable[tuple[str, Row]], reading: Reading) -> Iterator[Record]:
    """Yield the steps of the trajectories of `v3`."""
    own = ("id", "trajectory_id", "step_number", "action", "observation", "reward", "created_at")

    def read(row: Row) -> Record:
        session, number = row.needed("trajectory_id"), row.text("step_number")
        name = row.text("id") or f"{session}/{number}"
        return _step(
            (LATER, name),
            session,
            reading,
            action=row.needed("action"),
            state=_rest(row, own) or None,
            reward=row.get("reward"),
            next_state=_structured(row.text("observation")),
            created_at=moment(row.get("created_at")),
        )

    yield from read_each(rows, read, kind="step")


def _of_task(row: Row, reading: Reading) -> Record:
    own = ("task_id", "trajectory_json", "started_at", "ended_at")
    data = _rest(row, own)
    if _listed_steps(row) is None:
        data["trajectory"] = _structured(row.text("trajectory_json"))
    label, ended_at = str(row.get("judge_label") or "").lower(), moment(row.get("ended_at"))
    status = "completed" if label or ended_at else "active"
    return _session(
        row.needed("task_id"),
        data,
        reading,
        status="failed" if label == "failure" else status,
        started_at=moment(row.get("started_at")),
        ended_at=ended_at,
    )


def _steps_of_task(position: str, row: Row, reading: Reading) -> Iterator[Record]:
    try:
        session, steps = row.text("task_id"), _listed_steps(row)
        started_at = moment(row.get("started_at"))
    except RecordError:
        return
    for number, step in enumerate(steps or (), 1):
        place = f"{session}/{number}"
        try:
            if session:
                yield _listed_step(step, session, (place, started_at), reading)
        except RecordError as error:
            yield failed(error, ref=place, position=position, kind="step")


def _listed_step(
    step: dict[str, Any], session: str, place: tuple[str, Any], reading: Reading
) -> Record:
    rest = dict(step)
    action = next((rest.pop(name) for name in _ACTIONS if _is_said(step.get(name))), None)
    result = next((rest.pop(name) for name in _RESULTS if name in step), None)
    reward = rest.pop("reward") if _is_number(step.get("reward")) else None
    state = rest["state"] if set(rest) == {"state"} else rest
    return _step(
        (BANK, place[0]),
        session,
        reading,
        action=compact_json(step) if action is None else action,
        state=None if action is None else state or None,
        reward=reward,
        next_state=result,
        created_at=place[1],
    )


def _listed_steps(row: Row) -> list[dict[str, Any]] | None:
    """Return the steps that a trajectory lists; `None` where it is no list of objects."""
    steps = json_column(row.text("trajectory_json"))
    is_list = isinstance(steps, list) and all(isinstance(step, dict) for step in steps)
    return steps if is_list else None


def _session(
    name: str,
    data: Mapping[str, Any],
    reading: Reading,
    *,
    status: Any,
    started_at: Any,
    ended_at: Any,
) -> SessionRecord:
    known: SessionStatus = "active" if ended_at is None else "completed"
    if status in SESSION_STATUSES:
        known = status
    elif status is not None:
        data = {**data, "status": status}
    stated = {key: one for key, one in data.items() if one is not None}
    try:
        return SessionRecord(
            ref=check_name("session", name),
            data=checked_data(stated, reading.cleaner("session")) or {},
            status=known,
            started_at=started_at,
            clock_at=reading.now,
            ended_at=ended_at,
        )
    except (InvalidInputError, RedactionError) as error:
        raise record_error(error) from error


def _step(
    name: tuple[str, str], session: str, reading: Reading, *, created_at: Any, **facts: Any
) -> StepRecord:
    step_id = derived_id(name[0], reading.prefix, "step", name[1])
    facts["reward"] = facts["reward"] if _is_number(facts["reward"]) else None
    try:
        return StepRecord(
            ref=name[1],
            session=check_name("session", session),
            draft=checked_step(StepDraft(id=step_id, **facts), reading.cleaner("session")),
            created_at=created_at,
            clock_at=reading.now,
        )
    except (InvalidInputError, RedactionError) as error:
        raise record_error(error) from error


def _rest(row: Row, own: tuple[str, ...]) -> dict[str, Any]:
    """Return what a row holds beside some columns, JSON objects and lists as such."""
    found = {name: row.get(name) for name in row if name not in own}
    return {name: _structured(one) for name, one in found.items() if one is not None}


def _structured(value: Any) -> Any:
    """Return the object or list of a JSON text, and all else as it is."""
    if not isinstance(value, str):
        return value
    found = json_column(value)
    return found if isinstance(found, dict | list) else value


def _is_said(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
