#!/usr/bin/env bash
# Two servers over one database, both writing; one is killed. What either acknowledged must be there, the
# other must not notice, and a third that starts meanwhile must find the tables made once.
. "$(dirname "$0")/cluster.sh"

make_cluster db 54333
start_cluster db
PLACE="postgres://postgres@127.0.0.1:54333/postgres"
"$DRILL" write "$PLACE" a 8 >"$WORK/acks.a" 2>"$WORK/a.log" &
a=$!
"$DRILL" write "$PLACE" b 8 >"$WORK/acks.b" 2>"$WORK/b.log" &
b=$!
sleep 3
kill -KILL "$a"
"$DRILL" write "$PLACE" c 4 >"$WORK/acks.c" 2>"$WORK/c.log" &
c=$!
wait "$b" "$c"
for name in a b c; do
    # A line cut short by the kill was not read by anybody.
    echo "$name acknowledged $(grep -c . "$WORK/acks.$name")"
    [ -s "$WORK/acks.$name" ]
done
! grep -q refused= "$WORK/b.log" || tail -1 "$WORK/b.log"
cat "$WORK"/acks.? | grep -E '^ack [abc]-[0-9]+/[0-9]+$' >"$WORK/acks"
"$DRILL" verify "$PLACE" <"$WORK/acks"
