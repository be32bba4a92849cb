// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The software NICs. Their ibv_context is synthetic: libibverbs would crash on it, so all
// verbs go through the table of functions that comes with them.
#ifndef NDA_LIB_SOFT_NIC_H
#define NDA_LIB_SOFT_NIC_H

#include "lib/nda/nic.h"
#include "lib/nda/soft.h"

namespace nda {

// Those that there are, each behind the prefix.
std::string soft_models(const char *prefix);

class SoftNic final : public Nic {
public:
	static int open(const std::string &model, const nda_nic_attr &attr,
		std::shared_ptr<Nic> &out);
	~SoftNic() override;

	int query_device(ibv_device_attr &attr) override;
	int query_port(ibv_port_attr &attr) override;
	int query_gids(std::vector<GidEntry> &entries) override;
	int modify_qp(ibv_qp *qp, ibv_qp_attr &attr, int mask) override;
	int register_memory(Npu &npu, const MemoryRange &range, int access, uint32_t way,
		Registration &out) override;
	int deregister_memory(ibv_mr *mr) override;
	int query_eid(uint8_t eid[16]) override;
	int create_jetty(const Npu &npu, uint32_t blocks, queue_buf_dma_mode mode,
		std::unique_ptr<Jetty> &out) override;
	int join_session(const uint8_t *session) override;
	const char *driver_detail() const override { return api_.error_detail(); }
	int check_npu(const Npu &npu) const override;
	std::string net_device_text() const override { return {}; }

private:
	SoftNic(std::string name, nda_format format, const SoftApi &api)
		: Nic(std::move(name), format), api_(api)
	{}
	int init(const char *model, const nda_nic_attr &attr);

	const SoftApi &api_;
	ibv_context *context_ = nullptr;
};

} // namespace nda

#endif
