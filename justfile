# Shorthands. `.ci/run` is the truth; these call it.

# What a change must pass.
check:
    .ci/run

# The quick part of it.
quick:
    .ci/run fmt clippy

# Tests of the workspace.
test *arguments:
    cargo test --workspace {{arguments}}

# The published clients against a running server.
clients *arguments:
    tests/clients/run {{arguments}}

# A catalogue full of sample records, on a free port.
demo:
    cargo run --release -- demo --listen 127.0.0.1:0

# Every parser on made-up input: `just fuzz` for a minute each, `just fuzz 3600 cql` for an hour of one.
fuzz *arguments:
    tests/fuzz/run {{arguments}}

# Power failures: `just power 5000` tries so many moments; PINAKES_POWER_SEED begins another series.
power cuts="5000":
    PINAKES_POWER_CUTS={{cuts}} cargo test --release --package pinakes-store --package pinakes-blobs --test power

# Power failures in backups, restores, imports and citation graphs; POWER_SEED begins another series.
power-commands cuts="200":
    POWER_CUTS={{cuts}} DRILL_TIMEOUT=86400 tests/drills/run power

# Simulated lives of a store and of servers over it: `just simulate 20000` steps; PINAKES_SIMULATION_SEED begins others.
simulate steps="20000":
    PINAKES_SIMULATION_STEPS={{steps}} cargo test --release --package pinakes-store --lib -- simulation
    PINAKES_SIMULATION_STEPS={{steps}} cargo test --release --package pinakes-store --test world

# Rewrites the answers of golden tests; read the diff.
bless package:
    BLESS=1 cargo test --package {{package}}
