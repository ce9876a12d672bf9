#!/usr/bin/env bash
# How fast the path is: from the start of `kashi up` to serving, and from `submit` to the job's process.
# Prints one line of JSON, last.
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 scripts/bench_path.py "${CARGO_TARGET_DIR:-$PWD/target}/debug/kashi"
