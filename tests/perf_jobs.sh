#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What nda-perf measures and moves, verified: every operation, each software NIC.

# shellcheck source=tests/perf.sh
. tests/perf.sh

# Measuring.
for op in put get; do
	for mode in "" --threads; do
		for more in "--pes 2" "--pes 3 --cores 2 --batch 8 --signal-every 16 --depth 64" \
			"--pes 2 --strict" "--pes 2 --no-assist --window 1"; do
			# shellcheck disable=SC2086
			run $op $mode --window 16 $more --sizes 1,8,4099,64K --iterations 300 --verify --json
			name="$op $mode $more"
			check "$name: exits 0" exits 0
			check "$name: stderr is empty" silent err
			check "$name: rows" json "j['schema'] == 1 and $row_keys and
[r['size_bytes'] for r in j['rows']] == [1, 8, 4099, 65536] and
all(r['op'] == '$op' and r['nic'] == 'soft:hns1825' and r['verified'] is True and
r['doorbell'] == 'map' and
r['messages_per_s'] > 0 and 0 < r['latency_p50_ns'] <= r['latency_p99_ns']
for r in j['rows']) and j['errors'] == []"
		done
	done
done
for op in put get; do
	run $op --one-way --sizes 8,64K --iterations 300 --verify --json
	check "$op --one-way: exits 0" exits 0
	check "$op --one-way: rows" json "$row_keys and len(j['rows']) == 2 and
all(r['one_way'] is True and r['verified'] is True and r['queues'] == 1 and
r['messages'] == 300 for r in j['rows'])"
done
run put --sizes 8 --iterations 100
check "the table goes to stdout" grep -q '^ *8 B ' "$dir/out"
check "no progress without a terminal" silent err
# However many are asked for, they take at most the time of a measurement.
for op in "put --sizes 8" "signal --sizes 8" "atomic --nic soft:xscale --op add" barrier; do
	# shellcheck disable=SC2086
	run $op --warmup 1000000000000 --seconds 0.1 --json
	check "$op: a long warm-up ends" exits 0
done

# Queues of a core.
for op in put get; do
	run $op --queues 3 --cores 2 --window 16 --batch 4 --sizes 8,4099 --iterations 300 \
		--verify --json
	check "$op --queues: exits 0" exits 0
	check "$op --queues: rows" json "len(j['rows']) == 2 and all(r['verified'] is True and
r['queues_per_core'] == 3 and r['queues'] == 12 for r in j['rows'])"
done
# Every queue of PE 0 carries messages, and a window's are shared out evenly.
run put --one-way --queues 4 --sizes 8 --window 16 --iterations 160 --warmup 0 \
	--events "$dir/events"
check "--events: exits 0" exits 0
check "--events: has each request and completion, of each queue alike" python3 -c '
import collections, json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
wqes = collections.Counter(e["qpn"] for e in events if e["event"] == "wqe")
cqes = [e for e in events if e["event"] == "cqe" and e["status"] == 0]
sys.exit(sorted(wqes.values()) != [80] * 4 or len(cqes) != 320)' "$dir/events"
run put --events "$dir/none/events" --json
check "an event log that cannot be made exits 1" exits 1
check "an event log that cannot be made is named" says "'$dir/none/events': No such file"

# Every software NIC there is.
run put --nic soft:none
models=$(sed -n 's/.*known: //p' "$dir/err" | tr -d ,)
check "software NICs are known" [ -n "$models" ]
# Minutes in a build with sanitizers, where unit tests run threads of every model, too.
case $perf in
*san-*)
	skip "soft:in_die and soft:xscale: too slow in this build"
	models='hns1825 udma'
	;;
