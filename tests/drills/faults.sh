#!/usr/bin/env bash
# A database that refuses, stops answering, answers slowly, or is full: a clear answer in bounded time, readiness that reports it, and
# nothing half done; when the fault is gone, everything continues without a restart.
. "$(dirname "$0")/cluster.sh"

make_cluster db
start_cluster db
sql db "CREATE ROLE keeper LOGIN PASSWORD 'right'"
sql db "CREATE DATABASE kept OWNER keeper"
as_owner bash -c "printf 'host kept keeper 127.0.0.1/32 scram-sha-256\n' | cat - '$WORK/db/pg_hba.conf' >'$WORK/hba' && cat '$WORK/hba' >'$WORK/db/pg_hba.conf'"
sql db 'SELECT pg_reload_conf()' >/dev/null

# A wrong password: reported at once, and never shown.
begun=$SECONDS
if "$PINAKES" serve --data "$WORK/refused" --listen 127.0.0.1:0 \
    --database "postgres://keeper:wrong-hush@127.0.0.1:$(port_of db)/kept" >"$WORK/refused.out" 2>&1; then
    fail "a wrong password was taken"
fi
grep -qi 'password' "$WORK/refused.out" || fail "the reason is not told: $(cat "$WORK/refused.out")"
if grep -q 'hush' "$WORK/refused.out"; then fail "the password is shown: $(cat "$WORK/refused.out")"; fi
say "a wrong password is refused after $((SECONDS - begun)) s: $(tail -1 "$WORK/refused.out" | cut -c1-120)"

# A database that stops answering.
config="$WORK/pinakes.toml"
printf '[server]\ndatabase = "postgres://keeper:right@127.0.0.1:%s/kept"\n[limits]\nread_timeout_ms = 2000\nready_timeout_ms = 2000\n' \
    "$(port_of db)" >"$config"
start_server web --config "$config"
wait_for "the server" ready web
processes_of db >/dev/null
for pid in $(processes_of db); do kill -STOP "$pid" 2>/dev/null || true; done
begun=$SECONDS
wait_for "a refusal of a silent database" not_ready web
[ "$(status_of "$(server_url web)/health/live")" = 200 ] || fail "a silent database takes the server down"
answer=$(status_of "$(server_url web)/api/v3/datasets/count")
[ "$answer" = 503 ] || fail "a read of a silent database is answered with $answer: $(cat "$WORK/body")"
say "a silent database: not ready, a read is refused, $((SECONDS - begun)) s in all"
for pid in $(processes_of db); do kill -CONT "$pid" 2>/dev/null || true; done
wait_for "the server when the database answers again" ready web
[ "$(status_of "$(server_url web)/api/v3/datasets/count")" = 200 ] || fail "no read after the silence: $(cat "$WORK/body")"
say "it answers again: ready without a restart"

# A password that is changed while the server runs: existing sessions continue, new ones are refused.
sql db "ALTER ROLE keeper PASSWORD 'another'"
cut_off() { sql db "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'keeper'" >/dev/null; }
cut_off
begun=$SECONDS
wait_for "a refusal when the password is another" not_ready web
grep -q 'password' "$WORK/body" || fail "the reason is not told: $(cat "$WORK/body")"
if grep -q 'right' "$WORK/body" "$WORK/web.out.err"; then fail "the password is shown"; fi
[ "$(status_of "$(server_url web)/health/live")" = 200 ] || fail "a wrong password takes the server down"
[ "$(status_of "$(server_url web)/api/v3/datasets/count")" = 503 ] || fail "a read without the password: $(cat "$WORK/body")"
say "a password changed under a running server: refused after $((SECONDS - begun)) s"
sql db "ALTER ROLE keeper PASSWORD 'right'"
wait_for "the server when the password is right again" ready web
[ "$(status_of "$(server_url web)/api/v3/datasets/count")" = 200 ] || fail "no read after the password came back: $(cat "$WORK/body")"
say "the right password again: ready without a restart"

