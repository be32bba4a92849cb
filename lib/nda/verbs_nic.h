// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// NICs of the kernel's RDMA devices, through libibverbs.
#ifndef NDA_LIB_VERBS_NIC_H
#define NDA_LIB_VERBS_NIC_H

#include <sys/types.h>
#include <sys/utsname.h>

#include "lib/nda/discovery.h"
#include "lib/nda/nic.h"

namespace nda {

class VerbsNic final : public Nic {
public:
	// name: as the kernel has it now, "rxe0", or with a port, "mlx5_0:2".
	static int open(const std::string &name, const nda_nic_attr &attr,
		std::shared_ptr<Nic> &out);
	~VerbsNic() override;

	int query_device(ibv_device_attr &attr) override;
	int query_port(ibv_port_attr &attr) override;
	int query_gids(std::vector<GidEntry> &entries) override;
	int modify_qp(ibv_qp *qp, ibv_qp_attr &attr, int mask) override;
	int register_memory(Npu &npu, const MemoryRange &range, int access, uint32_t way,
		Registration &out) override;
	int deregister_memory(ibv_mr *mr) override;
	bool takes_host_memory() const override { return true; }
	// Peers reach this NIC by its network, and memory by its keys.
	int join_session(const uint8_t *) override { return 0; }
	uint32_t flow_label_of_port(uint16_t udp_source_port) const override;
	const char *driver_detail() const override { return ""; }
	bool kernel_kicks(uint32_t &index) const override
	{
		index = device_.index;
		return format() == NDA_FORMAT_RXE;
	}
	int check_npu(const Npu &npu) const override;
	std::string net_device_text() const override;

private:
	VerbsNic(std::string name, nda_format format, uint8_t port, RdmaDevice device)
		: Nic(std::move(name), format, port), device_(std::move(device))
	{}
	int init(ibv_device *verbs_device);
	int open_extension();

	const RdmaDevice device_;
	ibv_context *context_ = nullptr;
};

// The functions of libibverbs that are called here, and how devices are found; tests put in
// their own. Those of libibverbs have its signs.
struct VerbsApi {
	int (*devices)(std::vector<RdmaDevice> &out);
	int (*port)(const RdmaDevice &device, uint32_t port, RdmaPort &out);
	ibv_device **(*get_device_list)(int *count);
	void (*free_device_list)(ibv_device **list);
	int (*get_device_index)(ibv_device *device);
	ibv_context *(*open_device)(ibv_device *device);
	int (*close_device)(ibv_context *context);
	ibv_pd *(*alloc_pd)(ibv_context *context);
	int (*dealloc_pd)(ibv_pd *pd);
	int (*query_device)(ibv_context *context, ibv_device_attr *attr);
	int (*query_port)(ibv_context *context, uint8_t port, ibv_port_attr *attr);
	ssize_t (*query_gid_table)(
		ibv_context *context, ibv_gid_entry *entries, size_t max);
	int (*modify_qp)(ibv_qp *qp, ibv_qp_attr *attr, int mask);
	// iova: the address that requests name.
	ibv_mr *(*reg_mr)(ibv_pd *pd, void *addr, size_t size, uint64_t iova, int access);
	ibv_mr *(*reg_dmabuf_mr)(ibv_pd *pd, uint64_t offset, size_t size, uint64_t iova,
		int fd, int access);
	int (*dereg_mr)(ibv_mr *mr);
	int (*uname)(utsname *name);
};
const VerbsApi &verbs_api();
// nullptr restores the real ones.
void set_verbs_for_test(const VerbsApi *api);

} // namespace nda

#endif
