// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_LIB_IMPORT_H
#define NDA_LIB_IMPORT_H

#include <memory>
#include <vector>

#include <nda/import.h>
#include <nda/table.h>

#include "lib/nda/import_layout.h"
#include "lib/nda/npu.h"

namespace nda {

// Queues of another library's, and the table through which the data plane drives them.
class Import {
public:
	static constexpr uint64_t magic = 0x3174726f706d69; // "import1" in memory

	static int create(std::shared_ptr<Npu> npu, const nda_import_peer *peers,
		uint32_t n_pes, const nda_import_attr &attr, std::shared_ptr<Import> &out);
	~Import();
	Import(const Import &) = delete;
	Import &operator=(const Import &) = delete;

	uint64_t table() const { return table_.addr(); }
	int query(uint32_t pe, nda_import_info &out) const;
	// Writes to the queues' words where their indices have come to. -EBUSY: a kernel
	// runs, and nothing was done.
	int give_back();

private:
	struct Peer {
		bool valid = false;
		QueueFields fields = {};
		bool own_rings = false; // they are of this NPU's memory
		BufferFields local = {}, remote = {};
		uint32_t lkey = 0, rkey = 0, rkey_id = 0;
		uint32_t index = 0; // to which all is done
		nda_queue queue = {};
	};

	Import(std::shared_ptr<Npu> npu, const nda_import_attr &attr)
		: npu_(std::move(npu)), attr_(attr)
	{}
	int read_peer(uint32_t pe, const nda_import_peer &source);
	int read_channel(const nda_import_peer &source, Peer &peer);
	int read_ai_qp(const nda_import_peer &source, Peer &peer);
	int read_buffer(const char *what, uint64_t addr, bool ub, BufferFields &out);
	int read_npu(const char *what, uint64_t addr, void *out, uint64_t size);
	int check_queue(const Peer &peer) const;
	int check_cq(const Peer &peer) const;
	int read_indices(Peer &peer);
	int agree();
	int check_areas() const;
	int describe(uint32_t pe);
	int claim();
	int prepare_memory();
	int publish();
	int give_back(const Peer &peer, uint32_t pe);

	const std::shared_ptr<Npu> npu_;
	const nda_import_attr attr_;
	nda_format format_ = NDA_FORMAT_NONE;
	uint64_t heap_addr_ = 0, heap_bytes_ = 0;
	std::vector<Peer> peers_;
	std::vector<uint64_t> claimed_; // send queues, by their rings' addresses
	NpuBuffer table_;
};

} // namespace nda

#endif
