#!/usr/bin/env bash
# Two servers are restarted one after the other under load, as for an upgrade. No acknowledged write is lost; the
# worst that a client sees is a connection closed between answers, one refused, or 503.
. "$(dirname "$0")/cluster.sh"

make_cluster db
start_cluster db
export CREATE_DATASET_WITH_PID_GROUPS='#all'
config="$WORK/pinakes.toml"
printf '[server]\ndatabase = "%s"\n[limits]\ndatabase_sessions = 12\n' "$(url_of db)" >"$config"
# Each restarts at its old address.
LISTEN="127.0.0.1:$(free_port)" start_server a --config "$config"
LISTEN="127.0.0.1:$(free_port)" start_server b --config "$config"
wait_for "server a" ready a
wait_for "server b" ready b
echo a-password-of-drills | "$PINAKES" user add drill --group drill --data "$WORK/cli.data" --config "$config" >/dev/null
token=$("$PINAKES" token create drill --name load --data "$WORK/cli.data" --config "$config" 2>/dev/null | grep -o 'pnk_[A-Za-z0-9_-]*' | head -1)
[ -n "$token" ] || fail "no token"

: >"$WORK/acks"
in_background "$WORK/load" python3 "$HERE/load.py" write "$token" drill "$WORK/acks" "$(server_url a)" "$(server_url b)"
load=$STARTED_PID
acknowledged() { [ "$(wc -l <"$WORK/acks")" -ge "$1" ] || [ -s "$WORK/load.err" ]; }
more() { wait_for "$1 more writes" acknowledged $(($(wc -l <"$WORK/acks") + $1)); }
more 60
for name in a b a; do
    kill -TERM "$(pid_of "$name")"
    wait "$(pid_of "$name")" || fail "server $name did not stop in order: $(tail -3 "$WORK/$name.out.err")"
    grep -q 'all answers under way were finished' "$WORK/$name.out" || fail "$name cut answers: $(cat "$WORK/$name.out")"
    more 40
    address=$(server_url "$name")
    LISTEN=${address#http://} start_server "$name" --config "$config"
    wait_for "server $name" ready "$name"
    more 40
done
kill -TERM "$load"
wait "$load" || fail "a client saw what it should not: $(cat "$WORK/load" "$WORK/load.err")"
say "$(cat "$WORK/load")"
say "$(python3 "$HERE/load.py" verify "$token" "$WORK/acks" "$(server_url a)")" || fail "writes are lost"
"$PINAKES" check --data "$WORK/cli.data" --config "$config" | grep -q 'default: sound' || fail "the catalogue is not sound"
