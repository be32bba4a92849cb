// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What connects the software NICs of processes: each process has one control segment and
// one service thread, which answers other processes and whose life is the process's life
// word. Memory travels as sealed descriptors; data does not pass through here: the
// initiator's engine copies.
//
// A fabric does not survive fork(): a child must not use what its parent opened. It may
// exec, and may exit.
#ifndef NDA_SOFT_FABRIC_H
#define NDA_SOFT_FABRIC_H

#include "providers/soft/peer.h"
#include "providers/soft/wire.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace nda::soft {

struct MrFields {
	uint64_t address, offset, size;
	uint32_t access, pd, segment;
};

class Fabric {
public:
	// The process's; it is never destroyed.
	static Fabric &get();

	// Makes the control segment and the service thread, once. Everything below needs
	// it.
	int start();

	int set_session(const uint8_t *session);
	uint64_t process() const { return process_; }
	const std::shared_ptr<Peer> &self() const { return self_; }

	// The peer of that number, connecting to it if need be, for at most timeout_ms.
	int connect(uint64_t process, int timeout_ms, std::shared_ptr<Peer> &peer);

	// A slot for an NPU: what its engine shows to others, and its segment.
	int add_npu(int fd, uint8_t *base, uint64_t size, uint32_t &segment);
	void remove_npu(uint32_t segment);
	SharedEngine &engine(uint32_t segment)
	{
		return control_->engines[segment_slot(segment)];
	}

	// Publishes a region and gives its key, -ENOSPC.
	int add_mr(const MrFields &mr, uint32_t &key);
	// Takes the key back, waits for its users, then frees it. -ETIMEDOUT: it is
	// taken back, but a user may still be at it; to be called again.
	int remove_mr(uint32_t key);

	int add_qp(uint32_t &qpn);
	void remove_qp(uint32_t qpn);
	SharedQp &qp(uint32_t qpn) { return control_->qps[qpn]; }

	// Waits until every engine that may have seen earlier states of this process's
	// control segment is done with what it did then. -ETIMEDOUT.
	int quiesce(int timeout_ms = 2000);

private:
	struct Connection;

	int create_control();
	int listen();
	void serve();
	int serve_once();
	void end_connections();
	size_t strangers() const;
	void accept_all();
	bool refuse_one();
	void refuse(int socket, int error);
	void handle(Connection &connection);
	int handle_message(Connection &connection, const Message &message, Fd fd);
	int map_control(uint64_t process, const Fd &fd, std::shared_ptr<Peer> &peer);
	int map_segment(Peer &peer, const Message &message, const Fd &fd);
	int unmap_segment(Peer &peer, uint32_t id);
	int wait_for_engines(const Peer &peer, uint64_t deadline);
	int send_segments(int socket);
	int connect_to(uint64_t process, uint64_t deadline, std::shared_ptr<Peer> &peer);
	int handshake(
		int socket, uint64_t process, int timeout_ms, std::shared_ptr<Peer> &peer);
	void drop_peer(Peer &peer);
	void wake();
	Message message(MessageType type) const;
	std::shared_ptr<Peer> find_complete(uint64_t process);

	uint64_t process_ = 0;
	Mapping control_mapping_;
	Fd control_fd_;
	ControlSegment *control_ = nullptr;
	std::shared_ptr<Peer> self_;
	Fd wake_fd_;

	std::mutex mutex_; // all that follows
	std::condition_variable changed_;
	bool started_ = false;
	bool has_session_ = false;
	uint8_t session_id_[16] = {};
	uint8_t secret_[secret_bytes] = {};
	Fd listener_;
	std::vector<std::unique_ptr<Connection>> connections_;
	std::map<uint64_t, std::shared_ptr<Peer>> peers_; // all that may be in a transfer
	std::set<uint64_t> connecting_;
	uint64_t accept_after_ = 0; // a time, where descriptors had run out
	Fd spare_;                  // to say so to who connects meanwhile
	Fd segment_fds_[max_npus];
	uint32_t segment_ids_[max_npus] = {};
	uint32_t segment_generation_ = 1;
	std::vector<uint16_t> mr_generations_;
	std::vector<bool> mr_used_;
	uint32_t mr_next_ = 1;
	std::vector<bool> qp_used_;
	uint32_t qp_next_ = 1;
};

} // namespace nda::soft

#endif
