# Shared by the drills: temporary PostgreSQL clusters and servers on free loopback ports, and waiting for
# conditions instead of fixed times. To be sourced by a drill; everything it started is stopped when it ends.
#
# PINAKES and DRILL name the programs (tests/drills/run builds them), PG_BIN the folder of PostgreSQL's. Under
# root the clusters run as the user postgres.

set -Eeuo pipefail
PINAKES=${PINAKES:?name the command: cargo build -p pinakes}
DRILL=${DRILL:?name the drill program: cargo build -p pinakes-store --example drill}
if [ -z "${PG_BIN:-}" ]; then
    PG_BIN=$(find /usr/lib/postgresql -maxdepth 3 -name pg_basebackup 2>/dev/null | sort -V | tail -1 | xargs -r dirname)
    [ -n "$PG_BIN" ] || PG_BIN=$(dirname "$(readlink -f "$(command -v pg_basebackup || echo none/none)")")
fi
[ -x "$PG_BIN/initdb" ] || { echo "no PostgreSQL: name the folder of its programs in PG_BIN"; exit 1; }
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
WORK=$(mktemp -d "${TMPDIR:-/tmp}/drill.XXXXXX")
# Maximum wait for anything, in seconds: far more than a busy machine needs.
PATIENCE=${PATIENCE:-120}
STARTED=()

if [ "$(id -u)" = 0 ]; then
    id postgres >/dev/null 2>&1 || useradd --system postgres
    chown postgres "$WORK"
    AS_OWNER=(setpriv --reuid=postgres --regid=postgres --clear-groups)
else
    AS_OWNER=()
fi
as_owner() { ${AS_OWNER[@]+"${AS_OWNER[@]}"} "$@"; }

say() { printf '  %s\n' "$*"; }

fail() {
    printf '  FAILED: %s\n' "$*"
    exit 1
}

# wait_for WHAT COMMAND...: waits until the command succeeds, at most PATIENCE seconds.
wait_for() {
    local what=$1 end=$((SECONDS + PATIENCE))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || fail "$what did not come to be within $PATIENCE s"
        sleep 0.1
    done
}

# in_background FILE COMMAND...: starts it with its output in FILE; its id is in $STARTED_PID.
in_background() {
    local file=$1
    shift
    "$@" >"$file" 2>"$file.err" &
    STARTED_PID=$!
    STARTED+=("$STARTED_PID")
}

# Below the range of outgoing connections, which could occupy it before the server does.
free_port() {
    python3 - <<'PYTHON'
import random, socket
while True:
    port = random.randrange(20000, 32000)
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            continue
    print(port)
    break
PYTHON
}

# make_cluster NAME: creates a cluster that is not running yet.
make_cluster() {
    as_owner "$PG_BIN/initdb" -D "$WORK/$1" -A trust -U postgres --no-locale -E UTF8 >"$WORK/$1.initdb" 2>&1 ||
        fail "initdb: $(tail -3 "$WORK/$1.initdb")"
    set_in_cluster "$1" listen_addresses "'127.0.0.1'"
    set_in_cluster "$1" unix_socket_directories "'$WORK'"
    set_in_cluster "$1" max_connections 200
    set_in_cluster "$1" max_pred_locks_per_transaction 512
    set_in_cluster "$1" port "$(free_port)"
}

# set_in_cluster NAME KEY VALUE: the last line of a key counts.
set_in_cluster() { echo "$2 = $3" | as_owner tee -a "$WORK/$1/postgresql.conf" >/dev/null; }

port_of() { sed -n 's/^port = //p' "$WORK/$1/postgresql.conf" | tail -1; }

url_of() { echo "postgres://postgres@127.0.0.1:$(port_of "$1")/postgres"; }

# start_cluster NAME: also after a kill, once the remains of the old server are gone. A port that has been taken
# meanwhile is replaced by another.
start_cluster() {
    local tries
    for tries in 1 2 3 4 5; do
        wait_for "the end of the old server of $1" no_server_in "$1"
        if as_owner "$PG_BIN/pg_ctl" -D "$WORK/$1" -l "$WORK/$1.log" -w -t "$PATIENCE" start >/dev/null 2>&1; then
            return
        fi
        grep -q 'Address already in use' "$WORK/$1.log" || break
        set_in_cluster "$1" port "$(free_port)"
    done
    fail "cluster $1 does not start: $(tail -3 "$WORK/$1.log")"
}

