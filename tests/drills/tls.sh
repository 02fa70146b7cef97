#!/usr/bin/env bash
# Encrypted connections: a cluster that accepts nothing else, with a certificate of its own authority. The right root
# is accepted; a wrong root, a wrong name and plain text are refused, each with its own message.
. "$(dirname "$0")/cluster.sh"

if ! command -v openssl >/dev/null; then
    say "left out: openssl is not installed, no certificates can be made"
    exit 0
fi
# make_authority NAME
make_authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$1" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign \
        -keyout "$WORK/$1.key" -out "$WORK/$1.pem" 2>/dev/null
}
make_authority ours
make_authority theirs
printf 'subjectAltName=DNS:localhost\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n' >"$WORK/extensions"
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost \
    -keyout "$WORK/server.key" -out "$WORK/server.csr" 2>/dev/null
openssl x509 -req -in "$WORK/server.csr" -CA "$WORK/ours.pem" -CAkey "$WORK/ours.key" -CAcreateserial -days 2 \
    -extfile "$WORK/extensions" -out "$WORK/server.pem" 2>/dev/null

make_cluster db
as_owner true && chown "$(stat -c %U "$WORK/db")" "$WORK/server.key" && chmod 600 "$WORK/server.key"
set_in_cluster db ssl on
set_in_cluster db ssl_cert_file "'$WORK/server.pem'"
set_in_cluster db ssl_key_file "'$WORK/server.key'"
echo 'hostssl all all 127.0.0.1/32 trust' | as_owner tee "$WORK/db/pg_hba.conf" >/dev/null
start_cluster db

# url HOST PARAMETERS
url() { echo "postgres://postgres@$1:$(port_of db)/postgres?$2"; }
# refused WHAT WORD URL: a command must fail, and say why.
refused() {
    if "$PINAKES" tenant list --data "$WORK/refused" --database "$3" >"$WORK/refusal" 2>&1; then fail "$1 was taken"; fi
    grep -qi "$2" "$WORK/refusal" || fail "$1 is not told as such: $(cat "$WORK/refusal")"
    say "$1 is refused: $(tail -1 "$WORK/refusal" | cut -c1-140)"
}
mkdir "$WORK/refused"
refused "plain text" "no encryption" "$(url 127.0.0.1 sslmode=disable)"
refused "another authority's root" "certificate" "$(url localhost "sslmode=verify-full&sslrootcert=$WORK/theirs.pem")"
refused "a name that the certificate does not hold" "certificate" "$(url 127.0.0.1 "sslmode=verify-full&sslrootcert=$WORK/ours.pem")"

for parameters in "sslmode=verify-full&sslrootcert=$WORK/ours.pem" "sslmode=require" "sslmode=prefer"; do
    "$PINAKES" tenant list --data "$WORK/refused" --database "$(url localhost "$parameters")" >"$WORK/listed" 2>&1 ||
        fail "$parameters: $(cat "$WORK/listed")"
done
"$PINAKES" tenant list --data "$WORK/refused" --database "$(url 127.0.0.1 "sslmode=verify-ca&sslrootcert=$WORK/ours.pem")" \
    >"$WORK/listed" 2>&1 || fail "verify-ca asks for the name: $(cat "$WORK/listed")"
start_server web --database "$(url localhost "sslmode=verify-full&sslrootcert=$WORK/ours.pem")"
wait_for "the server" ready web
plain=$("$PG_BIN/psql" -X -q -A -t -d "$(url localhost sslmode=require)" -c "SELECT count(*) FILTER (WHERE ssl), count(*) FILTER (WHERE NOT ssl) \
    FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'pinakes'")
case "$plain" in 0\|* | *\|[1-9]*) fail "encrypted|plain sessions: $plain" ;; esac
say "the right root and name are taken, all sessions are encrypted (${plain%|*} of them)"
