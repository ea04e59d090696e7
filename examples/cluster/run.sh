#!/usr/bin/env bash
# Three servers on one private PostgreSQL, on this machine: thirty runs are started, one server is killed with -9, and all runs complete at the other two.
#
#   cargo build --release -p steadfast-cli && examples/cluster/run.sh
#
# STEADFAST names the program (the release build by default); LEASE how long a silent server is waited for.
set -euo pipefail

for name in "${!STEADFAST_@}"; do unset "$name"; done # settings of another server are of no use here
here=$(cd "$(dirname "$0")" && pwd)
steadfast=${STEADFAST:-$here/../../target/release/steadfast}
lease=${LEASE:-3s}
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1 || true)
[ -x "$steadfast" ] || { echo "there is no $steadfast: cargo build --release -p steadfast-cli, or set STEADFAST" >&2; exit 1; }
[ -n "$bin" ] || { echo "there is no PostgreSQL: apt-get install -y --no-install-recommends postgresql" >&2; exit 1; }

dir=$(mktemp -d)
as_postgres=()
if [ "$(id -u)" = 0 ]; then # PostgreSQL does not run as root
    as_postgres=(setpriv --reuid postgres --regid postgres --clear-groups)
    chown postgres "$dir"
fi
chmod 755 "$dir"
pids=()
cleanup() {
    local status=$?
    if [ "$status" != 0 ]; then tail -n 20 "$dir"/*.log >&2 || true; fi # whatever went wrong is there, and nowhere else
    kill "${pids[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    "${as_postgres[@]}" "$bin/pg_ctl" -D "$dir/pg" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

# Asks again and again until the command succeeds, for two minutes: eventually 'what is waited for' COMMAND
eventually() {
    local what=$1 began=$SECONDS
    shift
    until "$@"; do
        [ $((SECONDS - began)) -lt 120 ] || { echo "it never happened: $what" >&2; exit 1; }
        sleep 0.2
    done
}

# Starts PostgreSQL at some port; another one is tried if somebody has it.
start_postgres() {
    for _ in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 12000))
        if (cd "$dir" && "${as_postgres[@]}" "$bin/pg_ctl" -D "$dir/pg" -w -o "-p $port -k $dir -c listen_addresses=127.0.0.1" -l "$dir/pg.log" start >/dev/null); then return; fi
    done
    echo "PostgreSQL does not start" >&2
    exit 1
}

# Starts a server at a free port, which it says in its log.
serve() {
    : >"$dir/server$1.log"
    "$steadfast" serve --postgres "$url" --listen 127.0.0.1:0 --data "$dir/data$1" --definitions "$here/definitions" \
        --set "cluster.lease=$lease" >"$dir/server$1.log" 2>&1 &
    pids+=($!)
    eventually "server $1 says where it is" says_where "$1"
    servers+=("$(grep -om1 'http://127\.0\.0\.1:[0-9]*' "$dir/server$1.log")")
}

says_where() {
    kill -0 "${pids[-1]}" 2>/dev/null || { echo "server $1 has ended" >&2; exit 1; }
    grep -q 'http://127\.0\.0\.1:[0-9]' "$dir/server$1.log"
}

at() { "$steadfast" --server "${servers[$1]}" "${@:2}"; }
all_share() { [ "$(at 0 cluster show --json | grep -o '"shards":2[0-2],' | wc -l)" = 3 ]; } # 64 shards are 22, 22 and 20, or 22, 21 and 21
all_complete() { [ "$(at 0 run list --status COMPLETED --limit 100 --json | grep -o '"stroll-[0-9]*"' | sort -u | wc -l)" = 30 ]; }

echo "== a private PostgreSQL"
(cd "$dir" && "${as_postgres[@]}" "$bin/initdb" -D "$dir/pg" -U steadfast --auth trust >"$dir/initdb.log")
start_postgres
url=postgresql://steadfast@127.0.0.1:$port/postgres

echo "== three servers"
servers=()
for number in 1 2 3; do serve "$number"; done
eventually "all three share the work" all_share
at 0 cluster show

echo "== thirty runs, started at all three"
for number in $(seq 30); do at $((number % 3)) run start stroll --id "stroll-$number" >/dev/null; done

echo "== the third server is killed"
kill -9 "${pids[2]}"
began=$SECONDS

eventually "all runs have completed" all_complete
echo "== all thirty have completed, $((SECONDS - began)) s after that"
at 0 cluster show
