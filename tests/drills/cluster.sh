# Throwaway PostgreSQL clusters on loopback, for the drills; to be sourced.
# PG_BIN names the programs' folder; as root they run as the user postgres.

set -euo pipefail
PG_BIN=${PG_BIN:-/usr/lib/postgresql/15/bin}
WORK=$(mktemp -d "${TMPDIR:-/tmp}/pinakes-drill.XXXXXX")
DRILL=${DRILL:?name the drill program: cargo build --release -p pinakes-store --example drill}

as_owner() {
    if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; else "$@"; fi
}

# make_cluster NAME PORT
make_cluster() {
    as_owner "$PG_BIN/initdb" -D "$WORK/$1" -A trust -U postgres --locale=C.UTF-8 -E UTF8 >/dev/null
    cat >>"$WORK/$1/postgresql.conf" <<CONF
port = $2
listen_addresses = '127.0.0.1'
unix_socket_directories = '$WORK'
max_connections = 200
max_pred_locks_per_transaction = 512
CONF
}

# start_cluster NAME
start_cluster() { as_owner "$PG_BIN/pg_ctl" -D "$WORK/$1" -l "$WORK/$1.log" -w start >/dev/null; }

# kill_cluster NAME: as a power cut does, as far as a process can tell. The shared memory goes with the server's
# own clean-up of its children, for which a moment is left.
kill_cluster() { kill -KILL "$(head -1 "$WORK/$1/postmaster.pid")"; }

stop_all() {
    for pid in "$WORK"/*/postmaster.pid; do
        [ -f "$pid" ] && as_owner "$PG_BIN/pg_ctl" -D "$(dirname "$pid")" -m immediate stop >/dev/null 2>&1 || true
    done
    rm -rf "$WORK"
}
trap stop_all EXIT
[ "$(id -u)" = 0 ] && chown postgres "$WORK"
