#!/usr/bin/env bash
# A server and the limit on open files: the soft limit is raised, open tenants and connections are kept within it, readiness reports when
# hardly a descriptor is left, and after a time without any the server accepts connections again; its log is not flooded meanwhile.
. "$(dirname "$0")/cluster.sh"

command -v prlimit >/dev/null || { say "no drill: prlimit (util-linux) is missing"; exit 0; }
DATA="$WORK/many.data"
N=24
for ((n = 0; n < N; n++)); do "$PINAKES" tenant add "t$n" --data "$DATA" >/dev/null; done

most_of() { sed -n 's/^Max open files *\([0-9]*\).*/\1/p' "/proc/$(pid_of "$1")/limits"; }
open_in() { ls "/proc/$(pid_of "$1")/fd" | wc -l; }

printf '#!/bin/bash\nulimit -Sn 64 && ulimit -Hn 256 && exec "%s" "$@"\n' "$PINAKES" >"$WORK/limited"
chmod +x "$WORK/limited"
PINAKES="$WORK/limited" start_server web
[ "$(most_of web)" = 256 ] || fail "the soft limit is $(most_of web), not the hard one of 256"
for round in 1 2; do
    for ((n = 0; n < N; n++)); do
        code=$(status_of -H "X-Pinakes-Tenant: t$n" "$(server_url web)/api/v3/datasets/count")
        [ "$code" = 200 ] || fail "round $round: tenant t$n is answered with $code: $(cat "$WORK/body")"
    done
done
most=$(open_in web)
[ "$most" -lt 256 ] || fail "$most descriptors are open"
[ "$(status_of "$(server_url web)/health/ready")" = 200 ] || fail "not ready with $most descriptors of 256: $(cat "$WORK/body")"
say "256 descriptors: $N tenants are read in turn, $most are open"

# Hardly one is left: reported by the readiness check.
prlimit --pid "$(pid_of web)" --nofile="$((most + 4)):256"
wait_for "a readiness that says no" not_ready web
grep -q 'file descriptor' "$WORK/body" || fail "the reason is not told: $(cat "$WORK/body")"
# None is left: connections wait. The server may close a file at any moment, whose descriptor a connection takes: then the limit is
# lowered again.
begun=$(wc -l <"$WORK/web.out.err")
for attempt in 1 2 3 4 5; do
    first_free=0
    while [ -e "/proc/$(pid_of web)/fd/$first_free" ]; do first_free=$((first_free + 1)); done
    prlimit --pid "$(pid_of web)" --nofile="$first_free:256"
    taken=""
    for ((n = 0; n < 30; n++)); do
        if curl -s -o /dev/null -m 0.2 "$(server_url web)/health/live"; then taken=yes && break; fi
    done
    [ -n "$taken" ] || break
done
[ -z "$taken" ] || fail "a connection is taken without a descriptor, $attempt times"
n_lines=$(($(wc -l <"$WORK/web.out.err") - begun))
[ "$n_lines" -ge 1 ] && [ "$n_lines" -le 10 ] || fail "$n_lines lines in the log within some seconds: $(tail -3 "$WORK/web.out.err")"
prlimit --pid "$(pid_of web)" --nofile=256:256
wait_for "the server when descriptors are there again" ready web
[ "$(status_of -H 'X-Pinakes-Tenant: t0' "$(server_url web)/api/v3/datasets/count")" = 200 ] || fail "no read afterwards: $(cat "$WORK/body")"
say "without descriptors it is not ready and says so in $n_lines lines; with some again it serves, without a restart"
