/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How long the calls of /dev/nda take, beside what the RDMA core takes for the same memory,
 * in one run that takes turns. Lines that begin with 'bench:' are the results: medians, of
 * which the ratios mean something and the microseconds only how they compare with each
 * other.
 */
#include <time.h>

#include <algorithm>
#include <cinttypes>

#include <infiniband/verbs.h>

#include <tests/vm/kmod_doorbell_rig.h>
#include <tests/vm/kmod_memory.h>

namespace {

using namespace nda::test;

constexpr int rounds = 9, doorbell_rounds = 999;
constexpr size_t pin_size = size_t{256} << 20;
constexpr size_t npu_size = size_t{64} << 20;

double now_us()
{
	timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return static_cast<double>(ts.tv_sec) * 1e6 + static_cast<double>(ts.tv_nsec) / 1e3;
}

void require(bool good, const char *what)
{
	if (good)
		return;
	printf("FAIL: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Times of one thing, in microseconds. */
class Times {
public:
	template <typename F>
	void add(F what)
	{
		double begin = now_us();

		what();
		all_.push_back(now_us() - begin);
	}
	double median()
	{
		std::sort(all_.begin(), all_.end());
		return all_[all_.size() / 2];
	}

private:
	std::vector<double> all_;
};

class Rxe {
public:
	Rxe()
	{
		ibv_device **list = ibv_get_device_list(nullptr);

		require(list && list[0], "there is an RDMA device");
		context_ = ibv_open_device(list[0]);
		ibv_free_device_list(list);
		require(context_, "ibv_open_device");
		pd_ = ibv_alloc_pd(context_);
		require(pd_, "ibv_alloc_pd");
	}
	Rxe(const Rxe &) = delete;
	Rxe &operator=(const Rxe &) = delete;
	~Rxe()
	{
		ibv_dealloc_pd(pd_);
		ibv_close_device(context_);
	}
	ibv_pd *pd() const { return pd_; }

private:
	ibv_context *context_;
	ibv_pd *pd_;
};

void bench_pin(const Rxe &rxe, int nda)
{
	Pages memory(pin_size);
	Times pin, unpin, reg, dereg;
	memset(memory.data(), 1, memory.size());

	for (int i = 0; i < rounds; i++) {
		nda_ioc_host_pin arg = {};
		ibv_mr *mr = nullptr;

		arg.va = memory.va();
		arg.len = memory.size();
		arg.dev = bdf_of("vm_edu0");
		arg.access = NDA_ACCESS_READ | NDA_ACCESS_WRITE;
		pin.add([&] {
			require(call(nda, NDA_IOC_HOST_PIN, &arg) == 0, "HOST_PIN");
		});
		unpin.add([&] { require(destroy(nda, arg.handle) == 0, "DESTROY"); });
		reg.add([&] {
			mr = ibv_reg_mr(rxe.pd(), memory.data(), memory.size(),
				IBV_ACCESS_LOCAL_WRITE);
			require(mr, "ibv_reg_mr");
		});
		dereg.add([&] { require(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr"); });
	}
	printf("bench: 256 MiB of host memory: pin and map %.0f us, ibv_reg_mr %.0f us, "
	       "ratio %.2f\n",
		pin.median(), reg.median(), pin.median() / reg.median());
	printf("bench: 256 MiB of host memory: unpin %.0f us, ibv_dereg_mr %.0f us, ratio "
	       "%.2f\n",
		unpin.median(), dereg.median(), unpin.median() / dereg.median());
}

void bench_export(const Rxe &rxe, int nda, int soft)
{
	Times exported, mapped, freed, revoked, reg;

	for (int i = 0; i < rounds; i++) {
		SoftMemory plain(soft, npu_size), used(soft, npu_size);
		Importer importer;
		Export made;

		exported.add([&] { made = make_export(nda, used.map.va(), npu_size); });
		require(made.error == 0, "EXPORT");
		mapped.add([&] {
			require(importer.attach(made.fd) == 0, "attach");
			require(importer.map() == 0, "map");
		});
		reg.add([&] {
			ibv_mr *mr = ibv_reg_mr(rxe.pd(),
				const_cast<uint8_t *>(plain.map.data()), npu_size,
				IBV_ACCESS_LOCAL_WRITE);
			require(mr && ibv_dereg_mr(mr) == 0, "ibv_reg_mr");
		});
		freed.add([&] {
			require(soft_free(soft, plain.request.handle) == 0, "FREE");
		});
		revoked.add([&] {
			require(soft_free(soft, used.request.handle) == 0, "FREE");
		});
		require(importer.state().told == 1, "the importer was told");
	}
	printf("bench: 64 MiB of NPU memory: export %.0f us, attach and map %.0f us, "
	       "together %.2f "
	       "of ibv_reg_mr and ibv_dereg_mr\n",
		exported.median(), mapped.median(),
		(exported.median() + mapped.median()) / reg.median());
	printf("bench: 64 MiB of NPU memory: free %.0f us, free with revocation of an "
	       "importer "
	       "%.0f us\n",
		freed.median(), revoked.median());
}

/* Beside what it takes the RDMA core to map the page for the CPU, and to unmap it. */
void bench_doorbell(int nda)
{
	Fd uverbs = open_uverbs();
	Mapping bell(uverbs, NDA_TEST_IB_BAR * page, page);
	Times take, give, map, unmap;

	require(bell.good(), "mmap of the doorbell");
	for (int i = 0; i < doorbell_rounds; i++) {
		nda_ioc_db_map arg = doorbell_request(bell.va());
		void *at = nullptr;

		take.add([&] { require(call(nda, NDA_IOC_DB_MAP, &arg) == 0, "DB_MAP"); });
		give.add([&] { require(destroy(nda, arg.handle) == 0, "DESTROY"); });
		map.add([&] {
			at = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, uverbs,
				NDA_TEST_IB_BAR * page);
			require(at != MAP_FAILED, "mmap");
		});
		unmap.add([&] { require(munmap(at, page) == 0, "munmap"); });
	}
	printf("bench: a doorbell: map %.0f us, unmap %.0f us, together %.2f of mmap and "
	       "munmap of its page\n",
		take.median(), give.median(),
		(take.median() + give.median()) / (map.median() + unmap.median()));
}

} // namespace

int main()
{
	Rxe rxe;
	Fd nda = open_nda(), soft = open_soft();

	require(nda >= 0 && soft >= 0, "open");
	bench_pin(rxe, nda);
	bench_export(rxe, nda, soft);
	bench_doorbell(nda);
	return 0;
}
