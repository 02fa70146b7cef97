#!/usr/bin/env bash
# A catalogue goes from SQLite to PostgreSQL and back; the first copy is killed midway and resumed. Records, users,
# tokens and the signing secret are the same in the end, and a target with other records is refused.
. "$(dirname "$0")/cluster.sh"

make_cluster db
start_cluster db
python3 - "$WORK/datasets.ndjson" <<'PYTHON'
import json, sys
with open(sys.argv[1], "w", encoding="utf-8") as out:
    for n in range(6000):
        out.write(json.dumps({
            "pid": f"drill/{n}", "type": "raw", "datasetName": f"n {n}", "owner": "drill", "ownerGroup": f"g{n % 7}",
            "contactEmail": "drill@example.org", "sourceFolder": "/drill", "creationLocation": "/DRILL/1",
            "creationTime": "2026-03-05T00:00:00.000Z", "principalInvestigator": "drill",
            "scientificMetadata": {"run": {"value": n, "unit": "s"}}}) + "\n")
PYTHON
source="$WORK/source"
"$PINAKES" import scicat "$WORK/datasets.ndjson" --data "$source" >/dev/null
echo a-password-of-drills | "$PINAKES" user add drill --group drill --data "$source" >/dev/null
token=$("$PINAKES" token create drill --data "$source" 2>/dev/null)
"$PINAKES" tenant add library --description "a second one" --data "$source" >/dev/null
"$PINAKES" import scicat "$HERE/../../crates/pinakes/demo/samples.ndjson" --tenant library --data "$source" >/dev/null

in_background "$WORK/first" "$PINAKES" move --from "sqlite:$source" --to "$(url_of db)"
mover=$STARTED_PID
n_copied() { sql db 'SELECT count(*) FROM "pinakes:default".k_scicat_dataset' 2>/dev/null || echo 0; }
some_are_there() { [ "$(n_copied)" -gt 0 ]; }
wait_for "the first records" some_are_there
kill -KILL "$mover"
wait "$mover" 2>/dev/null || true
no_session() { [ "$(sql db "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pinakes'")" = 0 ]; }
wait_for "the end of the killed copy's sessions" no_session
before=$(n_copied)
"$PINAKES" move --from "sqlite:$source" --to "$(url_of db)" >"$WORK/second" 2>"$WORK/second.err" ||
    fail "the copy does not go on: $(cat "$WORK/second.err")"
grep -q 'default: scicat_dataset: 6,000 records, checksum .* the same on both sides' "$WORK/second" || fail "$(cat "$WORK/second")"
[ "$(n_copied)" = 6000 ] || fail "$(n_copied) datasets are there"
say "killed after $before of 6000 datasets, then: $(tail -1 "$WORK/second")"

"$PINAKES" move --from "$(url_of db)" --to "sqlite:$WORK/back" >"$WORK/third" 2>&1 || fail "the way back: $(cat "$WORK/third")"
for kind in dataset sample; do
    tenant=$([ "$kind" = dataset ] && echo default || echo library)
    for place in source back; do
        "$PINAKES" export --kind "$kind" --tenant "$tenant" --data "$WORK/$place" --output "$WORK/$place.$kind" >/dev/null 2>&1
    done
    cmp -s "$WORK/source.$kind" "$WORK/back.$kind" || fail "the ${kind}s differ after the way there and back"
done
cmp -s "$source/signing.secret" "$WORK/back/signing.secret" || fail "the signing secret differs"
"$PINAKES" check --data "$WORK/back" | grep -q 'default: sound' || fail "what came back is not sound"
DATA="$WORK/back" start_server back
[ "$(status_of -H "Authorization: Bearer $token" "$(server_url back)/api/v3/users/my/self")" = 200 ] ||
    fail "the token does not hold after the way there and back"
say "back in SQLite: $(tail -1 "$WORK/third"), the exports are the same to the byte, the token holds"

"$PINAKES" import scicat "$HERE/../../crates/pinakes/demo/samples.ndjson" --data "$WORK/other" >/dev/null
if "$PINAKES" move --from "sqlite:$WORK/other" --to "sqlite:$WORK/back" >"$WORK/fourth" 2>&1; then fail "a full target was taken"; fi
grep -q 'holds records already' "$WORK/fourth" || fail "$(cat "$WORK/fourth")"
say "a target with other records is refused"
