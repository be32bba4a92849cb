// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The functions of the Ascend runtime (ACL) and of the driver's user library (HAL) that
// libnda calls, bound by name. Prototypes and numbers are those of the public headers of
// ACL 1.17 and of driver commit ef377e9; nothing here has run with the real libraries.
#ifndef NDA_LIB_ASCEND_API_H
#define NDA_LIB_ASCEND_API_H

#include <cstddef>
#include <cstdint>

namespace nda {

// ---- Numbers ---------------------------------------------------------------------------

namespace acl {
constexpr int ok = 0;
constexpr int error_no_context = 107002;
// Of a kernel that has ended in it, or a device that runs none any more; time-outs of waits
// are among the numbers.
constexpr bool is_device_fault(int error)
{
	return error >= 507000 && error < 508000;
}
constexpr int malloc_high_bandwidth = 0x1000; // huge pages first
constexpr int host_to_device = 1, device_to_host = 2, device_to_device = 3;
constexpr int location_device = 1;

// aclrtPtrAttributes
struct PointerAttributes {
	uint32_t location_id;
	int location_type;
	uint32_t page_size;
	uint32_t reserved[4];
};
} // namespace acl

namespace hal {
constexpr int ok = 0;
constexpr int error_not_support = 0xfffe;
constexpr uint32_t map_host_memory = 0; // HOST_MEM_MAP_DEV, of process type CP1
constexpr uint32_t map_host_io = 6;     // HOST_IO_MAP_DEV, likewise
constexpr int32_t module_system = 0;
constexpr int32_t info_connect_type = 40;
constexpr int64_t connect_pcie = 0, connect_hccs = 1, connect_ub = 2;
constexpr uint32_t engine_aiv = 3; // of halHostRegisterCapabilities
constexpr uint32_t process_cp1 = 0;
constexpr uint32_t resource_nda_doorbell = 12; // NDA_URMA_DB
constexpr uint32_t memory_locked_device = 0x10;

// struct res_map_info_in, res_map_info_out, DVattribute
struct ResourceIn {
	uint32_t id;
	uint32_t process_type;
	uint32_t resource_type;
	uint32_t resource_id;
	uint32_t flag;
	uint32_t private_bytes;
	void *private_data;
	uint32_t reserved[8];
};
struct ResourceOut {
	unsigned long va;
	uint32_t length;
	uint32_t reserved[8];
};
struct MemoryAttribute {
	uint32_t memory_type;
	uint32_t reserved0[2];
	uint32_t device;
	uint32_t page_size;
	uint32_t reserved1[8];
};
static_assert(sizeof(ResourceIn) == 64 && sizeof(ResourceOut) == 48 &&
		sizeof(MemoryAttribute) == 52,
	"layouts of the driver's structures");
} // namespace hal

// ---- Functions -------------------------------------------------------------------------

// Each returns 0, or a number of its library's own. Those marked optional are nullptr where
// the installed version lacks them.
struct AscendApi {
	int (*get_current_context)(void **context);
	int (*get_device)(int32_t *user_id);
	int (*malloc)(void **ptr, size_t size, int policy);
	int (*free)(void *ptr);
	int (*memcpy)(void *dst, size_t dst_max, const void *src, size_t count, int kind);
	int (*memset)(void *ptr, size_t max, int32_t value, size_t count);
	// Optional.
	int (*get_version)(int32_t *major, int32_t *minor, int32_t *patch);
	int (*get_logic_id)(int32_t user_id, int32_t *logic_id);
	int (*get_address_range)(void *ptr, void **base, size_t *size);
	int (*get_pointer_attributes)(const void *ptr, acl::PointerAttributes *attributes);
	const char *(*get_recent_error)();
	int (*create_stream)(void **stream);
	int (*destroy_stream)(void *stream);
	int (*synchronize_stream)(void *stream);
	int (*synchronize_stream_timeout)(void *stream, int32_t ms);
	int (*launch_kernel)(void *function, uint32_t blocks, void *stream, void *config,
		void *args, size_t args_bytes, void *placeholders, size_t n_placeholders);

	int (*host_register)(
		void *src, uint64_t size, uint32_t flag, uint32_t device, void **dst);
	int (*host_unregister)(void *src, uint32_t device, uint32_t flag);
	int (*get_device_info)(
		uint32_t device, int32_t module, int32_t info, int64_t *value);
	// Optional.
	int (*host_capabilities)(uint32_t device, uint32_t engine, uint32_t *capable);
	int (*map_resource)(unsigned device, hal::ResourceIn *in, hal::ResourceOut *out);
	int (*unmap_resource)(unsigned device, hal::ResourceIn *in);
	int (*register_segment)(uint32_t device, uint64_t va, uint64_t size);
	int (*unregister_segment)(uint32_t device, uint64_t va);
	int (*get_memory_attribute)(uint64_t va, hal::MemoryAttribute *attribute);
};

// Binds the functions. The libraries are those that the process has loaded, or else those
// in the directories of NDA_ASCEND_PATH, where the dynamic loader looks, or where they are
// usually installed. They stay loaded.
// 0, or -ENODEV with the loader's words, or -EPROTONOSUPPORT: a function is missing, or the
// runtime is of another major version than 1.
int load_ascend(AscendApi &api);

// Set the detail to "message: ", the library's number and what is known of it, and return a
// negative errno that fits.
int fail_acl(const AscendApi &api, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int fail_hal(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

} // namespace nda

#endif
