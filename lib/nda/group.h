// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_LIB_GROUP_H
#define NDA_LIB_GROUP_H

#include <memory>
#include <string>
#include <vector>

#include <nda/group.h>

#include "lib/nda/channel.h"
#include "lib/nda/exchange.h"
#include "lib/nda/heap.h"
#include "lib/nda/publish.h"
#include "lib/nda/region.h"

namespace nda {

class Group {
public:
	static constexpr uint64_t magic = 0x3170756f7267; // "group1" in memory

	using Nics = std::vector<std::shared_ptr<Nic>>;

	// local: how far the caller's own arguments were right; if it is not 0 the PE takes
	// part only to say so.
	static int create(const nda_bootstrap &bootstrap, int local,
		std::shared_ptr<Npu> npu, Nics nics, const nda_group_attr *attr,
		size_t attr_size, std::shared_ptr<Group> &out);
	Group(const Group &) = delete;
	Group &operator=(const Group &) = delete;

	uint32_t pe() const { return shape_.pe; }
	uint32_t n_pes() const { return shape_.n_pes; }
	const GroupShape &shape() const { return shape_; }
	Npu &npu() const { return *npu_; }
	int barrier() const { return exchange_.barrier(); }

	int heap_alloc(uint64_t size, uint64_t &addr);
	int heap_free(uint64_t addr);
	uint64_t heap_base() const { return heap_buffer_.addr() + reserved_bytes_; }
	uint64_t table() const { return table_.addr(); }

	int register_region(uint64_t addr, uint64_t size, uint32_t access,
		std::shared_ptr<Region> &out);
	int view_lend(uint32_t core, uint64_t &addr);
	int view_return(uint32_t core);
	int abort(uint32_t value);
	int repair();
	// owner: core * queues_per_core + queue.
	int queue_error(uint32_t pe, uint32_t owner, nda_queue_error &error);
	int queue_info(uint32_t pe, uint32_t owner, nda_channel_info &info);

private:
	// What PEs tell each other of a heap.
	struct PeerHeap {
		uint64_t addr; // of the reserved part, where the allocation begins
		uint32_t rkeys[group_nics_max];
		uint32_t rkey_ids[group_nics_max]; // of URMA: token ids
	};
	struct Hello;
	struct View {
		NpuBuffer blob;
		NpuBuffer amo;
		std::shared_ptr<Mr> amo_mr;
	};

	explicit Group(const nda_bootstrap &bootstrap)
		: exchange_(bootstrap), shape_{bootstrap.pe, bootstrap.n_pes, 0}
	{}
	int create_parts(const nda_group_attr *attr, size_t attr_size);
	int read_attr(const nda_group_attr *attr, size_t attr_size);
	int create_heap();
	int create_channels();
	void fill_hello(Hello &hello) const;
	int exchange_hellos(int local);
	int compare_hellos(const std::vector<Hello> &all) const;
	int exchange_channels();
	int exchange_descs(std::vector<uint8_t> &all);
	int finish(const std::vector<uint8_t> &descs);
	int connect_channels(const std::vector<uint8_t> &descs);
	int find_broken(std::vector<uint8_t> &broken);
	int reset_broken(const std::vector<uint8_t> &broken);
	int publish_again(const std::vector<uint8_t> &broken);
	int publish();
	int describe_queue(uint32_t owner, uint32_t pe, nda_queue &queue) const;

	uint32_t n_owners() const { return n_cores_ * queues_per_core_; }
	uint32_t n_queues() const { return n_owners() * shape_.n_pes; }
	uint32_t index(uint32_t owner, uint32_t pe) const
	{
		return owner * shape_.n_pes + pe;
	}
	std::string text(uint32_t owner) const; // "queue of core 3", "queue 1 of core 3"
	uint32_t nic_to(uint32_t pe) const
	{
		return nic_between(shape_.pe, pe, shape_.n_nics);
	}
	uint64_t state_addr(uint32_t owner, uint32_t pe) const
	{
		return table_.addr() + state_offset(index(owner, pe));
	}
	int check_queue(uint32_t pe, uint32_t owner, const char *verb) const;
	int check_view(uint32_t core, const char *verb);
	int create_view(uint32_t core, View &view);
	template <class Change>
	int change_states(uint32_t core, Change change);

	const Exchange exchange_;
	GroupShape shape_;
	// In the order in which they must come to be; they go in reverse.
	std::shared_ptr<Npu> npu_;
	Nics nics_;
	ChannelConfig config_;
	uint32_t n_cores_ = 1;
	uint32_t queues_per_core_ = 1;
	bool shared_queues_ = false;
	uint64_t heap_bytes_ = 0;
	uint64_t reserved_bytes_ = 0; // before the heap: the queues' scratch words
	NpuBuffer heap_buffer_;
	std::vector<std::shared_ptr<Mr>> heap_mrs_; // one for each NIC
	std::vector<PeerHeap> peers_;
	std::vector<std::shared_ptr<Channel>> channels_; // by index()
	std::unique_ptr<Heap> heap_;
	NpuBuffer table_;
	std::vector<nda_queue> queues_;            // as published
	std::vector<std::unique_ptr<View>> views_; // by core; none while not lent
};

} // namespace nda

#endif
