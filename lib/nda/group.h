// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_LIB_GROUP_H
#define NDA_LIB_GROUP_H

#include <cstddef>
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
	int table(nda_format format, uint64_t &addr) const;
	int heap_info(uint32_t nic, nda_mr_info &info) const;
	// -ESTALE if the kernel took away what the group stands on.
	int check() const;

	int register_region(uint64_t addr, uint64_t size, uint32_t access,
		std::shared_ptr<Region> &out);
	int view_lend(uint32_t core, uint64_t &addr);
	int view_return(uint32_t core);
	int abort(uint32_t value);
	int repair();
	// owner: as in the format's table.
	int queue_error(
		nda_format format, uint32_t pe, uint32_t owner, nda_queue_error &error);
	int queue_info(
		nda_format format, uint32_t pe, uint32_t owner, nda_channel_info &info);

private:
	// What PEs tell each other of a heap.
	struct PeerHeap {
		uint64_t addr; // of the reserved part, where the allocation begins
		uint32_t rkeys[group_nics_max];
		uint32_t rkey_ids[group_nics_max]; // of URMA: token ids
	};
	struct Hello;
	struct View {
		uint32_t row;
		NpuBuffer blob;
		NpuBuffer amo;
		std::shared_ptr<Mr> amo_mr;
	};

	// What the engine of the same index in the shape has.
	struct Table {
		uint32_t queues_per_core;
		uint32_t first_row;
		NpuBuffer memory;
	};
	// Queues to each PE, of one engine, core and queue. Rows of all engines count on.
	struct Row {
		size_t engine;
		uint32_t owner; // core * queues_per_core + queue
		uint32_t relay; // the own PE: none
	};

	explicit Group(const nda_bootstrap &bootstrap)
		: exchange_(bootstrap), shape_{bootstrap.pe, bootstrap.n_pes, 0, false, {}}
	{}
	int create_parts(const nda_group_attr *attr, size_t attr_size);
	int read_attr(const nda_group_attr *attr, size_t attr_size);
	int sort_nics();
	int count_rows();
	int create_heap();
	int find_place_for_heap();
	int heap_in_npu_memory();
	int heap_in_host_memory(const nda_mr_info *tried);
	int register_heap(const nda_mr_info *tried);
	int create_channels();
	void fill_hello(Hello &hello) const;
	int exchange_hellos(int local);
	int compare_hellos(const std::vector<Hello> &all) const;
	int exchange_channels();
	int exchange_descs(std::vector<uint8_t> &all);
	int finish(const std::vector<uint8_t> &descs);
	int connect_channels(const std::vector<uint8_t> &descs);
	int publish();
	int publish_table(size_t engine);
	int describe_queue(uint32_t row, uint32_t pe, nda_queue &queue) const;

	// Of a repair: which queues, by index().
	using Marks = std::vector<uint8_t>;
	int check_idle() const;
	int mark_own_broken(Marks &own) const;
	int find_broken(Marks &broken, bool &any);
	template <class Visit>
	int for_broken(const Marks &broken, Visit visit);
	int take_away(const Marks &broken);
	int reset_broken(const Marks &broken);
	int clear_sync();
	int publish_again(const Marks &broken);

	uint32_t n_owners(size_t engine) const
	{
		return n_cores_ * tables_[engine].queues_per_core;
	}
	uint32_t n_rows() const
	{
		return tables_.back().first_row + n_owners(tables_.size() - 1);
	}
	uint32_t n_queues() const { return n_rows() * shape_.n_pes; }
	uint32_t index(uint32_t row, uint32_t pe) const { return row * shape_.n_pes + pe; }
	Row row_at(uint32_t index) const;
	bool has_queue(const Row &row, uint32_t to) const;
	// The row of the peer's in which its end of the queue to `to` is.
	uint32_t peer_row(uint32_t index, uint32_t to) const;
	// "queue of core 3 to PE 1", "queue 2 of core 3 to PE 1 by nic soft:udma"
	std::string text(uint32_t row, uint32_t to) const;
	uint64_t queue_addr(uint32_t row, uint32_t pe) const;
	uint64_t state_addr(uint32_t row, uint32_t pe) const
	{
		return queue_addr(row, pe) + offsetof(nda_queue, state);
	}
	int find_engine(nda_format format, size_t &engine) const;
	int find_row(nda_format format, uint32_t pe, uint32_t owner, const char *verb,
		uint32_t &row) const;
	int find_lendable(uint32_t core, uint32_t &row) const;
	int check_view(uint32_t core, const char *verb);
	int create_view(View &view);
	template <class Change>
	int change_states(uint32_t row, Change change);

	const Exchange exchange_;
	GroupShape shape_;
	// In the order in which they must come to be; they go in reverse.
	std::shared_ptr<Npu> npu_;
	Nics nics_;
	ChannelConfig config_;
	uint32_t n_cores_ = 1;
	uint32_t queues_per_core_ = 1; // as asked for
	uint32_t flags_ = 0;
	uint32_t heap_way_ = NDA_MR_ANY; // as asked for
	uint64_t heap_bytes_ = 0;
	uint64_t reserved_bytes_ = 0; // before the heap, see create_heap()
	NpuBuffer heap_buffer_;
	std::vector<std::shared_ptr<Mr>> heap_mrs_; // one for each NIC
	std::vector<PeerHeap> peers_;
	std::vector<std::shared_ptr<Channel>> channels_; // by index()
	std::unique_ptr<Heap> heap_;
	std::vector<Table> tables_;
	std::vector<nda_queue> queues_;            // as published, by index()
	std::vector<std::unique_ptr<View>> views_; // by core; none while not lent
};

} // namespace nda

#endif