# Succeeds if no process uses the folder of a cluster as its working directory.
no_server_in() {
    local pid
    for pid in $(processes_of "$1"); do
        if [ -d "/proc/$pid" ]; then return 1; fi
    done
}

# The server of a cluster and its children, as of the last call while it was running.
processes_of() {
    local pid main
    main=$(head -1 "$WORK/$1/postmaster.pid" 2>/dev/null || true)
    if [ -n "$main" ] && [ -d "/proc/$main" ]; then
        { echo "$main"; for pid in $(children_of "$main"); do echo "$pid"; done; } >"$WORK/$1.processes"
    fi
    cat "$WORK/$1.processes" 2>/dev/null || true
}

children_of() { cat "/proc/$1/task/$1/children" 2>/dev/null || true; }

# kill_cluster NAME: like a power failure, as far as a process can tell.
kill_cluster() {
    local main
    processes_of "$1" >/dev/null
    main=$(head -1 "$WORK/$1/postmaster.pid")
    kill -KILL "$main"
}

stop_cluster() { as_owner "$PG_BIN/pg_ctl" -D "$WORK/$1" -m "${2:-fast}" -w -t "$PATIENCE" stop >/dev/null; }

# sql NAME STATEMENT: prints the bare result.
sql() { "$PG_BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 -d "$(url_of "$1")" -c "$2"; }

# start_server NAME ARGUMENTS...: `pinakes serve`; its address is then in $WORK/NAME.url, its id in $WORK/NAME.pid.
start_server() {
    local name=$1
    shift
    rm -f "$WORK/$name.out" # output of an earlier server
    in_background "$WORK/$name.out" "$PINAKES" serve --data "${DATA:-$WORK/$name.data}" --listen "${LISTEN:-127.0.0.1:0}" "$@"
    echo "$STARTED_PID" >"$WORK/$name.pid"
    wait_for "server $name" is_listening_or_dead "$name"
    is_listening "$name" || fail "server $name stopped: $(tail -3 "$WORK/$name.out.err")"
    sed -n 's/.*listens on \(http:[^ ]*\).*/\1/p' "$WORK/$name.out" >"$WORK/$name.url"
}

is_listening() { grep -qs 'listens on http' "$WORK/$1.out"; }
is_listening_or_dead() { is_listening "$1" || ! is_alive "$(cat "$WORK/$1.pid")"; }
is_alive() { [ -d "/proc/$1" ] && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }
server_url() { cat "$WORK/$1.url"; }
pid_of() { cat "$WORK/$1.pid"; }

# ready NAME: succeeds if a server reports that it is ready.
ready() { [ "$(status_of "$(server_url "$1")/health/ready")" = 200 ]; }
not_ready() { [ "$(status_of "$(server_url "$1")/health/ready")" = 503 ]; }
# The status of an answer, 000 if there is none.
status_of() { curl -s -o "$WORK/body" -w '%{http_code}' -m "$PATIENCE" "$@" || true; }

# Stops everything that was started, whatever its state; nothing here may fail.
end_all() {
    local code=$? pid cluster
    set +e
    trap - EXIT INT TERM ERR
    exec 2>/dev/null # the shell reports each process that was killed
    for pid in ${STARTED[@]+"${STARTED[@]}"}; do
        kill -CONT "$pid"
        kill -KILL "$pid"
    done
    for cluster in "$WORK"/*/postmaster.pid; do
        [ -f "$cluster" ] || continue
        for pid in $(processes_of "$(basename "$(dirname "$cluster")")"); do kill -CONT "$pid" 2>/dev/null; done
        as_owner "$PG_BIN/pg_ctl" -D "$(dirname "$cluster")" -m immediate -w -t 30 stop >/dev/null 2>&1
    done
    wait 2>/dev/null
    if [ -n "${MOUNTED:-}" ]; then umount -l "$MOUNTED" 2>/dev/null; fi
    if [ "$code" != 0 ] && [ -n "${KEEP:-}" ]; then echo "  kept: $WORK"; else rm -rf "$WORK"; fi
    exit "$code"
}
trap end_all EXIT
trap 'printf "  FAILED: line %s of %s: %s\n" "$LINENO" "$(basename "${BASH_SOURCE[0]}")" "$BASH_COMMAND"' ERR
trap 'exit 130' INT TERM
