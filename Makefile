# The one entry point. `make demo` and `make test` need only Python >= 3.11, git and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LOWEST := $(VENV)-lowest
PROPERTIES := p1_ or p2_ or p3_ or p4_ or p5_ or p6_ or p7_ or p8_ or p9_ or p10_ or p11_ or p12_ or p13_ or p14_ or a29_ or a49_ or working_rules or d11_what
WORKERS ?= auto
SERVED ?= tests/langchain tests/llamaindex

.PHONY: demo test test-servers test-lowest test-matrix test-long fuzz conformance conformance-langchain conformance-llamaindex lint format bench notebooks docs clean

demo: $(VENV)/.demo  ## run the main job on a real conversation: no key, no server
	@$(BIN)/hiermem demo
	@$(BIN)/python examples/demo.py

test: $(VENV)/.develop  ## run every test
	$(BIN)/pytest --numprocesses=$(WORKERS)

test-servers: $(VENV)/.develop  ## what both plugins (or SERVED) store, in PostgreSQL and on a Chroma server
	TEST_ON_SERVERS=1 TEST_REQUIRE_POSTGRES=1 $(BIN)/pytest --numprocesses=$(WORKERS) --timeout=240 $(SERVED)

test-lowest: $(LOWEST)/plain/.ready $(LOWEST)/agents/.ready  ## the LangChain plugin at the lowest versions it declares
	$(LOWEST)/plain/bin/pytest --numprocesses=$(WORKERS) tests/langchain --ignore=tests/langchain/agents
	$(LOWEST)/agents/bin/pytest --numprocesses=$(WORKERS) tests/langchain

test-long: $(VENV)/.develop  ## properties with a thousand examples each, kills at 20,000 vectors, 10,000 turns; takes a while
	$(BIN)/pytest --numprocesses=$(WORKERS) --hypothesis-profile=long --timeout=1200 -k "$(PROPERTIES)"
	TEST_THREAD_TURNS=10000 $(BIN)/pytest --timeout=1200 tests/core/test_long_thread.py
	TEST_WORKING_ROUNDS=20 $(BIN)/pytest --timeout=1200 tests/core/working/test_races.py
	TEST_INDEX_KILLS=24 TEST_INDEX_ROWS=20000 $(BIN)/pytest --timeout=1200 -k a48 tests/core/test_index_crashes.py

test-matrix: $(VENV)/.pip  ## the LlamaIndex plugin on every version it supports, or on CELLS; downloads them
	$(BIN)/python tests/matrix.py $(if $(CELLS),--cells $(CELLS))

fuzz: $(VENV)/.develop  ## anything at all, given to everything public; takes a while
	$(BIN)/pytest --numprocesses=$(WORKERS) --hypothesis-profile=fuzz --timeout=7200 tests/fuzzing

conformance: conformance-langchain conformance-llamaindex  ## the frameworks' own tests, on HierMem

conformance-langchain: $(VENV)/.develop  ## LangChain's and LangGraph's own tests; downloads them
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group conformance
	$(BIN)/pytest --numprocesses=$(WORKERS) -rs tests/conformance

conformance-llamaindex: $(VENV)/.develop  ## LlamaIndex's own tests; LLAMA_INDEX_TESTS names a checkout's
	$(BIN)/python tests/conformance/llamaindex.py

lint: $(VENV)/.develop  ## style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.develop  ## rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.develop  ## measure beside the peers; prints tables, writes benchmarks/results/
	$(BIN)/python benchmarks/context_cost.py
	$(BIN)/python benchmarks/learning_cost.py
	$(BIN)/python benchmarks/working_memory.py
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group bench
	$(BIN)/python benchmarks/langchain_overhead.py
	$(BIN)/python benchmarks/langgraph_store.py
	$(BIN)/python benchmarks/llamaindex_overhead.py
	$(BIN)/python benchmarks/importing.py
	$(BIN)/python benchmarks/search_scale.py
	$(BIN)/python benchmarks/scale_out.py
	if [ -n "$(LOCOMO_FILE)" ]; then $(BIN)/python benchmarks/recall_locomo.py --data "$(LOCOMO_FILE)"; fi

notebooks: $(VENV)/.pages  ## run the notebooks anew and keep what they show
	$(BIN)/python notebooks/run.py

docs: $(VENV)/.pages  ## write docs/cli.md from the commands, and the site; a warning is an error
	$(BIN)/python docs/write_cli.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site is site/index.html"

clean:  ## remove what make has made
	rm -rf $(VENV) $(LOWEST) .matrix site dist build .mypy_cache .ruff_cache .hypothesis

$(VENV)/.pip:
	@echo "Making a virtual environment in $(VENV) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "HierMem needs Python 3.11 or newer; try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@touch $@

$(VENV)/.demo: pyproject.toml | $(VENV)/.pip
	@echo "Installing HierMem with its local embedder and its LangChain and LlamaIndex plugins ..."
	@$(BIN)/python -m pip install --quiet --editable ".[embed,langchain,llamaindex]"
	@touch $@

$(VENV)/.develop: pyproject.toml | $(VENV)/.pip
	@echo "Installing HierMem and what its tests need ..."
	@$(BIN)/python -m pip install --quiet --editable ".[all]" --group test --group sources --group browser --group lint
	@touch $@ $(VENV)/.demo

$(LOWEST)/plain/.ready: EXTRAS := chroma,embed,langchain,langchain-classic,langgraph
$(LOWEST)/plain/.ready: CONSTRAINTS := tests/lowest.txt
$(LOWEST)/agents/.ready: EXTRAS := agents,chroma,embed,langchain,langchain-classic,langgraph
$(LOWEST)/agents/.ready: CONSTRAINTS := tests/lowest-agents.txt

$(LOWEST)/%/.ready: pyproject.toml tests/lowest.txt tests/lowest-agents.txt
	@echo "Installing the lowest versions of $(CONSTRAINTS) ..."
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	@$(@D)/bin/python -m pip install --quiet --editable ".[$(EXTRAS)]" --group test --constraint $(CONSTRAINTS)
	@touch $@

$(VENV)/.pages: pyproject.toml | $(VENV)/.develop
	@echo "Installing what the notebooks and the documentation need ..."
	@$(BIN)/python -m pip install --quiet --editable ".[all]" --group notebooks --group docs
	@touch $@
