/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ringgate

#if !defined(RGATE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RGATE_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(rgate_deliver,
	TP_PROTO(u32 ring, u64 pos, u32 len, u32 wire_len, u32 ifindex),
	TP_ARGS(ring, pos, len, wire_len, ifindex),
	TP_STRUCT__entry(
		__field(u32, ring)
		__field(u64, pos)
		__field(u32, len)
		__field(u32, wire_len)
		__field(u32, ifindex)
	),
	TP_fast_assign(
		__entry->ring = ring;
		__entry->pos = pos;
		__entry->len = len;
		__entry->wire_len = wire_len;
		__entry->ifindex = ifindex;
	),
	TP_printk("ring=%u pos=%llu len=%u wire_len=%u ifindex=%u",
		  __entry->ring, __entry->pos, __entry->len,
		  __entry->wire_len, __entry->ifindex)
);

/* outcome: 1 no free slot, 4 the frame could not be read */
TRACE_EVENT(rgate_drop,
	TP_PROTO(u32 ring, u32 outcome),
	TP_ARGS(ring, outcome),
	TP_STRUCT__entry(
		__field(u32, ring)
		__field(u32, outcome)
	),
	TP_fast_assign(
		__entry->ring = ring;
		__entry->outcome = outcome;
	),
	TP_printk("ring=%u reason=%s", __entry->ring,
		  __print_symbolic(__entry->outcome,
				   { 1, "full-drop" }, { 2, "full-pass" },
				   { 3, "full-spill" }, { 4, "fault" }))
);

TRACE_EVENT(rgate_wake,
	TP_PROTO(u32 ring, u32 handle, u64 pos),
	TP_ARGS(ring, handle, pos),
	TP_STRUCT__entry(
		__field(u32, ring)
		__field(u32, handle)
		__field(u64, pos)
	),
	TP_fast_assign(
		__entry->ring = ring;
		__entry->handle = handle;
		__entry->pos = pos;
	),
	TP_printk("ring=%u handle=%u pos=%llu", __entry->ring,
		  __entry->handle, __entry->pos)
);

/* What became of a batch of a transmit ring; bad: no frames that can be */
TRACE_EVENT(rgate_send,
	TP_PROTO(u32 ring, u64 pos, u32 ifindex, u32 taken, u32 sent, u32 filtered,
		 u32 refused, u32 bad),
	TP_ARGS(ring, pos, ifindex, taken, sent, filtered, refused, bad),
	TP_STRUCT__entry(
		__field(u32, ring)
		__field(u64, pos)
		__field(u32, ifindex)
		__field(u32, taken)
		__field(u32, sent)
		__field(u32, filtered)
		__field(u32, refused)
		__field(u32, bad)
	),
	TP_fast_assign(
		__entry->ring = ring;
		__entry->pos = pos;
		__entry->ifindex = ifindex;
		__entry->taken = taken;
		__entry->sent = sent;
		__entry->filtered = filtered;
		__entry->refused = refused;
		__entry->bad = bad;
	),
	TP_printk("ring=%u pos=%llu ifindex=%u taken=%u sent=%u filtered=%u refused=%u bad=%u",
		  __entry->ring, __entry->pos, __entry->ifindex, __entry->taken,
		  __entry->sent, __entry->filtered, __entry->refused, __entry->bad)
);

/* debt: ns of its share that the thread has spent in advance */
TRACE_EVENT(rgate_thread_sleep,
	TP_PROTO(u32 ring, int err, u64 debt),
	TP_ARGS(ring, err, debt),
	TP_STRUCT__entry(
		__field(u32, ring)
		__field(int, err)
		__field(u64, debt)
	),
	TP_fast_assign(
		__entry->ring = ring;
		__entry->err = err;
		__entry->debt = debt;
	),
	TP_printk("ring=%u err=%d debt=%llu", __entry->ring, __entry->err,
		  __entry->debt)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
