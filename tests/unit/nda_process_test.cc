// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Groups whose PEs are processes, met over TCP. The test itself only starts them: a process
// that has opened software hardware cannot be forked.
#include <arpa/inet.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nda/aiv/device.h>
#include <nda/aiv/soft_core.h>

#include "tests/mock/nda_job.h"

namespace nda::test {
namespace {

using Device = aiv::Device<aiv::SoftCore>;

constexpr uint64_t block = 100000;

// In a child: what fails ends it, with the reason on stderr.
#define MUST(condition)                                                                    \
	do {                                                                               \
		if (!(condition)) {                                                        \
			fprintf(stderr, "PE %u: %s:%d: %s: %s\n", pe, __FILE__, __LINE__,  \
				#condition, nda_error_detail());                           \
			_exit(1);                                                          \
		}                                                                          \
	} while (0)

struct Work {
	uint64_t table, source, target;
	uint32_t peer;
	int status;
};

void put_to_all(const nda_core *core, void *arg)
{
	Work *w = static_cast<Work *>(arg);
	Device device;
	w->status = device.open(aiv::SoftCore(core), w->table, core->index);
	for (uint32_t to = 0; w->status == NDA_OK && to < device.n_pes(); to++)
		w->status = device.put_nbi(
			to, w->target + device.my_pe() * block, w->source, block);
	if (w->status == NDA_OK)
		w->status = device.quiet();
}

// Until the peer is found dead, or for a time that is long enough for anybody.
void put_until_it_fails(const nda_core *core, void *arg)
{
	Work *w = static_cast<Work *>(arg);
	const aiv::SoftCore soft(core);
	Device device;
	w->status = device.open(soft, w->table, core->index);
	const uint64_t begin = soft.cycles(),
		       limit = soft.cycles_per_us() * 20 * 1000 * 1000;
	while (w->status == NDA_OK && soft.cycles() - begin < limit)
		w->status = device.put(w->peer, w->target, w->source, 64);
}

struct Process {
	Process(uint32_t pe_, uint32_t n_pes, int listen_fd, uint16_t port) : pe(pe_)
	{
		static const uint8_t secret[32] = {42};
		nda_bootstrap_tcp_attr tcp = {};
		tcp.pe = pe;
		tcp.n_pes = n_pes;
		tcp.port = port;
		tcp.listen_fd = pe == 0 ? listen_fd : -1;
		tcp.secret = secret;
		tcp.timeout_ms = generous_ms;
		MUST(nda_bootstrap_tcp_create(&tcp, sizeof(tcp), &bootstrap) == 0);
		nda_npu_attr npu_attr = {};
		npu_attr.memory_bytes = 64 << 20;
		npu_attr.flags = doorbell_way().npu_flags;
		MUST((npu = nda_npu_open("soft", &npu_attr, sizeof(npu_attr))));
		MUST((nic = nda_nic_open("soft:hns1825", nullptr, 0)));
		nda_group_attr attr = {};
		attr.heap_bytes = 8 << 20;
		attr.channel.dma_mode = doorbell_way().dma_mode;
		MUST((group = nda_group_create(
			      bootstrap, npu, &nic, 1, &attr, sizeof(attr))));
		nda_channel_info info = {};
		MUST(nda_group_queue_query(group, 1, 0, &info, sizeof(info)) == 0);
		MUST(info.doorbell == doorbell_way().doorbell);
		MUST(nda_group_heap_alloc(group, block, &source) == 0);
		MUST(nda_group_heap_alloc(group, n_pes * block, &target) == 0);
		MUST(nda_npu_memset(npu, source, static_cast<int>(pe) + 1, block) == 0);
		MUST(nda_npu_memset(npu, target, 0, n_pes * block) == 0);
		MUST(nda_group_barrier(group) == 0);
	}

	int run(nda_kernel_fn kernel, uint32_t peer)
	{
		Work w = {nda_group_table(group), source, target, peer, 0};
		MUST(nda_npu_launch(npu, kernel, &w, 1) == 0);
		MUST(nda_npu_wait(npu, generous_ms) == 0);
		return w.status;
	}

	void close()
	{
		MUST(nda_nic_close(nic) == 0);
		MUST(nda_npu_close(npu) == 0);
		MUST(nda_bootstrap_tcp_destroy(bootstrap) == 0);
	}

	const uint32_t pe;
	nda_bootstrap *bootstrap = nullptr;
	nda_npu *npu = nullptr;
	nda_nic *nic = nullptr;
	nda_group *group = nullptr;
	uint64_t source = 0, target = 0;
};

// Starts a process for each PE that runs body, and gives how they ended.
std::vector<int> run_processes(uint32_t n_pes,
	const std::function<void(uint32_t pe, int listen_fd, uint16_t port)> &body)
{
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sockaddr_in address = {};
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	socklen_t size = sizeof(address);
	EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr *>(&address), size), 0);
	EXPECT_EQ(listen(listener, 16), 0);
	EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr *>(&address), &size), 0);
	std::vector<pid_t> children;
	for (uint32_t pe = 0; pe < n_pes; pe++) {
		const pid_t child = fork();
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			body(pe, listener, ntohs(address.sin_port));
			_exit(0);
		}
		children.push_back(child);
	}
	close(listener);
	std::vector<int> ends;
	for (const pid_t child : children) {
		int status = -1;
		EXPECT_EQ(waitpid(child, &status, 0), child);
		ends.push_back(status);
	}
	return ends;
}

TEST(Processes, PutIntoEachOthersHeaps)
{
	constexpr uint32_t n = 3;
	const std::vector<int> ends =
		run_processes(n, [](uint32_t pe, int fd, uint16_t port) {
			Process p(pe, n, fd, port);
			MUST(p.run(put_to_all, 0) == NDA_OK);
			MUST(nda_group_barrier(p.group) == 0);
			std::vector<uint8_t> bytes(n * block);
			MUST(nda_npu_read(p.npu, bytes.data(), p.target, bytes.size()) ==
				0);
			for (size_t i = 0; i < bytes.size(); i++)
				MUST(bytes[i] == i / block + 1);
			MUST(nda_group_destroy(p.group) == 0);
			p.close();
		});
	for (uint32_t pe = 0; pe < n; pe++)
		EXPECT_EQ(ends[pe], 0) << "PE " << pe;
}

TEST(Processes, SurviveOneThatIsKilled)
{
	constexpr uint32_t n = 3;
	const std::vector<int> ends =
		run_processes(n, [](uint32_t pe, int fd, uint16_t port) {
			Process p(pe, n, fd, port);
			MUST(nda_group_barrier(p.group) == 0);
			if (pe == 1)
				raise(SIGKILL);
			MUST(p.run(put_until_it_fails, 1) == NDA_RETRY_EXCEEDED);
			nda_queue_error error = {};
			MUST(nda_group_queue_error(p.group, 1, 0, &error) == 0);
			MUST(error.status == NDA_RETRY_EXCEEDED);
			// The queues of those who live are unharmed.
			MUST(nda_group_queue_error(p.group, pe ? 0 : 2, 0, &error) == 0);
			MUST(error.status == NDA_OK);
			MUST(nda_group_destroy(p.group) == -ECONNRESET);
			MUST(strstr(nda_error_detail(), "PE 1 is gone"));
			p.close();
		});
	EXPECT_EQ(ends[0], 0);
	EXPECT_TRUE(WIFSIGNALED(ends[1]) && WTERMSIG(ends[1]) == SIGKILL);
	EXPECT_EQ(ends[2], 0);
}

} // namespace
} // namespace nda::test
