# PML: `make help` says what there is.
.DEFAULT_GOAL := help
.PHONY: help up down psql build extension install deb test test-deb test-all lint bench fuzz clean

# Given as PG_MAJOR=16 or PG_CONFIG=/path/to/pg_config; otherwise scripts/env chooses.
ifdef PG_MAJOR
export PG_MAJOR
endif
ifdef PG_CONFIG
export PG_CONFIG
endif
ifdef PML_PORT
export PML_PORT
endif
ifdef PREFIX
export PREFIX
endif

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: build ## Start a private Postgres and the proxy in front of it, and print how to connect
	@scripts/tree
	@scripts/up

down: ## Stop the proxy and the private Postgres; the data stays
	@scripts/down

psql: ## Open psql on it (standard input is passed through)
	@scripts/psql

build: ## Install what is missing and build
	@scripts/setup
	@scripts/build

extension: ## Build the extension only
	@scripts/setup
	@scripts/build extension

install: build ## Install the extension into the Postgres that PG_CONFIG names, and pml into PREFIX/bin (/usr/local)
	@scripts/install

deb: build ## Build Debian packages of the extension and the proxy, in target/deb
	@scripts/deb

lint: ## Check formatting, clippy and every PL/pgSQL function
	@scripts/setup tests
	@scripts/build extension
	@scripts/tree
	@scripts/lint

test: lint ## Run all tests, the SQL tests also on the newest major of Postgres
	@scripts/test

test-deb: deb ## Install the packages into a fresh system, use them, remove them (needs root)
	@tests/packages/run

test-all: test test-deb ## Run all tests, the SQL tests on every supported major of Postgres, and those of the packages
	@scripts/test-majors

bench: build ## Print the benchmarks
	@scripts/tree
	@scripts/bench

fuzz: extension ## Fuzz the compiler, and the database with hostile roles (PML_FUZZ_SECONDS a target)
	@scripts/tree
	@scripts/fuzz

clean: down ## Stop the private Postgres and remove it, with its data
	@scripts/clean
