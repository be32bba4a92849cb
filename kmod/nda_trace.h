/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints. They print ids, counts and sizes, never an address. An id is that of a range
 * (get to put) or of an object (pin, export, attach).
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM nda

#if !defined(NDA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define NDA_TRACE_H

#include <linux/device.h>
#include <linux/tracepoint.h>

/* The macros of tracepoints are no functions. */
/* clang-format off */
TRACE_EVENT(nda_pin,
	TP_PROTO(u32 id, unsigned long pages),
	TP_ARGS(id, pages),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(unsigned long, pages)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->pages = pages;
	),
	TP_printk("id=%u pages=%lu", __entry->id, __entry->pages)
);

TRACE_EVENT(nda_export,
	TP_PROTO(u32 id, u32 mem, u64 size, u32 flags),
	TP_ARGS(id, mem, size, flags),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u32, mem)
		__field(u64, size)
		__field(u32, flags)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->mem = mem;
		__entry->size = size;
		__entry->flags = flags;
	),
	TP_printk("id=%u mem=%u size=%llu flags=%#x", __entry->id, __entry->mem, __entry->size,
		  __entry->flags)
);

TRACE_EVENT(nda_attach,
	TP_PROTO(u32 id, struct device *dev, int ret),
	TP_ARGS(id, dev, ret),
	TP_STRUCT__entry(
		__field(u32, id)
		__array(char, dev, 16)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->id = id;
		strscpy(__entry->dev, dev_name(dev), sizeof(__entry->dev));
		__entry->ret = ret;
	),
	TP_printk("id=%u dev=%s ret=%d", __entry->id, __entry->dev, __entry->ret)
);

TRACE_EVENT(nda_db_map,
	TP_PROTO(u32 id, struct device *npu, int ret),
	TP_ARGS(id, npu, ret),
	TP_STRUCT__entry(
		__field(u32, id)
		__array(char, npu, 16)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->id = id;
		strscpy(__entry->npu, dev_name(npu), sizeof(__entry->npu));
		__entry->ret = ret;
	),
	TP_printk("id=%u npu=%s ret=%d", __entry->id, __entry->npu, __entry->ret)
);

TRACE_EVENT(nda_db_lost,
	TP_PROTO(u32 id, u32 reason),
	TP_ARGS(id, reason),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u32, reason)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->reason = reason;
	),
	TP_printk("id=%u reason=%u", __entry->id, __entry->reason)
);

TRACE_EVENT(nda_map,
	TP_PROTO(u32 mem, struct device *dev, u64 len, u32 pieces, int ret),
	TP_ARGS(mem, dev, len, pieces, ret),
	TP_STRUCT__entry(
		__field(u32, mem)
		__array(char, dev, 16)
		__field(u64, len)
		__field(u32, pieces)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->mem = mem;
		strscpy(__entry->dev, dev_name(dev), sizeof(__entry->dev));
		__entry->len = len;
		__entry->pieces = pieces;
		__entry->ret = ret;
	),
	TP_printk("mem=%u dev=%s len=%llu pieces=%u ret=%d", __entry->mem, __entry->dev,
		  __entry->len, __entry->pieces, __entry->ret)
);

TRACE_EVENT(nda_unmap,
	TP_PROTO(u32 mem, struct device *dev, bool mapped),
	TP_ARGS(mem, dev, mapped),
	TP_STRUCT__entry(
		__field(u32, mem)
		__array(char, dev, 16)
		__field(bool, mapped)
	),
	TP_fast_assign(
		__entry->mem = mem;
		strscpy(__entry->dev, dev_name(dev), sizeof(__entry->dev));
		__entry->mapped = mapped;
	),
	TP_printk("mem=%u dev=%s%s", __entry->mem, __entry->dev,
		  __entry->mapped ? "" : " already gone")
);

TRACE_EVENT(nda_get,
	TP_PROTO(u32 mem, const char *backend, u64 size, u64 page_size, int ret),
	TP_ARGS(mem, backend, size, page_size, ret),
	TP_STRUCT__entry(
		__field(u32, mem)
		__array(char, backend, 16)
		__field(u64, size)
		__field(u64, page_size)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->mem = mem;
		strscpy(__entry->backend, backend, sizeof(__entry->backend));
		__entry->size = size;
		__entry->page_size = page_size;
		__entry->ret = ret;
	),
	TP_printk("mem=%u backend=%s size=%llu page_size=%llu ret=%d", __entry->mem,
		  __entry->backend, __entry->size, __entry->page_size, __entry->ret)
);

TRACE_EVENT(nda_put,
	TP_PROTO(u32 mem),
	TP_ARGS(mem),
	TP_STRUCT__entry(
		__field(u32, mem)
	),
	TP_fast_assign(
		__entry->mem = mem;
	),
	TP_printk("mem=%u", __entry->mem)
);

TRACE_EVENT(nda_revoke_begin,
	TP_PROTO(u32 mem, u32 reason),
	TP_ARGS(mem, reason),
	TP_STRUCT__entry(
		__field(u32, mem)
		__field(u32, reason)
	),
	TP_fast_assign(
		__entry->mem = mem;
		__entry->reason = reason;
	),
	TP_printk("mem=%u reason=%u", __entry->mem, __entry->reason)
);

TRACE_EVENT(nda_revoke_end,
	TP_PROTO(u32 mem, u64 ns, u32 leftovers),
	TP_ARGS(mem, ns, leftovers),
	TP_STRUCT__entry(
		__field(u32, mem)
		__field(u64, ns)
		__field(u32, leftovers)
	),
	TP_fast_assign(
		__entry->mem = mem;
		__entry->ns = ns;
		__entry->leftovers = leftovers;
	),
	TP_printk("mem=%u ns=%llu leftovers=%u", __entry->mem, __entry->ns, __entry->leftovers)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE nda_trace
#include <trace/define_trace.h>
