#!/usr/bin/env bash
# How much of what PostgreSQL itself can do reaches a client: one throwaway cluster, one run.
#
#   bench/postgres.sh [BINARY] [PGVERSION] [N]     defaults: target/release/pinakes 15 20000
#
# Starts a cluster of its own with the durability of a fresh installation (fsync and synchronous_commit on), imports N
# datasets with FIELDS metadata fields, then measures in turn `pgbench -M prepared -c 16 -S`, GET of a random dataset by
# pid, and creating such datasets. Prints the figures and their ratios. Needs wrk.
# SECONDS_EACH=10, CONNECTIONS=64 and FIELDS=100 may be set.
set -euo pipefail

binary=$(realpath "${1:-target/release/pinakes}")
version=${2:-15}
n=${3:-20000}
seconds=${SECONDS_EACH:-10}
connections=${CONNECTIONS:-64}
fields=${FIELDS:-100}
bin=/usr/lib/postgresql/$version/bin
work=$(mktemp -d)
chmod 755 "$work"
server=""

as_postgres=()
if [ "$(id -u)" = 0 ]; then # the server refuses to run as root
    id postgres >/dev/null 2>&1 || useradd --system postgres
    as_postgres=(setpriv --reuid=postgres --regid=postgres --clear-groups)
fi
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    "${as_postgres[@]}" "$bin/pg_ctl" -D "$work/cluster/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap finish EXIT
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

mkdir "$work/cluster"
[ ${#as_postgres[@]} = 0 ] || chown postgres "$work/cluster"
"${as_postgres[@]}" "$bin/initdb" -D "$work/cluster/data" -U postgres -A trust --no-locale -E UTF8 >/dev/null
port=$(free_port)
"${as_postgres[@]}" "$bin/pg_ctl" -D "$work/cluster/data" -w -l "$work/cluster/log" \
    -o "-c listen_addresses=127.0.0.1 -p $port -k $work/cluster ${POSTGRES_OPTIONS:-}" start >/dev/null
database="postgres://postgres@127.0.0.1:$port/postgres"
place=(--data "$work/data" --database "$database")

"$binary" bench generate scicat-datasets --count "$n" --fields "$fields" --out "$work/datasets" >/dev/null
python3 - "$work" <<'PYTHON'
import json, sys

work = sys.argv[1]
pids = []
with open(f"{work}/datasets") as source, open(f"{work}/import", "w") as target, open(f"{work}/bodies", "w") as bodies:
    for number, line in enumerate(source):
        dataset = json.loads(line)
        dataset.pop("pid", None)
        dataset["ownerGroup"] = "ingestor"
        if number < 500:
            bodies.write(json.dumps(dataset) + "\n")
        dataset["pid"] = f"bench/{number:08}"
        dataset["isPublished"] = True
        target.write(json.dumps(dataset) + "\n")
PYTHON
# The first command makes the tables of all dialects, which is no part of an import.
echo password-of-the-bench | "$binary" user add ingestor --group ingestor "${place[@]}" >/dev/null
token=$("$binary" token create ingestor "${place[@]}" | grep -o 'pnk_[^ ]*' | head -1)
"$binary" import scicat --kind dataset "${place[@]}" "$work/import" >"$work/imported"
import=$(sed -n 's/.* s, \([0-9,]*\)\/s.*/\1/p' "$work/imported" | tail -1 | tr -d ,)
[ "${import:-0}" -gt 0 ] || { cat "$work/imported" >&2; echo "the import told no rate" >&2; exit 1; }

"$binary" serve "${place[@]}" --listen 127.0.0.1:0 >"$work/server" 2>"$work/server.log" &
server=$!
while ! grep -q 'listens on' "$work/server"; do sleep 0.1; kill -0 "$server"; done
url=$(sed -n 's/.*listens on \(http[^ ]*\).*/\1/p' "$work/server")

cat >"$work/get.lua" <<LUA
math.randomseed(7)
request = function()
    return wrk.format("GET", string.format("/api/v3/datasets/bench%%2F%08d", math.random(0, $n - 1)))
end
LUA
cat >"$work/post.lua" <<LUA
local bodies = {}
for line in io.lines("$work/bodies") do bodies[#bodies + 1] = line end
local headers = { ["Content-Type"] = "application/json", ["Authorization"] = "Bearer $token" }
local next = 0
request = function()
    next = next % #bodies + 1
    return wrk.format("POST", "/api/v3/datasets", headers, bodies[next])
end
LUA
rate() { awk '/Requests\/sec/ { print $2 }' "$1"; }
load() { # name, connections, script
    wrk -t1 -c"$2" -d"${seconds}s" --latency -s "$work/$3.lua" "$url" >"$work/$1"
    # A server that answers nothing has no answers to be wrong: one for each connection is the least.
    local answered
    answered=$(sed -n 's/^ *\([0-9]*\) requests in .*/\1/p' "$work/$1")
    if grep -q 'Non-2xx' "$work/$1" || [ "${answered:-0}" -lt "$2" ]; then
        cat "$work/$1" "$work/server.log" >&2
        echo "$1: ${answered:-0} answers, or wrong ones" >&2
        exit 1
    fi
}

"$bin/pgbench" -q -i -s 10 -h 127.0.0.1 -p "$port" -U postgres postgres >/dev/null 2>&1
pgbench=$("$bin/pgbench" -M prepared -c 16 -j 1 -S -T "$seconds" -h 127.0.0.1 -p "$port" -U postgres postgres 2>/dev/null |
    sed -n 's/^tps = \([0-9.]*\).*/\1/p')
[ -n "$pgbench" ] || { echo "pgbench told no rate" >&2; exit 1; }
wrk -t1 -c16 -d2s -s "$work/get.lua" "$url" >/dev/null
load get16 16 get
load get "$connections" get
load post "$connections" post
stored=$("$bin/psql" -h 127.0.0.1 -p "$port" -U postgres -Atc \
    "SELECT count(*) FROM \"pinakes:default\".k_scicat_dataset" postgres)

awk -v import="$import" -v pgbench="$pgbench" -v get16="$(rate "$work/get16")" -v get="$(rate "$work/get")" \
    -v post="$(rate "$work/post")" -v c="$connections" -v fields="$fields" -v n="$n" -v stored="$stored" 'BEGIN {
    printf "import of %d datasets with %d fields, indexes included: %d/s\n", n, fields, import
    printf "pgbench -M prepared -c 16 -S: %.0f/s\n", pgbench
    printf "GET by pid, 16 connections: %.0f/s, %.0f %% of pgbench\n", get16, 100 * get16 / pgbench
    printf "GET by pid, %d connections: %.0f/s, %.0f %% of pgbench\n", c, get, 100 * get / pgbench
    printf "create with %d fields, %d connections, synchronous_commit on: %.0f/s (%d datasets stored in the end)\n", fields, c, post, stored
}'
grep -h -A4 'Latency Distribution' "$work/post" | sed 's/^/create: /'
