// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// URMA's jetties, for those who make them through the platform's table: a send queue and
// its completion queue (JFC) in NPU memory, as a QP and a CQ are to the engine.
#ifndef NDA_SOFT_JETTY_H
#define NDA_SOFT_JETTY_H

#include "providers/soft/queues.h"

#include <mutex>

namespace nda::soft {

class Jetty {
public:
	static int create(const nda_soft_jetty_attr &attr, Jetty *&jetty);
	static int destroy(Jetty *jetty);
	~Jetty();

	void query(nda_soft_jetty_info &info) const;
	// Sets the id of the transport to the peer. May take seconds.
	int connect(const nda_soft_jetty_peer &peer, uint32_t &tp_id);
	int reset();
	int seek(uint32_t sq_index, uint32_t cq_index)
	{
		return qp().seek(sq_index, cq_index);
	}

private:
	int init(const nda_soft_jetty_attr &attr);
	int check(const nda_soft_jetty_peer &peer) const;
	int step(const ibv_qp_attr &attr, int mask);
	Qp &qp() const { return Qp::of(qp_->qp); }
	uint32_t id() const { return qp_->qp->qp_num; }

	ibv_cq_extend *cq_ = nullptr;
	ibv_qp_extend *qp_ = nullptr;

	std::mutex mutex_; // connecting and resetting take several steps
	bool connected_ = false;
};

} // namespace nda::soft

#endif
