"""Moving memories between locations, on SQLite and to PostgreSQL and back."""

from __future__ import annotations

import pytest
from importing.moved import TENANTS, fill, opened

from hiermem_core.errors import ConfigurationError, ConflictError
from hiermem_core.importing.moving import move_memories
from hiermem_core.testing import FakeEmbedder, FaultPlan, InjectedFault


@pytest.fixture
def source(tmp_path):
    fill(tmp_path / "source")
    return tmp_path / "source"


@pytest.fixture(params=["sqlite", "postgres"])
def target(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "target")
    return request.getfixturevalue("postgres_url")


def test_all_tenants_are_the_same_at_both_ends_and_on_the_way_back(source, target, tmp_path):
    shares = []

    there = move_memories(source, target, progress=shares.append)
    back = move_memories(target, tmp_path / "back")

    assert [one.tenant for one in there.tenants] == list(TENANTS)
    assert [one.checksum for one in back.tenants] == [one.checksum for one in there.tenants]
    assert {(one.entries, one.threads, one.was_there) for one in back.tenants} == {(21, 1, False)}
    assert {(one.turns, one.vectors > 21) for one in back.tenants} == {(13, True)}
    assert shares == sorted(shares)
    assert shares[-1] == 1
    embedder = FakeEmbedder(16)
    with opened(target, embedder=embedder) as hiermem:
        tenant = hiermem.tenant("acme")
        assert tenant.thread("t1").state().summary == "They spoke."
        assert len(tenant.thread("t1").turns(status="archived")) == 1
        assert tenant.memory.retrieve(namespace="a/b", key="k").ttl == 10_000
        assert tenant.memory.stats().index.pending == 0
        assert hiermem.doctor().is_sound


def test_one_tenant_comes_alone_and_again_it_is_there(source, target):
    move_memories(source, target, tenant="acme")

    again = move_memories(source, target, tenant="acme")

    assert [(one.tenant, one.was_there) for one in again.tenants] == [("acme", True)]
    with opened(target) as hiermem:
        assert hiermem.tenant(TENANTS[1]).stats().turns == 0


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_move_that_was_cut_off_goes_on(source, target, count):
    opened(target).close()
    with FaultPlan("rows.before_commit", count=count), pytest.raises(InjectedFault):
        move_memories(source, target)

    report = move_memories(source, target)

    assert len(report.tenants) == 2
    assert not report.tenants[-1].was_there


@pytest.mark.parametrize("what", ["an entry", "a thread", "another turn"])
def test_a_target_with_other_things_of_the_tenant_is_refused_and_left(source, target, what):
    with opened(target) as hiermem:
        tenant = hiermem.tenant("acme")
        if what == "an entry":
            tenant.remember("of the target alone")
        else:
            name = "t1" if what == "another turn" else "t2"
            tenant.thread(name).append([{"role": "user", "content": "of the target alone"}])
        before = tenant.stats()

    with pytest.raises(ConflictError, match="other things"):
        move_memories(source, target)

    with opened(target) as hiermem:
        assert hiermem.tenant("acme").stats() == before


def test_a_location_cannot_be_moved_to_itself_nor_from_nowhere(source, tmp_path):
    with pytest.raises(ConfigurationError, match="is the source"):
        move_memories(source, source / "memory.db")
    with pytest.raises(ConfigurationError, match="nothing is stored"):
        move_memories(tmp_path / "nowhere", tmp_path / "target")

    assert not (tmp_path / "target").exists()


def test_nothing_to_move_is_told(tmp_path):
    opened(tmp_path / "empty").close()

    report = move_memories(tmp_path / "empty", tmp_path / "target")

    assert (report.tenants, report.exit_code) == ((), 3)
