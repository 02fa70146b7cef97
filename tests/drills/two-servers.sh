#!/usr/bin/env bash
# Two servers over one database. They start simultaneously on an empty database: the tables are created once. Each sees the
# changes of the other: logins, records, a revoked token. One is killed under load: everything that either acknowledged
# is present, and the other continues. Then the same on the level of the store, with transactions that count their writes.
. "$(dirname "$0")/cluster.sh"

make_cluster db
start_cluster db
export CREATE_DATASET_WITH_PID_GROUPS='#all'
config="$WORK/pinakes.toml"
printf '[server]\ndatabase = "%s"\n[limits]\ndatabase_sessions = 12\n' "$(url_of db)" >"$config"
start_server a --config "$config" &
first=$!
start_server b --config "$config"
wait "$first" || fail "server a did not start"
# The starts ran in separate processes, but end_all must know their ids.
STARTED+=("$(pid_of a)" "$(pid_of b)")
wait_for "server a" ready a
wait_for "server b" ready b

echo a-password-of-drills | "$PINAKES" user add drill --group drill --data "$WORK/cli.data" --config "$config" >/dev/null
login() {
    curl -s -m "$PATIENCE" -H 'Content-Type: application/json' "$(server_url "$1")/api/v3/auth/login" \
        -d '{"username":"drill","password":"a-password-of-drills"}' |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])'
}
token=$(login a)
[ -n "$token" ] || fail "no login at a"
me() { status_of -H "Authorization: Bearer $2" "$(server_url "$1")/api/v3/users/my/self"; }
[ "$(me a "$token")" = 200 ] || fail "a does not know its own login"
[ "$(me b "$token")" = 200 ] || fail "b does not know a login of a"
say "a login at one server holds at the other"

api=$("$PINAKES" token create drill --name passing --data "$WORK/cli.data" --config "$config" 2>/dev/null | grep -o 'pnk_[A-Za-z0-9_-]*' | head -1)
[ "$(me a "$api")" = 200 ] && [ "$(me b "$api")" = 200 ] || fail "an API token does not hold at both"
"$PINAKES" token remove drill passing --data "$WORK/cli.data" --config "$config" >/dev/null
gone_at() { [ "$(me "$1" "$api")" = 401 ]; }
wait_for "the end of a token at a" gone_at a
wait_for "the end of a token at b" gone_at b
say "a token that is taken back ends at both"

: >"$WORK/acks"
in_background "$WORK/load" python3 "$HERE/load.py" write "$token" drill "$WORK/acks" "$(server_url a)" "$(server_url b)"
load=$STARTED_PID
acknowledged() { [ "$(wc -l <"$WORK/acks")" -ge "$1" ] || [ -s "$WORK/load.err" ]; }
wait_for "100 writes" acknowledged 100
kill -KILL "$(pid_of a)"
before=$(wc -l <"$WORK/acks")
wait_for "100 writes after the kill" acknowledged $((before + 100))
kill -TERM "$load"
wait "$load" || true # a server that is killed may leave half an answer
say "$(cat "$WORK/load")"
say "$(python3 "$HERE/load.py" verify "$token" "$WORK/acks" "$(server_url b)")" || fail "writes are lost"
"$PINAKES" check --data "$WORK/cli.data" --config "$config" | grep -q 'default: sound' || fail "the catalogue is not sound"

# The store itself: transactions that read what they change, from two processes, one killed.
place="$(url_of db)?catalogue=drill"
in_background "$WORK/acks.x" "$DRILL" write "$place" x 600
x=$STARTED_PID
in_background "$WORK/acks.y" "$DRILL" write "$place" y 600
y=$STARTED_PID
wrote() { [ "$(grep -c . "$WORK/acks.$1")" -ge "$2" ]; }
wait_for "writes of x" wrote x 50
wait_for "writes of y" wrote y 50
kill -KILL "$x"
wait_for "writes of y after the kill" wrote y $(($(grep -c . "$WORK/acks.y") + 50))
kill -KILL "$y"
wait "$x" "$y" 2>/dev/null || true
# A line that was cut off by the kill was not read.
cat "$WORK"/acks.[xy] | grep -E '^ack [xy]-[0-9]+/[0-9]+$' >"$WORK/acks.store"
"$DRILL" verify "$place" <"$WORK/acks.store" 2>"$WORK/verified" || fail "$(cat "$WORK/verified")"
say "of the store's: $(wc -l <"$WORK/acks.store") acknowledged, all there, counts right"
