#!/usr/bin/env bash
# Files in an S3 service: the store of files' own tests against it, and a server that is ready while the service answers
# and reports when it does not. S3 is the command of a service: S3 HOST PORT; see tests/drills/run.
. "$(dirname "$0")/cluster.sh"
: "${S3:?names the command of an S3 service}" "${BLOBS_TEST:?names the test program of the crate pinakes-blobs}"

port=$(free_port)
start_s3() {
    in_background "$WORK/s3" $S3 -H 127.0.0.1 -p "$port"
    s3=$STARTED_PID
    wait_for "the S3 service" curl -fsS -m 5 -X PUT "http://127.0.0.1:$port/pinakes"
}
start_s3
export AWS_ACCESS_KEY_ID=drill AWS_SECRET_ACCESS_KEY=hush-drill AWS_ENDPOINT_URL="http://127.0.0.1:$port"
(cd "$HERE/../../crates/blobs" && PINAKES_TEST_S3=$AWS_ENDPOINT_URL "$BLOBS_TEST" >"$WORK/tests" 2>&1) ||
    fail "$(grep -E 'panicked|^test .* FAILED' -A2 "$WORK/tests" | head -20)"
say "$(grep '^test result' "$WORK/tests" | sed 's/;.*measured.*//')"

printf '[blobs]\nplace = "s3://pinakes/files"\ntimeout_ms = 2000\n' >"$WORK/pinakes.toml"
start_server web --config "$WORK/pinakes.toml"
wait_for "the server" ready web
kill -KILL "$s3"
wait "$s3" 2>/dev/null || true
wait_for "a refusal without the service" not_ready web
grep -q 'files' "$WORK/body" || fail "the reason is not told: $(cat "$WORK/body")"
if grep -q 'hush' "$WORK/body" "$WORK/web.out" "$WORK/web.out.err"; then fail "the key is shown"; fi
start_s3
wait_for "the server with the service back" ready web
say "ready with the service, not ready without it, ready again with it back"
