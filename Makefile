# The jobs of a developer. `make demo` and `make test` do all set-up themselves (see setup.sh).
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-system test-spark test-full lint types contracts vocabulary facts lock check clean

demo:
	./setup.sh demo

test:
	./setup.sh test

# What takes a server and a worker of the scheduler, or many kills: some minutes more.
test-system:
	./setup.sh test -m "system and not slow"

# What starts Spark: installs Java and pyspark where they are missing.
test-spark:
	./setup.sh spark

# Every test, the larger samples too.
test-full:
	./setup.sh test -m "slow or not slow"

$(BIN)/ruff:
	./setup.sh install

lint: $(BIN)/ruff
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(BIN)/ruff
	$(BIN)/mypy

contracts: $(BIN)/ruff
	$(BIN)/lint-imports

# Writes schemas/vocabulary.json anew; a test fails where it is out of date.
vocabulary: $(BIN)/ruff
	$(BIN)/python -m weighbridge.schemas.export schemas/vocabulary.json

# Writes docs/usage-facts.md anew; a test fails where it is out of date.
facts: $(BIN)/ruff
	$(BIN)/python -m weighbridge.pipeline.ingest.facts_page docs/usage-facts.md

# Writes constraints.txt from what is installed in the environment.
lock: $(BIN)/ruff
	$(BIN)/python .ci/lock.py

# All that .ci/run does.
check:
	bash .ci/run

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist out
