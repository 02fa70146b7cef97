#!/usr/bin/env bash
# A primary with a synchronous standby; the primary is killed in the middle of writes and the standby promoted.
# Every acknowledged write must be there, and writing must have gone on.
. "$(dirname "$0")/cluster.sh"

make_cluster primary 54331
echo "synchronous_standby_names = 'standby'" >>"$WORK/primary/postgresql.conf"
echo "host replication postgres 127.0.0.1/32 trust" >>"$WORK/primary/pg_hba.conf"
start_cluster primary
as_owner "$PG_BIN/pg_basebackup" -h 127.0.0.1 -p 54331 -U postgres -D "$WORK/standby" -R -X stream >/dev/null
sed -i "s/^port = .*/port = 54332/; /^synchronous_standby_names/d" "$WORK/standby/postgresql.conf"
sed -i "s/primary_conninfo = '/primary_conninfo = 'application_name=standby /" "$WORK/standby/postgresql.auto.conf"
start_cluster standby

PLACE="postgres://postgres@127.0.0.1:54331,127.0.0.1:54332/postgres?target_session_attrs=read-write"
"$DRILL" write "$PLACE" f 15 >"$WORK/acks" 2>"$WORK/writer.log" &
writer=$!
sleep 5
before=$(wc -l <"$WORK/acks")
kill_cluster primary
sleep 1
as_owner "$PG_BIN/pg_ctl" -D "$WORK/standby" -w promote >/dev/null
wait "$writer"
tail -1 "$WORK/writer.log"
after=$(wc -l <"$WORK/acks")
echo "acknowledged: $before before the kill, $((after - before)) after it"
[ "$before" -gt 0 ] && [ "$after" -gt "$before" ]
"$DRILL" verify "$PLACE" <"$WORK/acks"
