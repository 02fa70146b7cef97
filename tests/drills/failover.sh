#!/usr/bin/env bash
# A primary with a synchronous standby; the primary is killed during writes and the standby promoted.
# Every acknowledged write is present, writing continues, and a server over both hosts is ready again.
. "$(dirname "$0")/cluster.sh"

make_cluster primary
as_owner bash -c "echo 'host replication postgres 127.0.0.1/32 trust' >>'$WORK/primary/pg_hba.conf'"
start_cluster primary
as_owner "$PG_BIN/pg_basebackup" -d "$(url_of primary)" -D "$WORK/standby" -X stream -c fast
as_owner touch "$WORK/standby/standby.signal"
set_in_cluster standby primary_conninfo \
    "'host=127.0.0.1 port=$(port_of primary) user=postgres application_name=standby'"
set_in_cluster standby port "$(free_port)"
start_cluster standby
set_in_cluster primary synchronous_standby_names "'standby'"
[ "$(sql primary 'SELECT pg_reload_conf()')" = t ]
is_synchronous() { [ "$(sql primary "SELECT sync_state FROM pg_stat_replication")" = sync ]; }
wait_for "a synchronous standby" is_synchronous

place="postgres://postgres@127.0.0.1:$(port_of primary),127.0.0.1:$(port_of standby)/postgres?target_session_attrs=read-write"
start_server web --database "$place"
wait_for "the server" ready web
in_background "$WORK/acks" "$DRILL" write "$place" f 600
writer=$STARTED_PID
acknowledged() { [ "$(grep -c . "$WORK/acks")" -ge "$1" ]; }
wait_for "100 writes" acknowledged 100
kill_cluster primary
# The primary acknowledged only what it had sent, so the standby has all of it.
before=$(grep -c . "$WORK/acks")
wait_for "a refusal while there is no primary" not_ready web
as_owner "$PG_BIN/pg_ctl" -D "$WORK/standby" -w -t "$PATIENCE" promote >/dev/null
wait_for "100 writes after the failover" acknowledged $((before + 100))
wait_for "the server after the failover" ready web
kill -KILL "$writer"
wait "$writer" 2>/dev/null || true
grep -E '^ack f-[0-9]+/[0-9]+$' "$WORK/acks" >"$WORK/whole"
"$DRILL" verify "$place" <"$WORK/whole" 2>"$WORK/verified" || fail "$(tail -1 "$WORK/verified")"
say "$before acknowledged before the kill, $(($(wc -l <"$WORK/whole") - before)) after it, all there"
