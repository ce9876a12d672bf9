# Thin lines over cargo and scripts. Needs Rust, Python 3 and gcc; the tests also need PostgreSQL's server programs,
# which they install from Debian by themselves when they run as root.
export CARGO_TARGET_DIR ?= $(CURDIR)/target
PYTHON ?= python3

.PHONY: build up test lint rust-test example-test smoke soak bench-path bench-log
# One after the other: the runners' summaries come last, and cargo locks its folder anyway.
.NOTPARALLEL:

build:
	cargo build --locked -p kashi -p kashi-agent

up: build
	$(CARGO_TARGET_DIR)/debug/kashi up --simulate-cards 4

test: lint rust-test example-test smoke

lint:
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings

# The programs are built first, so that no test that starts them has to.
rust-test: build
	export KASHI_PROGRAMS_BUILT=1; if cargo nextest --version >/dev/null 2>&1; then cargo nextest run --locked --workspace; else cargo test --locked --workspace; fi

example-test:
	cd examples/hello-train && PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -m unittest

smoke: build
	scripts/smoke.sh

# FAULTS=n and SEED=s tell another run; its last line is JSON.
soak: build
	KASHI_PROGRAMS_BUILT=1 cargo run --locked --quiet -p system-tests --bin soak

bench-path: build
	scripts/bench-path.sh

bench-log:
	cargo bench --locked -p eventlog --bench append
