#!/bin/bash
. "$(dirname "$0")/../cli/lib/tap.sh"
. "$(dirname "$0")/lib/queues.sh"
start_all >/dev/null
queue 2 create p; queue 2 create --mirror m; queue 1 create m1 >/dev/null
reqs() { "$ringgate" cluster status -s "$tmp/s$1" --json | json "j['requests'].get('begun', j['requests'].get('requests'))"; }
"$ringgate" cluster status -s "$tmp/s1" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["requests"])' | cut -c1-900
all() { reqs 1; }
RGATE_REQUESTS=$tmp/r2 /tmp/w/q19m_b m 10 1 >/dev/null
for b in 1 64; do n=$((b == 1 ? 1500 : 20000)); for i in 1 2 3; do for q in p m; do
a=$(all); r=$(RGATE_REQUESTS=$tmp/r2 /tmp/w/q19m_b $q $n $b); z=$(all)
echo "batch $b $q $r tasks/s, messages per task $(echo "scale=3; ($z-$a)/$n" | bc)"
queue 1 remove $q; queue 2 create $([ $q = m ] && echo --mirror) $q; sleep 0.1
[ $q = m ] && RGATE_REQUESTS=$tmp/r2 /tmp/w/q19m_b m 10 1 >/dev/null
done; done; done
