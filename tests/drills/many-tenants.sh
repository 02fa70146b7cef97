#!/usr/bin/env bash
# A folder with many tenants (11 MB each): a server over it is ready as quickly as with few tenants, lists them without opening any, and opens each
# when it is requested. TENANTS is their number. Prints how long a start and a list take; measure figures with a release build.
. "$(dirname "$0")/cluster.sh"

DATA="$WORK/many.data"
TENANTS=${TENANTS:-100}

"$PINAKES" tenant add t0 --data "$DATA" >/dev/null
# A command writes its log back before it ends: the file is all there is.
[ ! -e "$DATA/tenants/t0.sqlite-wal" ] || fail "a command has left a log beside its file"
for ((n = 1; n < TENANTS; n++)); do cp "$DATA/tenants/t0.sqlite" "$DATA/tenants/t$n.sqlite"; done
sync

open_tenants() { curl -s -m "$PATIENCE" "$(server_url web)/metrics" | sed -n 's/^pinakes_open_tenants \([0-9]*\).*/\1/p'; }
now_ms() { date +%s%3N; }

begun=$(now_ms)
n_listed=$("$PINAKES" tenant list --data "$DATA" | grep -c '^t[0-9]')
took=$(($(now_ms) - begun))
[ "$n_listed" = "$TENANTS" ] || fail "$n_listed tenants of $TENANTS are listed"
say "$TENANTS tenants are listed in $took ms"

begun=$(now_ms)
start_server web
until ready web; do [ "$(($(now_ms) - begun))" -lt $((PATIENCE * 1000)) ] || fail "not ready: $(cat "$WORK/body")"; done
took=$(($(now_ms) - begun))
opened=$(open_tenants)
# Workers (imports, timers, job actions) look at the tenants in turn from the start on; being ready waits for none of them.
[ "$opened" -lt $((TENANTS / 2)) ] || fail "$opened tenants are open after a start"
say "a server over them is ready after $took ms, with $opened tenants open and $(sed -n 's/VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$(pid_of web)/status") KB of memory"

for n in 0 7 $((TENANTS - 1)); do
    code=$(status_of -H "X-Pinakes-Tenant: t$n" "$(server_url web)/api/v3/datasets/count")
    [ "$code" = 200 ] || fail "tenant t$n is answered with $code: $(cat "$WORK/body")"
done
[ "$(open_tenants)" -gt "$opened" ] || fail "no tenant was opened by the requests: $opened are open as before"
say "each is opened when it is asked for"
