#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# nda-perf as its users call it: usage, failures, files, signals, output.

# shellcheck source=tests/perf.sh
. tests/perf.sh

gone() # gone PID...: none is left, within ten seconds
{
	local pid
	for pid; do
		for _ in $(seq 200); do
			kill -0 "$pid" 2>/dev/null || continue 2
			sleep 0.05
		done
		echo "process $pid is left"
		return 1
	done
}

# Usage.
run --help
check "help is on stdout" exits 0
check "help leaves stderr alone" silent err
run --version
check "version exits 0" exits 0
run
check "no command is wrong usage" exits 2
check "wrong usage is on stderr" silent out
run put --pes zero
check "a bad number is wrong usage" exits 2
check "a bad number is named" says "nda-perf: --pes: 'zero'"
run put --threads --pes 17
check "more PEs than a process has NPUs is wrong usage" exits 2
check "and says so" says "nda-perf: --pes: '17': must be at most 16 with --threads"
run put --sizes 1M --heap 64K
check "a heap that is too small is wrong usage" exits 2
run put --pes 16 --cores 48 --queues 32 --depth 32768 --json
check "more memory than there is exits 1" exits 1
check "more memory than there is is said once" [ "$(wc -l <"$dir/err")" -eq 1 ]
check "more memory than there is is named" says \
	"nda-perf: job: 16 PEs here with 24576 queues each, of depth 32768, need about "
run put --nic soft:none --json
check "an unknown NIC exits 3" exits 3
check "an unknown NIC is named" says "soft:none"
check "an unknown NIC is said once" [ "$(wc -l <"$dir/err")" -eq 1 ]
check "an unknown NIC is in the document" json 'j["rows"] == [] and j["errors"]'
run put --inject nonsense
check "a bad fault is wrong usage" exits 2

# Doorbells.
for ring in auto map proxy; do
	run put --doorbell $ring --sizes 8 --iterations 100 --verify --json
	way_taken=$([ $ring = auto ] && echo map || echo $ring)
	check "--doorbell $ring is told in the row" \
		json "j['rows'][0]['doorbell'] == '$way_taken' and j['rows'][0]['verified']"
done
run put --doorbell proxy --sizes 8 --iterations 100
check "a proxied doorbell is told in the table" grep -q 'doorbells by proxy' "$dir/out"

# Failures.
for mode in "" --threads; do
	for fault in remote-access-error:50 retry-exceeded:50; do
		# shellcheck disable=SC2086
		run put $mode --sizes 8 --iterations 500 --inject $fault --json
		check "$fault $mode: exits 1" exits 1
		check "$fault $mode: names PE, peer and QP" \
			grep -Eq '^nda-perf: PE [01], core 0, queue to PE [01] \(QP [0-9]+' "$dir/err"
		check "$fault $mode: is in the document" json \
			'j["errors"] and all(e["status"] != 0 and e["status_text"] and
e["op"] == "put" and e["size_bytes"] == 8 and e["peer"] is not None for e in j["errors"])'
	done
done

# A job of its own process group, as an interactive shell starts it; $job, and its PEs in $pes.
start_job()
{
	set -m
	# Whoever runs the tests in the background may have it ignored.
	env --default-signal=INT "$perf" "$@" >"$dir/out" 2>"$dir/err" &
	job=$!
	set +m
	for _ in $(seq 400); do
		read -r -a pes <"/proc/$job/task/$job/children"
		[ "${#pes[@]}" -eq 3 ] && break
		sleep 0.02
	done
}

# Killed in the middle of its work: after the first row.
start_job put --pes 3 --seconds 0.2 --sizes "$(seq -s , 8 8 400)"
for _ in $(seq 1000); do
	grep -q ' B ' "$dir/out" && break
	sleep 0.02
done
kill -9 "${pes[1]}"
begin=$(date +%s%N)
wait "$job"
status=$?
took=$((($(date +%s%N) - begin) / 1000000))
check "a killed PE ends the job" exits 1
check "a killed PE ends the job soon ($took ms)" [ "$took" -lt 10000 ]
check "a killed PE is named" grep -Eq 'PE [0-2]: killed by signal 9' "$dir/err"
check "a killed PE leaves none behind" gone "${pes[@]}"

for sig in INT TERM; do
	start_job put --pes 3 --sizes 8 --seconds 20
	if [ $sig = INT ]; then
		kill -s INT -- "-$job" # as a terminal does
	else
		kill -s TERM "$job"
	fi
	wait "$job"
	status=$?
	check "SIG$sig ends the job" exits "$([ $sig = INT ] && echo 130 || echo 143)"
	check "SIG$sig leaves no PE behind" gone "${pes[@]}"
done

start_job put --pes 3 --sizes 8 --seconds 20
kill -9 "$job"
wait "$job" 2>/dev/null
check "PEs die with their parent" gone "${pes[@]}"

# Copies.
: >"$dir/empty"
printf x >"$dir/one"
head -c 1000003 /dev/urandom >"$dir/odd"
head -c 9000001 /dev/urandom >"$dir/large"
cp "$dir/odd" "$dir/a \"name\""
for mode in "" --threads; do
	# shellcheck disable=SC2086
	run copy $mode --pes 3 --heap 4M --chunk 64K "$dir/empty" "$dir/one" "$dir/odd" \
		"$dir/large" "$dir/a \"name\"" --json
	check "copy $mode: exits 0" exits 0
	check "copy $mode: rows" json "$row_keys and len(j['rows']) == 5 and
