#!/bin/sh
# Do three load generators agree? Runs wrk, hey and ours in turn against one bare server, several rounds, and
# prints the throughput of each and the ratio of the medians.
#
#   bench/agree.sh [path of pinakes-bench or of "pinakes bench"] [seconds] [connections] [delay in ms] [rounds]
#
# With a delay, the server decides the throughput (connections / delay) and the three must agree within some
# per cent. With a delay of 0, the client's own speed counts too: then read the ratio together with `ceiling`.
set -eu

bench=${1:-target/release/pinakes-bench}
seconds=${2:-3}
connections=${3:-32}
delay_ms=${4:-20}
rounds=${5:-5}
work=$(mktemp -d)

$bench bare-server --listen 127.0.0.1:0 --delay-ms "$delay_ms" --for-s 600 > "$work/address" &
server=$!
trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT INT TERM
while ! grep -q http "$work/address"; do sleep 0.1; done
url=$(sed -n 's/^listening on //p' "$work/address")

median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

for round in $(seq "$rounds"); do
    wrk -t1 -c"$connections" -d"${seconds}s" "$url/2048" | awk '/Requests\/sec/ { print $2 }' >> "$work/wrk"
    hey -c "$connections" -z "${seconds}s" "$url/2048" | awk '/Requests\/sec/ { print $2 }' >> "$work/hey"
    $bench http --url "$url" --path /2048 --mode closed --connections "$connections" --step-s "$seconds" \
        --warmup-s 0.5 --no-ceiling --out "$work/run$round" > /dev/null 2>&1
    awk -F': ' '/"throughput_per_s"/ { gsub(",", "", $2); print $2; exit }' "$work/run$round/result.json" >> "$work/ours"
done

echo "connections $connections, delay $delay_ms ms, $rounds rounds of $seconds s, answers of 2048 bytes"
for tool in wrk hey ours; do
    echo "$tool: median $(median "$work/$tool") requests/s (all: $(tr '\n' ' ' < "$work/$tool"))"
done
awk -v ours="$(median "$work/ours")" -v wrk="$(median "$work/wrk")" -v hey="$(median "$work/hey")" \
    'BEGIN { printf "ours / wrk = %.3f\nours / hey = %.3f\n", ours / wrk, ours / hey }'
