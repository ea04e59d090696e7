#!/usr/bin/env bash
# Two instances that share tenants through a private Redis. One of them is killed in the middle of a stage; a person goes on with the tenant at the other.
# It needs redis-server and a built steadfast: STEADFAST=path/to/steadfast, or one that is in target/release, target/debug or on the PATH.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
processes=()

end() {
    for process in "${processes[@]}"; do kill -9 "$process" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap end EXIT
trap 'exit 1' INT TERM

for name in "${!STEADFAST_@}"; do unset "$name"; done # settings of another server are of no use here
steadfast=${STEADFAST:-}
for candidate in "$here/../../target/release/steadfast" "$here/../../target/debug/steadfast" "$(command -v steadfast || true)"; do
    [ -n "$steadfast" ] || [ ! -x "$candidate" ] || steadfast=$candidate
done
[ -x "$steadfast" ] || { echo "there is no steadfast: build it (cargo build --release), or say STEADFAST=path/to/steadfast" >&2; exit 2; }
command -v redis-server > /dev/null || { echo "there is no redis-server: install Redis 6.2 or later" >&2; exit 2; }

step() { printf '\n== %s\n' "$*"; }
fail() { echo "it never happened: $1" >&2; tail -n 20 "$work"/*.log >&2; exit 1; }

# Asks an instance, and shows what was asked: at A tenant show acme
at() {
    local url=url_$1 word words=
    for word in "${@:2}"; do
        case $word in *' '*) words+=" '$word'" ;; *) words+=" $word" ;; esac
    done
    echo "\$ steadfast$words     # at instance $1"
    "$steadfast" --server "${!url}" "${@:2}" 2>&1
}

# Waits until an answer has a text in it: until_has A '"status":"RUNNING"' tenant show acme
until_has() {
    local url=url_$1
    for _ in $(seq 300); do
        if "$steadfast" --server "${!url}" "${@:3}" --json 2> /dev/null | grep -qF "$2"; then return; fi
        sleep 0.2
    done
    fail "$2 in: ${*:3}"
}

# Starts an instance; its address is in url_NAME, its process in process_NAME.
serve() {
    : > "$work/$1.log"
    "$steadfast" serve --listen 127.0.0.1:0 --data "$work/$1" --definitions "$work/plans" --redis "redis://127.0.0.1:$redis_port" --instance "$1" \
        --set redis.heartbeat_ttl=3s 2> "$work/$1.log" &
    processes+=("$!")
    declare -g "process_$1=$!"
    for _ in $(seq 300); do
        local address
        address=$(grep -om1 'http://127\.0\.0\.1:[0-9]*' "$work/$1.log" || true)
        if [ -n "$address" ]; then declare -g "url_$1=$address"; return; fi
        sleep 0.1
    done
    fail "instance $1 answers"
}

start_redis() {
    for _ in $(seq 10); do
        redis_port=$((20000 + RANDOM % 12000))
        redis-server --port "$redis_port" --bind 127.0.0.1 --save '' --appendonly no --dir "$work" --logfile "$work/redis.log" > /dev/null &
        local process=$!
        processes+=("$process")
        for _ in $(seq 50); do
            grep -q 'Ready to accept connections' "$work/redis.log" 2> /dev/null && return
            kill -0 "$process" 2> /dev/null || break # somebody else has the port
            sleep 0.1
        done
    done
    fail "Redis answers"
}

mkdir "$work/plans" "$work/plans/state"
cp -r "$here/scripts" "$here/switch-gateway.yaml" "$work/plans"
touch "$work/plans/state/acme.slow" # its verification takes until that file is gone

step "A private Redis, and two instances with stores of their own: a and b"
start_redis
serve a
serve b

step "A plan over two tenants begins at a; acme is the canary"
at a plan apply switch-gateway --id move-1 --tenant acme --tenant globex --var to=new --start
until_has a '"currentStage":{"index":3' tenant show acme
until_has b '"hasCheckpoint":true' tenant show acme

step "b shows it, too: a has it, and lives"
at b tenant show acme
at b tenant retry acme --reason 'b would like to' || echo "(refused: it is a's)"

step "a is killed in the middle of stage verify (kill -9)"
{ kill -9 "$process_a" && wait "$process_a"; } 2> /dev/null || true
until_has b '"status":"INTERRUPTED"' tenant show acme
at b tenant show acme
at b plan show move-1

step "A person decides: acme goes on at b, from its checkpoint"
rm "$work/plans/state/acme.slow"
at b tenant retry acme --reason 'a is gone'
until_has b '"status":"COMPLETED"' tenant show acme
at b tenant show acme

step "a comes back, finds that acme went on without it, and touches nothing"
serve a
until_has a '"status":"HANDED_OVER"' run show move-1/acme
at a tenant show acme
at a plan show move-1

step "What the gateway was told about acme: nothing was done twice but the stage that was under way"
grep acme "$work/plans/state/log"