# A database that answers slowly: waited for within the limits, refused beyond them.
in_background "$WORK/slow" python3 "$HERE/slow.py" "$(port_of db)" "$WORK/delay"
wait_for "the slow way" grep -q . "$WORK/slow"
echo 0 >"$WORK/delay"
sed "s/:$(port_of db)/:$(cat "$WORK/slow")/" "$config" >"$WORK/slow.toml"
start_server far --config "$WORK/slow.toml"
wait_for "the server behind the slow way" ready far
echo 40 >"$WORK/delay"
[ "$(status_of "$(server_url far)/api/v3/datasets/count")" = 200 ] || fail "a database 40 ms away: $(cat "$WORK/body")"
echo 60000 >"$WORK/delay"
begun=$SECONDS
[ "$(status_of "$(server_url far)/health/ready")" = 503 ] || fail "ready although nothing is answered: $(cat "$WORK/body")"
answer=$(status_of "$(server_url far)/api/v3/datasets/count")
[ "$answer" = 503 ] || fail "a read of a database a minute away is answered with $answer: $(cat "$WORK/body")"
[ "$(status_of "$(server_url far)/health/live")" = 200 ] || fail "a slow database takes the server down"
say "a database a minute away is refused after $((SECONDS - begun)) s, one 40 ms away is not"
echo 0 >"$WORK/delay"
wait_for "the server when answers come again" ready far

# A disk that is full.
# fill_up NAME PLACE: writes into a catalogue whose small file system fills up under it.
fill_up() {
    local acks="$WORK/$1.acks" writer before
    # A part of the ballast is there from the beginning: a quick writer could fill the disk alone, and no room would come.
    as_owner dd if=/dev/zero of="$WORK/small/ballast" bs=1M count=6 2>/dev/null
    in_background "$acks" "$DRILL" write "$2" d 600
    writer=$STARTED_PID
    acknowledged() { [ "$(grep -c . "$acks")" -ge "$1" ]; }
    wait_for "20 writes" acknowledged 20
    # It ends when the disk is full.
    as_owner dd if=/dev/zero of="$WORK/small/ballast" bs=1M oflag=append conv=notrunc 2>/dev/null || true
    is_full() { grep -q 'no space left' "$acks.err"; }
    wait_for "a write that finds the disk full" is_full
    before=$(grep -c . "$acks")
    as_owner rm "$WORK/small/ballast"
    wait_for "20 writes when there is room again" acknowledged $((before + 20))
    kill -KILL "$writer"
    wait "$writer" 2>/dev/null || true
    # The writer may have filled the disk again before it exited, and opening a catalogue writes.
    mount -o remount,size=96m "$WORK/small"
    grep -E '^ack d-[0-9]+/[0-9]+$' "$acks" >"$WORK/whole"
    "$DRILL" verify "$2" <"$WORK/whole" 2>"$WORK/verified" || fail "$1: $(tail -1 "$WORK/verified")"
    say "$1, full disk: writes are refused, $(wc -l <"$WORK/whole") acknowledged ones are there, and it goes on when there is room"
}
mkdir "$WORK/small"
if ! mount -t tmpfs -o size=24m drill "$WORK/small" 2>/dev/null; then
    say "no full disk: a small file system cannot be mounted here"
    exit 0
fi
MOUNTED="$WORK/small"
as_owner true && chown "$(stat -c %U "$WORK/db")" "$WORK/small" && chmod 700 "$WORK/small"
sql db "CREATE TABLESPACE small LOCATION '$WORK/small'"
sql db "CREATE DATABASE full_disk OWNER keeper"
sql db "ALTER DATABASE full_disk SET default_tablespace = 'small'"
fill_up PostgreSQL "postgres://postgres@127.0.0.1:$(port_of db)/full_disk"
stop_cluster db
umount "$WORK/small"
mount -t tmpfs -o size=24m drill "$WORK/small"
chown "$(stat -c %U "$WORK/db")" "$WORK/small"
fill_up SQLite "sqlite:$WORK/small/catalogue"