all(r['op'] == 'copy' and r['verified'] is True and len(r['pe_sha256']) == 3
for r in j['rows'])"
	sums=$(cd "$dir" && sha256sum empty one odd large odd | cut -d ' ' -f 1 | tr '\n' ' ')
	check "copy $mode: sums are those of sha256sum" \
		json "'$sums'.split() == [r['sha256'] for r in j['rows']] and
all(s == r['sha256'] for r in j['rows'] for s in r['pe_sha256'])"
	check "copy $mode: names survive" json 'j["rows"][4]["file"].endswith("a \"name\"")'
done
run copy --cores 2 --window 3 --batch 2 --chunk 4097 "$dir/large"
check "copy with small windows" exits 0
check "copy prints the sums" grep -q "$(sha256sum "$dir/large" | cut -d ' ' -f 1)  matches" \
	"$dir/out"
run copy /no/such/file "$dir/one"
check "a missing file exits 1" exits 1
check "a missing file is named" says "nda-perf: /no/such/file: No such file or directory"
run copy "$dir"
check "a directory is refused" says "nda-perf: $dir: Is a directory"
if [ "$(id -u)" -ne 0 ]; then
	chmod 0 "$dir/one"
	run copy "$dir/one"
	check "an unreadable file exits 1" exits 1
	check "an unreadable file is named" says "nda-perf: $dir/one: Permission denied"
else
	skip "an unreadable file: root reads everything"
fi

# Two command lines, as of two machines; here both are this one.
both() # both ARGUMENT...: status and $dir/out of the side that listens, $other of the other
{
	# shellcheck disable=SC2086
	timeout -k 5 120 "$perf" "$@" --listen=127.0.0.1 --port "$port" \
		--secret-file "$dir/secret" $files >"$dir/out" 2>"$dir/err" &
	local listener=$!
	for _ in $(seq 200); do
		[ ! -s "$dir/secret" ] || break
		sleep 0.05
	done
	# shellcheck disable=SC2086
	timeout -k 5 120 "$perf" "$@" $more --connect 127.0.0.1 --port "$port" \
		--secret-file "$dir/secret" >"$dir/other.out" 2>"$dir/other.err"
	other=$?
	wait $listener
	status=$?
}
port=$((20000 + $$ % 10000)) files='' more=''
both put --pes 4 --sizes 8,64K --iterations 300 --verify --json
check "two sides: the one that listens exits 0" exits 0
check "two sides: the other exits 0" [ "$other" -eq 0 ]
check "two sides: rows" json "$row_keys and len(j['rows']) == 2 and
all(r['pes'] == 4 and r['verified'] is True for r in j['rows'])"
check "two sides: the secret is its owner's" [ "$(stat -c %a "$dir/secret")" = 600 ]
files="$dir/odd $dir/empty"
both copy --json
check "two sides: copy exits 0" exits 0
check "two sides: copy exits 0 on the other" [ "$other" -eq 0 ]
check "two sides: copy" json 'len(j["rows"]) == 2 and all(r["verified"] for r in j["rows"])'
files='' more='--window 3'
both put --sizes 8 --iterations 10
check "two sides that differ exit 1" exits 1
check "two sides that differ: the other exits 1" [ "$other" -eq 1 ]
check "two sides that differ are told" says "the other side's command or options differ"

# Standard output.
timeout 120 "$perf" put --sizes 8 --iterations 10 >/dev/full 2>"$dir/err"
status=$?
check "a full disk exits 1" exits 1
check "a full disk is named" says "standard output: No space left on device"
"$perf" --help >/dev/full 2>"$dir/err"
status=$?
check "help to a full disk exits 1" exits 1
check "help to a full disk names it" says "standard output: No space left on device"
timeout 120 "$perf" put --sizes 8 --iterations 10 >&- 2>"$dir/err"
status=$?
check "a closed standard output exits 1" exits 1
check "a closed standard output is named" says "standard output: Bad file descriptor"
# Log lines of PEs without a standard error must not end up in the job's sockets.
NDA_LOG=debug timeout 120 "$perf" put --pes 3 --sizes 8 --iterations 10 --verify --json \
	>"$dir/out" <&- 2>&-
status=$?
check "without standard error: exits 0" exits 0
check "without standard error: a row" json 'j["rows"][0]["verified"] is True'

# No more threads. Root has as many as it likes.
if [ "$(id -u)" -ne 0 ] || command -v setpriv >/dev/null; then
	as=()
	[ "$(id -u)" -ne 0 ] || as=(setpriv --reuid 65533 --regid 65533 --clear-groups)
	(
		ulimit -u 4
		timeout 120 "${as[@]}" "$perf" put --threads --pes 16 --sizes 8
	) >"$dir/out" 2>"$dir/err"
	status=$?
	check "too few threads exits 1" exits 1
	check "too few threads is named" grep -q 'starting its thread: ' "$dir/err"
else
	skip "too few threads: root, and no setpriv"
fi

sum_up
