#!/usr/bin/env bash
# Point-in-time recovery in PostgreSQL: a base backup and the archived log restore the catalogue as it was at a
# named point, after which a tenant was removed. Everything acknowledged before that point is present, nothing later.
. "$(dirname "$0")/cluster.sh"

make_cluster db
as_owner mkdir "$WORK/archive"
set_in_cluster db archive_mode on
set_in_cluster db archive_command "'test ! -f $WORK/archive/%f && cp %p $WORK/archive/%f.part && mv $WORK/archive/%f.part $WORK/archive/%f'"
as_owner bash -c "echo 'host replication postgres 127.0.0.1/32 trust' >>'$WORK/db/pg_hba.conf'"
start_cluster db
place() { echo "$(url_of "$1")?catalogue=drill"; }
acknowledged() { [ "$(grep -c . "$WORK/acks.$1")" -ge "$2" ]; }
write_some() {
    in_background "$WORK/acks.$1" "$DRILL" write "$(place db)" "$1" 600
    local writer=$STARTED_PID
    wait_for "$2 writes" acknowledged "$1" "$2"
    kill -KILL "$writer"
    wait "$writer" 2>/dev/null || true
    grep -E "^ack $1-[0-9]+/[0-9]+\$" "$WORK/acks.$1" >"$WORK/whole.$1"
}
write_some before-backup 30
as_owner "$PG_BIN/pg_basebackup" -d "$(url_of db)" -D "$WORK/restored" -X none -c fast 2>/dev/null
write_some before-point 30
no_writer_left() { [ "$(sql db "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pinakes'")" = 0 ]; }
wait_for "the end of the writers' sessions" no_writer_left
sql db "SELECT pg_create_restore_point('noon')" >/dev/null
write_some after-point 30
wait_for "the end of the writers' sessions" no_writer_left
sql db 'DROP SCHEMA "drill:drill" CASCADE' 2>/dev/null
last=$(sql db 'SELECT pg_walfile_name(pg_switch_wal())')
is_archived() { [ -f "$WORK/archive/$last" ]; }
wait_for "the archive of the log" is_archived
stop_cluster db immediate

set_in_cluster restored port "$(free_port)"
set_in_cluster restored archive_mode off
set_in_cluster restored restore_command "'cp $WORK/archive/%f %p'"
set_in_cluster restored recovery_target_name "'noon'"
set_in_cluster restored recovery_target_action "'promote'"
as_owner touch "$WORK/restored/recovery.signal"
start_cluster restored
is_promoted() { [ "$(sql restored 'SELECT pg_is_in_recovery()')" = f ]; }
wait_for "the end of the recovery" is_promoted
cat "$WORK"/whole.before-* >"$WORK/whole"
"$DRILL" verify "$(place restored)" <"$WORK/whole" 2>"$WORK/verified" || fail "$(tail -1 "$WORK/verified")"
n_after=$(sql restored "SELECT count(*) FROM \"drill:drill\".k_event WHERE id LIKE 'after-point%'")
[ "$n_after" = 0 ] || fail "$n_after records are of after the point"
say "$(wc -l <"$WORK/whole") acknowledged before the point, all there; of $(wc -l <"$WORK/whole.after-point") after it, none"
