#!/usr/bin/env bash
# Three servers on one private PostgreSQL, on this machine: thirty runs are started, one server is killed with -9, and all runs complete at the other two.
#
#   cargo build --release -p steadfast-cli && examples/cluster/run.sh
#
# STEADFAST names the program (the release build by default); LEASE how long a silent server is waited for.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
steadfast=${STEADFAST:-$here/../../target/release/steadfast}
lease=${LEASE:-3s}
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1 || true)
[ -x "$steadfast" ] || { echo "there is no $steadfast: cargo build --release -p steadfast-cli, or set STEADFAST" >&2; exit 1; }
[ -n "$bin" ] || { echo "there is no PostgreSQL: apt-get install -y --no-install-recommends postgresql" >&2; exit 1; }

dir=$(mktemp -d)
port=$((20000 + RANDOM % 20000))
as_postgres=()
if [ "$(id -u)" = 0 ]; then # PostgreSQL does not run as root
    as_postgres=(setpriv --reuid postgres --regid postgres --clear-groups)
    chown postgres "$dir"
fi
pids=()
cleanup() {
    kill "${pids[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    "${as_postgres[@]}" "$bin/pg_ctl" -D "$dir/pg" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$dir"
}
trap cleanup EXIT

echo "== a private PostgreSQL on port $port"
(cd "$dir" && "${as_postgres[@]}" "$bin/initdb" -D "$dir/pg" -U steadfast --auth trust >/dev/null)
(cd "$dir" && "${as_postgres[@]}" "$bin/pg_ctl" -D "$dir/pg" -w -o "-p $port -k $dir -c listen_addresses=127.0.0.1" -l "$dir/pg.log" start >/dev/null)
url=postgresql://steadfast@127.0.0.1:$port/postgres

echo "== three servers"
chmod 755 "$dir"
servers=()
for number in 1 2 3; do
    api=$((port + number))
    "$steadfast" serve --postgres "$url" --listen "127.0.0.1:$api" --data "$dir/data$number" --definitions "$here/definitions" \
        --set "cluster.lease=$lease" >"$dir/server$number.log" 2>&1 &
    pids+=($!)
    servers+=("http://127.0.0.1:$api")
done
for server in "${servers[@]}"; do
    for _ in $(seq 100); do "$steadfast" --server "$server" run list >/dev/null 2>&1 && break; sleep 0.1; done
done
sleep 1
"$steadfast" --server "${servers[0]}" cluster show

echo "== thirty runs, started at all three"
for number in $(seq 30); do
    "$steadfast" --server "${servers[number % 3]}" run start stroll --id "stroll-$number" >/dev/null
done

echo "== the third server is killed"
kill -9 "${pids[2]}"
began=$SECONDS

until [ "$("$steadfast" --server "${servers[0]}" run list --status COMPLETED --limit 100 --json | grep -o '"stroll-[0-9]*"' | sort -u | wc -l)" = 30 ]; do
    [ $((SECONDS - began)) -lt 120 ] || { echo "not all runs have completed" >&2; exit 1; }
    sleep 0.2
done
echo "== all thirty have completed, $((SECONDS - began)) s after that"
"$steadfast" --server "${servers[0]}" cluster show