esac
all_atomics='fetch-add compare-swap add swap set fetch-and fetch-or fetch-xor'
atomics() # atomics MODEL BYTES: those that it has
{
	case $1-$2 in
	in_die-8) echo fetch-add compare-swap add ;;
	xscale-* | udma-*) echo "$all_atomics" ;;
	esac
}
for model in $models; do
	nic="--nic=soft:$model"
	for op in put get; do
		for more in "--pes 4 --cores 2 --batch 8 --signal-every 16 --depth 64" \
			"--strict --queues 2" "--doorbell proxy"; do
			# shellcheck disable=SC2086
			run $op "$nic" --window 16 $more --sizes 1,8,4099,64K --iterations 300 \
				--verify --json
			check "$model: $op $more: exits 0" exits 0
			check "$model: $op $more: rows" json "$row_keys and
[r['size_bytes'] for r in j['rows']] == [1, 8, 4099, 65536] and
all(r['nic'] == 'soft:$model' and r['verified'] is True for r in j['rows']) and j['errors'] == []"
		done
	done
	for more in "" "--doorbell proxy"; do
		# shellcheck disable=SC2086
		run copy "$nic" --pes 3 --cores 2 --chunk 4097 $more "$perf"
		check "$model: copy $more" exits 0
	done
	for more in "--pes 2 --strict" "--pes 3 --cores 2 --signal-every 4 --doorbell proxy"; do
		# shellcheck disable=SC2086
		run signal "$nic" $more --sizes 8,4099 --window 16 --iterations 100 --verify --json
		check "$model: signal $more: exits 0" exits 0
		check "$model: signal $more: rows" json "$row_keys and
[r['size_bytes'] for r in j['rows']] == [8, 4099] and
all(r['op'] == 'signal' and r['verified'] is True and r['messages'] == 100 * r['pes'] * r['cores']
and 0 < r['latency_p50_ns'] <= r['latency_p99_ns'] for r in j['rows'])"
	done
	run barrier "$nic" --pes 3 --iterations 100 --verify --json
	check "$model: barrier: exits 0" exits 0
	check "$model: barrier: rows" json "$row_keys and
[r['barrier'] for r in j['rows']] == ['barrier-all', 'sync-all'] and
all(r['op'] == 'barrier' and r['verified'] is True and r['messages'] == 100 and
r['messages_per_s'] > 0 and 0 < r['latency_p50_ns'] <= r['latency_p99_ns'] for r in j['rows'])"
	for bytes in 4 8; do
		has=$(atomics "$model" $bytes)
		run atomic "$nic" --pes 3 --bytes $bytes --iterations 100 --window 16 --verify --json
		if [ -n "$has" ]; then
			check "$model: atomics of $bytes bytes: exits 0" exits 0
			check "$model: atomics of $bytes bytes: rows" json "$row_keys and
[r['atomic'] for r in j['rows']] == '$has'.split() and all(r['op'] == 'atomic' and
r['verified'] is True and r['size_bytes'] == $bytes and r['messages'] == 300 for r in j['rows'])"
		else
			check "$model: no atomics of $bytes bytes: exits 1" exits 1
			check "$model: no atomics of $bytes bytes: is told" says \
				"nda-perf: nic soft:$model: its queue format has no atomics of $bytes"
		fi
		for what in compare-swap set; do
			case " $has " in *" $what "*) continue ;; esac
			run atomic "$nic" --op $what --bytes $bytes --verify --json
			check "$model: no $what of $bytes bytes: exits 1" exits 1
			check "$model: no $what of $bytes bytes: is told" says \
				"nda-perf: nic soft:$model: its queue format has no $what of $bytes"
			check "$model: no $what of $bytes bytes: has no row" \
				json 'j["rows"] == [] and j["errors"]'
		done
	done
	# Without a hang; whoever waits for one that failed gives up in time.
	for op in "put --sizes 8" "signal --sizes 8" barrier; do
		# shellcheck disable=SC2086
		run $op "$nic" --seconds 1 --timeout-ms 500 --inject remote-access-error:100 --json
		check "$model: a remote access error of $op exits 1" exits 1
		check "$model: a remote access error of $op is in the document" json \
			'any(e["status"] == 8 and e["status_text"] and e["peer"] is not None
for e in j["errors"])'
	done
done

sum_up
