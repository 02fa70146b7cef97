#!/usr/bin/env bash
# Tenants in two databases: `[databases]` puts one into a separate cluster. Serving, importing, listing, checking and
# moving use the right one, and losing a cluster affects its own tenant and no other.
. "$(dirname "$0")/cluster.sh"

for name in one two; do
    make_cluster "$name"
    start_cluster "$name"
done
config="$WORK/pinakes.toml"
cat >"$config" <<TOML
[server]
database = "$(url_of one)"
[limits]
database_wait_ms = 1000
[tenants]
default = "a"
[databases]
b = "$(url_of two)"
c = "$(url_of two)"
TOML
place=(--data "$WORK/data" --config "$config")
samples="$HERE/../../crates/pinakes/demo/samples.ndjson"
"$PINAKES" import scicat "$samples" "${place[@]}" >/dev/null 2>&1 || fail "no import into tenant a"
"$PINAKES" tenant add b --description "apart" "${place[@]}" >/dev/null
"$PINAKES" import scicat "$samples" --tenant b "${place[@]}" >/dev/null || fail "no import into tenant b"
schemas() { sql "$1" "SELECT string_agg(nspname::text, ' ' ORDER BY nspname) FROM pg_namespace WHERE nspname LIKE 'pinakes:%'"; }
[ "$(schemas one)" = "pinakes:a" ] || fail "in the first cluster: $(schemas one)"
[ "$(schemas two)" = "pinakes:b" ] || fail "in the second cluster: $(schemas two)"
n_of() { sql "$1" "SELECT count(*) FROM \"pinakes:$2\".k_scicat_sample"; }
[ "$(n_of one a)" -gt 0 ] && [ "$(n_of one a)" = "$(n_of two b)" ] || fail "$(n_of one a) and $(n_of two b) samples"
"$PINAKES" tenant list "${place[@]}" >"$WORK/list"
grep -q '^a' "$WORK/list" && grep -q '^b.*apart' "$WORK/list" || fail "the list: $(cat "$WORK/list")"
"$PINAKES" check "${place[@]}" >"$WORK/check" || fail "$(cat "$WORK/check")"
[ "$(grep -c ': sound$' "$WORK/check")" = 2 ] || fail "not both are looked at: $(cat "$WORK/check")"
if "$PINAKES" backup "$WORK/backup" "${place[@]}" >"$WORK/refused" 2>&1; then fail "a database was backed up as a folder"; fi
grep -q "database's own tools" "$WORK/refused" || fail "$(cat "$WORK/refused")"
[ ! -e "$WORK/backup" ] || fail "a refused backup leaves something"
say "tenants, imports and checks go to the cluster of each tenant"

start_server web "${place[@]:2}"
count_of() { status_of -H "X-Pinakes-Tenant: $1" "$(server_url web)/api/v3/datasets/count"; }
[ "$(count_of a)" = 200 ] && [ "$(count_of b)" = 200 ] || fail "a server does not answer for both: $(cat "$WORK/body")"
stop_cluster two immediate
[ "$(count_of b)" = 503 ] || fail "a tenant without its database: $(cat "$WORK/body")"
[ "$(count_of a)" = 200 ] || fail "the other tenant's database is there, but: $(cat "$WORK/body")"
start_cluster two
is_back() { [ "$(count_of b)" = 200 ]; }
wait_for "the second tenant when its database is back" is_back
say "a cluster that is gone takes its own tenant with it"
kill "$(pid_of web)"
wait "$(pid_of web)" || true

# Moves the configured catalogue, from both clusters, into one folder; and from a folder into both.
"$PINAKES" move --to "sqlite:$WORK/folder" --config "$config" >"$WORK/moved" 2>&1 || fail "$(cat "$WORK/moved")"
printf '[tenants]\ndefault = "a"\n' >"$WORK/folder.toml"
"$PINAKES" check --data "$WORK/folder" --config "$WORK/folder.toml" --tenant b | grep -q 'b: sound' || fail "tenant b is not in the folder"
export PGOPTIONS='-c client_min_messages=warning'
for name in one two; do sql "$name" "DO \$\$ DECLARE s text; BEGIN FOR s IN SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pinakes%' LOOP EXECUTE format('DROP SCHEMA %I CASCADE', s); COMMIT; END LOOP; END \$\$"; done
"$PINAKES" move --from "sqlite:$WORK/folder" --config "$config" >"$WORK/moved" 2>&1 || fail "$(cat "$WORK/moved")"
[ "$(schemas one)" = "pinakes:a" ] && [ "$(schemas two)" = "pinakes:b" ] || fail "after the move: $(schemas one), $(schemas two)"
[ "$(n_of one a)" -gt 0 ] && [ "$(n_of one a)" = "$(n_of two b)" ] || fail "after the move $(n_of one a) and $(n_of two b) samples"
say "moved to a folder and back, each tenant to its own cluster"
