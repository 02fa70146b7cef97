#!/usr/bin/env bash
# A server on the embedded engine whose disk is full, then read-only: writes are refused with 507, everything else works, after a
# restart too; `pinakes check` works; an error about a read-only folder names it.
. "$(dirname "$0")/cluster.sh"

mkdir "$WORK/small"
if ! mount -t tmpfs -o size=64m drill "$WORK/small" 2>/dev/null; then
    say "no full disk: a small file system cannot be mounted here"
    exit 0
fi
MOUNTED="$WORK/small"
DATA="$WORK/small/data"
PASSWORD=a-long-password

"$PINAKES" user add ann --group admin --data "$DATA" <<<"$PASSWORD" >/dev/null 2>&1
"$PINAKES" tenant add library --data "$DATA" >/dev/null
"$PINAKES" user add ann --group admin --tenant library --data "$DATA" <<<"$PASSWORD" >/dev/null 2>&1

# status METHOD PATH BODY [HEADER]: the status of a request to the running server.
status() {
    status_of -X "$1" "$(server_url web)$2" -H 'Content-Type: application/json' -d "$3" -H "${4:-X-None: x}"
}
log_in() { status POST /api/v3/auth/login "{\"username\":\"ann\",\"password\":\"$PASSWORD\"}"; }
log_in_to_library() {
    status POST /authn/login-with-expiry "{\"username\":\"ann\",\"password\":\"$PASSWORD\"}" 'X-Okapi-Tenant: library'
}
write() {
    local dataset='"type":"raw","datasetName":"n","owner":"o","ownerGroup":"admin","contactEmail":"a@b.org","sourceFolder":"/x",
        "creationLocation":"/x","creationTime":"2026-01-01T00:00:00Z","principalInvestigator":"x"'
    status POST /api/v3/datasets "{\"pid\":\"p/$1\",$dataset,\"description\":\"$(head -c 20000 /dev/zero | tr '\0' d)\"}" \
        "Authorization: Bearer $TOKEN"
}
count() {
    curl -s -m "$PATIENCE" -H "Authorization: Bearer $TOKEN" "$(server_url web)/api/v3/datasets/count" | sed 's/[^0-9]//g'
}
fill_up() { dd if=/dev/zero of="$WORK/small/ballast" bs=4k 2>/dev/null || true; }

start_server web
# The first request of a library loads its reference data.
[ "$(log_in_to_library)" = 201 ] || fail "no login to the library: $(cat "$WORK/body")"
[ "$(log_in)" = 201 ] || fail "no login: $(cat "$WORK/body")"
TOKEN=$(sed 's/.*"access_token":"\([^"]*\)".*/\1/' "$WORK/body")
n=0
while [ "$n" -lt 20 ]; do
    n=$((n + 1))
    [ "$(write "$n")" = 201 ] || fail "write $n: $(cat "$WORK/body")"
done
"$PINAKES" user add bob --group admin --data "$DATA" <<<"$PASSWORD" >/dev/null 2>&1

fill_up
written=$(write full)
while [ "$written" = 201 ]; do # into the space that the log had left
    n=$((n + 1))
    [ "$n" -lt 2000 ] || fail "the disk never got full"
    written=$(write "$n")
    fill_up
done
[ "$written" = 507 ] || fail "a write on a full disk is answered with $written: $(cat "$WORK/body")"
held=$(count)

serves() {
    [ "$(log_in)" = 201 ] || fail "$1: no login: $(cat "$WORK/body")"
    [ "$(status POST /api/v3/auth/login "{\"username\":\"bob\",\"password\":\"$PASSWORD\"}")" = 201 ] ||
        fail "$1: no first login: $(cat "$WORK/body")"
    [ "$(log_in_to_library)" = 201 ] || fail "$1: no login to the library: $(cat "$WORK/body")"
    [ "$(count)" = "$held" ] || fail "$1: $(count) datasets of $held"
    local fields='/api/v3/datasets/fullquery?fields=%7B%22text%22%3A%22ddd%22%7D'
    [ "$(status_of -H "Authorization: Bearer $TOKEN" "$(server_url web)$fields")" = 200 ] ||
        fail "$1: no search: $(cat "$WORK/body")"
}
serves "full disk"
say "a full disk: 507 for a write, logins and searches go on, $held datasets"

kill -TERM "$(pid_of web)"
wait "$(pid_of web)" || fail "the server did not end well: $(tail -3 "$WORK/web.out.err")"
fill_up
"$PINAKES" check --data "$DATA" >"$WORK/checked" 2>&1 || fail "check on a full disk: $(tail -3 "$WORK/checked")"
start_server web
serves "restart on a full disk"
kill -KILL "$(pid_of web)"
wait "$(pid_of web)" 2>/dev/null || true
fill_up
start_server web
serves "restart after a kill on a full disk"
say "it is checked, stopped, killed and started on the full disk"

rm "$WORK/small/ballast"
[ "$(write room)" = 201 ] || fail "no write when there is room again: $(cat "$WORK/body")"
kill -TERM "$(pid_of web)"
wait "$(pid_of web)" || fail "the server did not end well: $(tail -3 "$WORK/web.out.err")"
"$PINAKES" check --data "$DATA" >"$WORK/checked" 2>&1 || fail "check: $(tail -3 "$WORK/checked")"
say "with room again it writes, and the catalogue is sound"

mount -o remount,ro "$WORK/small"
if "$PINAKES" serve --data "$DATA" --listen 127.0.0.1:0 >"$WORK/read-only" 2>&1; then fail "a read-only folder was served"; fi
grep -q "$DATA.*[Rr]ead-only file system" "$WORK/read-only" || fail "a read-only folder is not told: $(tail -2 "$WORK/read-only")"
say "a read-only folder: $(tail -1 "$WORK/read-only" | cut -c1-140)"
