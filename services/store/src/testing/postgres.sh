#!/bin/sh
# A private PostgreSQL on a unix socket in a folder of its own. Says "ready" once it answers, or in one line why it never
# will, and lives until its standard input closes; then it ends the server, by its pid, and deletes the folder.
#
# $1 is the folder, $2 is "fast" or "durable"; $0 is this script's text when it is run by `sh -c`. Settings: PG_BIN is
# where the server's programs are, if not where Debian puts them.
set -eu
folder=$1 durability=$2
temp=${TMPDIR:-/tmp}
wait_max_s=600

# The only line that is read.
fail() {
    echo "$*"
    exit 1
}

# Debian keeps several versions beside each other; the newest is last.
find_bin() {
    bin=
    for candidate in ${PG_BIN:-/usr/lib/postgresql/*/bin}; do
        if [ -x "$candidate/initdb" ] && [ -x "$candidate/postgres" ]; then
            bin=$candidate
        fi
    done
    [ -n "$bin" ]
}

# Another process may hold apt's own locks, which `apt-get update` does not wait for. Ours is not for the daemons that an
# installation may start.
apt() {
    deadline=$(($(date +%s) + wait_max_s))
    export LC_ALL=C DEBIAN_FRONTEND=noninteractive
    until said=$(apt-get -qq -o "DPkg::Lock::Timeout=$wait_max_s" "$@" 2>&1 8>&-); do
        case $said in
        *'Could not get lock'* | *'Unable to'*'lock'*)
            [ "$(date +%s)" -lt "$deadline" ] || fail "PostgreSQL is missing and another holds apt's lock for $wait_max_s s"
            ;;
        *) fail "PostgreSQL is missing and \`apt-get $*\` failed: $(echo "$said" | tail -n 3 | tr '\n' ' ')" ;;
        esac
        sleep 1
    done
}

install() {
    command -v apt-get >/dev/null || fail "PostgreSQL is missing and there is no apt-get; install it and set PG_BIN"
    exec 8>"$temp/kashi-postgres-install.lock"
    flock 8
    if ! find_bin; then
        apt update
        apt install -y postgresql
        find_bin || fail "PostgreSQL was installed, but not to /usr/lib/postgresql; set PG_BIN"
    fi
    exec 8>&-
}

# $1 is where to, the rest are options. What initdb writes is not waited for: only a crash of the machine would tell.
new_cluster() {
    "$bin/initdb" -D "$@" --no-sync -U postgres -A trust -E UTF8 --locale=C.UTF-8 >initdb.log 2>&1 ||
        fail "initdb failed: $(tail -n 3 initdb.log | tr '\n' ' ')"
}

# `initdb` takes most of the time, so it runs once for each user and version, and its result is copied.
copy_of_template() {
    template=$temp/kashi-postgres-$("$bin/postgres" --version | cut -d ' ' -f 3)-$(id -u)
    exec 9>"$template.lock"
    flock 9
    if [ ! -d "$template" ]; then
        rm -rf "$template.new"
        new_cluster "$template.new" --wal-segsize=1
        mv "$template.new" "$template"
    fi
    [ -O "$template" ] || fail "$template belongs to somebody else: delete it"
    exec 9>&-
    cp -r "$template" data || fail "$template could not be copied to $folder"
    chmod 700 data
}

if ! find_bin; then
    [ -z "${PG_BIN:-}" ] || fail "PG_BIN=$PG_BIN has no initdb and postgres"
    [ "$(id -u)" = 0 ] ||
        fail 'PostgreSQL is missing. Install it once: sudo apt-get update && sudo apt-get install -y postgresql'
    install
fi
if [ "$(id -u)" = 0 ]; then
    # The server refuses to run as root.
    chown postgres "$folder"
    exec runuser -u postgres -- sh -c "$0" "$0" "$folder" "$durability"
fi

cd "$folder"
pid=
finish() {
    # Nothing of it is kept, so it need not end in order.
    [ -z "$pid" ] || { kill -QUIT "$pid" 2>/dev/null && wait "$pid"; } || true
    rm -rf "$folder"
}
trap finish EXIT
# Nobody reads `ready` if the test ended half-way.
trap 'exit 1' HUP INT TERM PIPE
set -- -D data -k "$folder" -c listen_addresses= -c max_connections=200
if [ "$durability" = fast ]; then
    copy_of_template
    set -- "$@" -c fsync=off -c full_page_writes=off -c shared_buffers=16MB
else
    new_cluster data
fi
"$bin/postgres" "$@" </dev/null >postgres.log 2>&1 &
pid=$!
until "$bin/pg_isready" -q -h "$folder" -U postgres; do
    kill -0 "$pid" 2>/dev/null || fail "postgres did not start: $(tail -n 3 postgres.log | tr '\n' ' ')"
    sleep 0.02
done
echo ready
read -r _ || true
