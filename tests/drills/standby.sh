#!/usr/bin/env bash
# Reads from a standby with a maximum lag: it answers anonymous callers, the primary answers logged-in ones.
# A standby that is too far behind, knows other declarations, or is dead, is skipped.
. "$(dirname "$0")/cluster.sh"

make_cluster primary
as_owner bash -c "echo 'host replication postgres 127.0.0.1/32 trust' >>'$WORK/primary/pg_hba.conf'"
start_cluster primary
as_owner "$PG_BIN/pg_basebackup" -d "$(url_of primary)" -D "$WORK/standby" -X stream -c fast
as_owner touch "$WORK/standby/standby.signal"
set_in_cluster standby primary_conninfo "'host=127.0.0.1 port=$(port_of primary) user=postgres'"
set_in_cluster standby port "$(free_port)"
start_cluster standby

place="postgres://postgres@127.0.0.1:$(port_of primary),127.0.0.1:$(port_of standby)/postgres"
echo a-password-of-drills | "$PINAKES" user add drill --group drill --data "$WORK/data" --database "$place" >/dev/null
token=$("$PINAKES" token create drill --data "$WORK/data" --database "$place" 2>/dev/null)
add() {
    printf '{"pid":"drill/%s","type":"raw","datasetName":"n","owner":"drill","ownerGroup":"drill","contactEmail":"d@example.org","sourceFolder":"/d","creationLocation":"/D/1","creationTime":"2026-03-05T00:00:00.000Z","principalInvestigator":"d","isPublished":true}\n' "$1" |
        "$PINAKES" import scicat --kind dataset --data "$WORK/data" --database "$place" - >/dev/null
}
add 1
caught_up() { [ "$(sql standby "SELECT pg_last_wal_replay_lsn() >= '$(sql primary 'SELECT pg_current_wal_lsn()')'")" = t ]; }
wait_for "the standby to catch up" caught_up

# serve NAME BOUND
serve() {
    printf '[server]\ndatabase = "%s"\n[limits]\nstandby_lag_ms = %s\n' "$place" "$2" >"$WORK/$1.toml"
    start_server "$1" --config "$WORK/$1.toml"
    wait_for "server $1" ready "$1"
}
# count SERVER [HEADER...]: the number of datasets that a caller sees.
count() {
    local server=$1
    shift
    [ "$(status_of "$@" "$(server_url "$server")/api/v3/datasets/count")" = 200 ] || fail "$server: $(cat "$WORK/body")"
    sed 's/[^0-9]//g' "$WORK/body"
}
logged_in=(-H "Authorization: Bearer $token")
n_asked() { sql standby "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pinakes'"; }

serve current 0
[ "$(count current)" = 1 ] && [ "$(n_asked)" = 0 ] || fail "a standby is asked although none may be"
# With unlimited lag it answers with the state at which it stopped replaying.
serve patient 3600000
[ "$(count patient)" = 1 ] || fail "the standby shows $(count patient) datasets"
[ "$(n_asked)" != 0 ] || fail "the standby was not asked"
wait_for "the standby to catch up" caught_up
sql standby 'SELECT pg_wal_replay_pause()' >/dev/null
is_paused() { [ "$(sql standby "SELECT pg_get_wal_replay_pause_state()")" = paused ]; }
wait_for "the standby to stop replaying" is_paused
add 2
[ "$(count patient)" = 1 ] || fail "who is not logged in was not answered by the standby"
[ "$(count patient "${logged_in[@]}")" = 2 ] || fail "who is logged in does not see what was written"
[ "$(count current)" = 2 ] || fail "the server that asks no standby shows $(count current) datasets"
say "a standby answers who is not logged in, the primary who is"
# With a short maximum lag, a standby that stopped is soon too old.
serve hasty 200
sees_both() { [ "$(count hasty)" = 2 ]; }
wait_for "the primary to be asked instead" sees_both
for _ in 1 2 3 4 5; do [ "$(count hasty)" = 2 ] || fail "a standby that is too old was asked"; done
say "a standby that is too far behind is passed over"
# A server of other declarations makes datasets anew, of which the standby knows nothing yet.
schema='"pinakes:default"'
sql primary "UPDATE $schema.kind SET declaration = 'former' WHERE name = 'scicat_dataset'" >/dev/null
serve newer 3600000
[ "$(count newer)" = 2 ] || fail "the standby, which knows former declarations alone, was asked: $(count newer) datasets"
sql standby 'SELECT pg_wal_replay_resume()' >/dev/null
wait_for "the standby to catch up" caught_up
# One that says that something is being made anew, which the server may know to be done.
sql primary "INSERT INTO $schema.meta (name, value, text) VALUES ('remake:none', 0, '')" >/dev/null
wait_for "the standby to catch up" caught_up
sql standby 'SELECT pg_wal_replay_pause()' >/dev/null
wait_for "the standby to stop replaying" is_paused
add 3
[ "$(count newer)" = 3 ] || fail "the standby was asked in the middle of rebuilding a kind"
sql primary "DELETE FROM $schema.meta WHERE name = 'remake:none'" >/dev/null
sql standby 'SELECT pg_wal_replay_resume()' >/dev/null
wait_for "the standby to catch up" caught_up
sql standby 'SELECT pg_wal_replay_pause()' >/dev/null
wait_for "the standby to stop replaying" is_paused
add 4
[ "$(count newer)" = 3 ] || fail "the standby is not asked again when all is made"
say "a standby that knows other declarations is passed over"
sql standby 'SELECT pg_wal_replay_resume()' >/dev/null
wait_for "the standby to catch up" caught_up
serve brisk 200
kill_cluster standby
for server in newer brisk; do
    for _ in 1 2 3; do [ "$(count "$server")" = 4 ] || fail "$server shows $(count "$server") without the standby"; done
    ready "$server" || fail "$server is not ready without a standby"
done
say "a standby that is dead is passed over"
