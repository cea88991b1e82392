"""An inspector in this process, and one that a real browser opens."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import httpx
import pytest
from inspector_door import DOOR, HOME, IMAGE, SCRIPT

from hiermem_core import HierMem
from hiermem_core.inspector.pages import create_app


def cheap_model(_messages):
    facts = [f"Tobias is allergic to latex {IMAGE}", "Prices are in SEK"]
    return json.dumps({"summary": f"They plan. {SCRIPT}", "facts": facts, "retract": []})


def fill(memory):
    """Store two threads with notes, and entries, some of them hostile."""
    alice = memory.tenant("alice")
    chat = alice.thread("trip")
    chat.append([{"role": "user", "content": f"Tobias is allergic to latex. {SCRIPT}"}])
    chat.append([{"role": "assistant", "content": f"Noted. {IMAGE}"}])
    for number in range(40):
        chat.append([{"role": "user", "content": f"Question {number} about the weather?"}])
        chat.append([{"role": "assistant", "content": f"Answer {number}: it rains again."}])
    chat.save_context()
    memory.when_idle(30)
    alice.thread(SCRIPT).append([{"role": "user", "content": "A thread with a bad name"}])
    alice.remember("Prefers meetings in the morning", namespace="profile", key="meetings")
    alice.remember(f"A memory {SCRIPT}", namespace=f"bad/{SCRIPT[:8]}", tags=[IMAGE])
    for number in range(30):
        alice.remember(f"Note {number} about a ribbon", namespace="notes")
    memory.tenant("bob").remember("The secret of bob", namespace="profile")


@pytest.fixture
def memory():
    with HierMem.open(":memory:", chat_model=cheap_model, update_every_turns=1) as opened:
        fill(opened)
        yield opened


@pytest.fixture
async def client(memory):
    """Ask an inspector that may open alice and carol."""
    app = create_app(memory, tenants=["alice", "carol"], door=DOOR)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=HOME + "/") as opened:
        yield opened


@pytest.fixture(scope="module")
def browser():
    """Start a real browser, without a head; it holds this thread's event loop until it ends."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        yield browser
        browser.close()


@pytest.fixture
def address(tmp_path):
    """Serve a memory by `hiermem inspect` in a process of its own; return its address."""
    place = tmp_path / "memory"
    with HierMem.open(place, chat_model=cheap_model, update_every_turns=1) as memory:
        fill(memory)
    command = [sys.executable, "-m", "hiermem_core.cli", "inspect", "--json", "--tenant", "alice"]
    environment = {**os.environ, "HIERMEM_LOCATION": str(place), "HIERMEM_LOCAL_EMBEDDER": "false"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        told = json.loads("".join(process.stdout.readline() for _ in range(6)))
        yield told["address"]
        process.terminate()
