#!/usr/bin/env bash
# Runs the README's quickstart to the letter, on a fresh data folder and a free port, and checks what came of it.
# Ends what it started, by process group. Takes less than SECONDS_MAX after the build.
set -euo pipefail
cd "$(dirname "$0")/.."
SECONDS_MAX=60

folder=$(mktemp -d)
mkdir "$folder/quickstart"
python3 scripts/quickstart.py README.md "$folder/quickstart"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export KASHI_DATA="$folder/data" KASHI_LISTEN="127.0.0.1:$port" KASHI_HOST="http://127.0.0.1:$port"
export KASHI_CONFIG_DIR="$folder/config"

up=
start() {
    setsid bash "$folder/quickstart/1.sh" >"$folder/up.log" 2>&1 &
    up=$!
    for _ in $(seq 200); do
        grep -q 'kashi is up at' "$folder/up.log" && return
        kill -0 "$up" || break
        sleep 0.1
    done
    cat "$folder/up.log" >&2
    exit 1
}
stop() {
    [ -n "$up" ] || return 0
    kill -INT -- "-$up" 2>/dev/null || true
    wait "$up" 2>/dev/null || true
    up=
}
finish() {
    status=$?
    stop
    [ "$status" = 0 ] || { echo "--- the server said:" >&2; tail -50 "$folder/up.log" >&2; }
    rm -rf "$folder"
    exit "$status"
}
trap finish EXIT

begun=$(date +%s)
start
sed -n 's/^one-time secret of the first operator: //p' "$folder/up.log" | bash -euo pipefail "$folder/quickstart/2.sh"
stop
# It goes on where it was: the same job, the same bill.
start
export PATH="${CARGO_TARGET_DIR:-$PWD/target}/debug:$PATH"
python3 scripts/smoke_check.py
# A job runs on while the platform is stopped, and is taken up again.
job=$(kashi --profile li submit -q --name outlives --cards 1 --model sim-a100 -- sh -c 'echo begun; sleep 4; echo over')
for _ in $(seq 100); do
    kashi --profile li -o json show "$job" | grep -q '"status": "running"' && break
    sleep 0.1
done
stop
start
kashi --profile li wait "$job" --timeout 20 >/dev/null
[ "$(kashi --profile li logs "$job")" = $'begun\nover' ] || { echo "the job's output is not whole" >&2; exit 1; }
stop
took=$(($(date +%s) - begun))
[ "$took" -le "$SECONDS_MAX" ] || { echo "the quickstart took $took s, at most $SECONDS_MAX s are allowed" >&2; exit 1; }
if pgrep -f "$folder" >/dev/null; then
    echo "processes are left:" >&2
    pgrep -af "$folder" >&2
    exit 1
fi
echo "smoke: the quickstart works as written, in $took s"
