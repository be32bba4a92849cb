// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef NDA_LIB_NIC_H
#define NDA_LIB_NIC_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ibv_extend.h>
#include <nda/nic.h>
#include <nda/table.h>

#include "lib/nda/gid.h"
#include "lib/nda/npu.h"
#include "lib/nda/registration.h"

namespace nda {

// A URMA jetty: a send queue and its completion queue in NPU memory. Its peer is named by
// an EID and the jetty's id.
class Jetty {
public:
	struct Queues {
		uint32_t id;
		uint32_t jfc_id;
		uint64_t sq_addr;
		uint32_t sq_blocks;
		uint32_t max_inline; // bytes
		uint64_t doorbell;   // where cores ring
		uint64_t cq_addr;
		uint32_t cq_depth;
		uint32_t cqe_bytes;
		uint64_t cq_record;
	};
	struct Peer {
		uint8_t eid[16]; // in network order
		uint32_t id;
		uint8_t timeout; // as nda_channel_attr has them
		uint8_t retry_count;
	};

	virtual ~Jetty() = default;
	virtual int query(Queues &queues) const = 0;
	// Sets the id of the transport that reaches the peer.
	virtual int connect(const Peer &peer, uint32_t &tp_id) = 0;
	// Back to where it may be connected again, with the same queues, not yet used.
	virtual int reset() = 0;
};

// What a NIC needs to know of memory to reach it. Of URMA a segment: lkey is the own one's
// token id, rkey and rkey_id the peer's token.
struct Keys {
	uint32_t lkey;
	uint32_t rkey;
	uint32_t rkey_id; // 0 where the format has none
};

// What libnda needs of a NIC beside its queues, which come through ibv_extend. Any thread
// may use it. Functions return 0 or a negative errno, with the detail set.
class Nic {
public:
	static constexpr uint64_t magic = 0x3163696e61646e; // "ndanic1" in memory

	static int open(const char *name, const nda_nic_attr *attr, size_t attr_size,
		std::shared_ptr<Nic> &out);
	virtual ~Nic() = default;
	Nic(const Nic &) = delete;
	Nic &operator=(const Nic &) = delete;

	const std::string &name() const { return name_; } // "soft:hns1825", "rxe0"
	nda_format format() const { return format_; }
	uint8_t port() const { return port_; }
	ibv_context_extend *extend() const { return extend_; }
	ibv_pd *pd() const { return pd_; }

	virtual int query_device(ibv_device_attr &attr) = 0;
	virtual int query_port(ibv_port_attr &attr) = 0;
	// The port's GIDs in the order of their indices, without the empty entries.
	virtual int query_gids(std::vector<GidEntry> &entries) = 0;
	virtual int modify_qp(ibv_qp *qp, ibv_qp_attr &attr, int mask) = 0;
	// access: enum ibv_access_flags.
	virtual int register_memory(Npu &npu, const MemoryRange &range, int access,
		uint32_t way, Registration &out) = 0;
	virtual int deregister_memory(ibv_mr *mr) = 0;
	// It can be given host memory that is mapped to an NPU instead of the NPU's own.
	virtual bool takes_host_memory() const { return false; }
	// Which processes may reach this one: those that give the same 32 bytes.
	virtual int join_session(const uint8_t *session) = 0;
	// The flow label of an address vector that makes packets leave from that UDP port;
	// 0: none does, and the extension driver is asked.
	virtual uint32_t flow_label_of_port(uint16_t) const { return 0; }
	// Its index in the kernel, if that can have it look at a send queue.
	virtual bool kernel_kicks(uint32_t &) const { return false; }
	// What the extension driver has to say of its last failure in this thread, or "".
	virtual const char *driver_detail() const = 0;
	// -EOPNOTSUPP, with the reason, if this NIC has nothing to do with that NPU, or its
	// queues cannot be driven from there.
	virtual int check_npu(const Npu &npu) const = 0;
	// " (net device eth0)" for error texts, or "".
	virtual std::string net_device_text() const = 0;

	// A NIC whose queues are jetties has no QPs, and its endpoint is named by an EID,
	// in network order. -EOPNOTSUPP from others.
	virtual int query_eid(uint8_t eid[16]);
	virtual int create_jetty(const Npu &npu, uint32_t blocks, queue_buf_dma_mode mode,
		std::unique_ptr<Jetty> &out);

	int info(nda_nic_info &out);
	int choose_gid(const GidChoice &choice, GidEntry &out);
	// -ENETDOWN unless the port is up.
	int check_port(const ibv_port_attr &port) const;

protected:
	Nic(std::string name, nda_format format, uint8_t port = 1)
		: name_(std::move(name)), format_(format), port_(port)
	{}
	// Opens the extension context over a context of the NIC's.
	int open_extend(ibv_context *context);

	const std::string name_;
	const nda_format format_;
	const uint8_t port_;
	ibv_context_extend *extend_ = nullptr;
	ibv_pd *pd_ = nullptr;
};

// A registered range. Keeps its NIC and NPU.
class Mr {
public:
	static constexpr uint64_t magic = 0x31726d61646e; // "ndamr1" in memory

	// access: enum nda_access; way: enum nda_mr_way.
	static int create(const std::shared_ptr<Nic> &nic, const std::shared_ptr<Npu> &npu,
		const MemoryRange &range, uint32_t access, uint32_t way,
		std::shared_ptr<Mr> &out);
	~Mr();
	Mr(const Mr &) = delete;
	Mr &operator=(const Mr &) = delete;

	uint32_t lkey() const { return made_.mr->lkey; }
	uint32_t rkey() const { return made_.mr->rkey; }
	const nda_mr_info &info() const { return made_.info; }
	// -ESTALE, with the reason, if the kernel took the memory away.
	int check() const;
	// Of URMA: the rkey is a token's value.
	bool is_segment() const { return nic_->format() == NDA_FORMAT_UDMA; }
	// What a peer needs beside the rkey: the segment's token id.
	uint32_t rkey_id() const { return is_segment() ? made_.mr->lkey : 0; }

private:
	Mr(std::shared_ptr<Nic> nic, std::shared_ptr<Npu> npu)
		: nic_(std::move(nic)), npu_(std::move(npu))
	{}

	const std::shared_ptr<Nic> nic_;
	const std::shared_ptr<Npu> npu_;
	Registration made_;
};

} // namespace nda

#endif
