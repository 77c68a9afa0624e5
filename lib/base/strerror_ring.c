// SPDX-License-Identifier: MIT OR GPL-2.0
/* Errors of rings, sources, and the module's control */
#include <errno.h>
#include <stddef.h>

#include "strerror.h"

#define MORE_FILES	"too many open files: `ulimit -n 4096`, and once more"
#define NO_DEVICE	"no such device in this network namespace: `ip link` lists them"
#define DOWN		"the device is down: `sudo ip link set DEVICE up`"
#define RING_GONE	"the ring is gone: `ringgate status` lists what is there"
#define NO_MODULE	"the ringgate module is not loaded: `sudo ringgate load`"
#define OPEN_DENIED	"no permission to open /dev/ringgate: `sudo chmod 666 /dev/ringgate`"
#define FEWER_SLOTS	"not enough memory: give fewer slots"
#define NOT_OURS	"of a memfd ring only the process that made it can do that"
#define FILLED		"the ring has a producer already"
#define NO_VIEW		"the ring was resized, and its new memory did not reach this process: " \
			"open it anew"

const struct rgate_error_row rgate_errors_ring[] = {
	{ "rgate_ring_open", EACCES, true, OPEN_DENIED },
	{ "rgate_ring_open", EPERM, true, OPEN_DENIED },
	{ "rgate_ring_open", ENOENT, false, NO_MODULE },
	{ "rgate_ring_open", ENXIO, false, NO_MODULE },
	{ "rgate_ring_open", EINVAL, false, "slots or slot size cannot be: both are powers of "
	  "two within their limits (ringgate(4))" },
	{ "rgate_ring_open", ENOMEM, true, FEWER_SLOTS },
	{ "rgate_ring_open", ENOSPC, true, FEWER_SLOTS },
	{ "rgate_ring_open", ENOBUFS, true, "over the limit of locked memory: `ulimit -l "
	  "unlimited` as root, or give fewer slots" },
	{ "rgate_ring_open", EMFILE, true, MORE_FILES },
	{ "rgate_ring_open", EOPNOTSUPP, true, "this machine's memory is not coherent for DMA: "
	  "`ringgate capture --userspace` does without" },
	{ "rgate_ring_open_memfd", EINVAL, false, "slots, slot size, policy, clock, flags or "
	  "name cannot be: see struct rgate_ring_opts" },
	{ "rgate_ring_open_memfd", ENOMEM, true, FEWER_SLOTS },
	{ "rgate_ring_open_memfd", ENOSPC, false, FEWER_SLOTS },
	{ "rgate_ring_open_memfd", EFBIG, true, "larger than a file may be: `ulimit -f "
	  "unlimited`, or give fewer slots" },
	{ "rgate_ring_open_memfd", EMFILE, true, MORE_FILES },
	{ "rgate_ring_open_memfd", EOPNOTSUPP, false, "a ring in a memfd has neither slots "
	  "that consumers write nor a coarse clock: leave out RGATE_RING_RW_SLOTS, "
	  "RGATE_RING_TRANSMIT and RGATE_RING_COARSE" },
	{ "rgate_ring_send", EMFILE, false, "all handles of the ring are given: close one "
	  "first" },
	{ "rgate_ring_send", EOPNOTSUPP, false, NOT_OURS },
	{ "rgate_ring_recv", EPROTO, false, "what came is no ring, or a damaged one: who sends "
	  "it uses rgate_ring_send()" },
	{ "rgate_ring_recv", EPROTONOSUPPORT, false, "the ring is of another version: install "
	  "the same one for both processes" },
	{ "rgate_ring_recv", EPIPE, false, "the other end of the socket is closed" },
	{ "rgate_ring_dup", EMFILE, false, "all handles of the ring are given: close one first" },
	{ "rgate_ring_dup", EOPNOTSUPP, false, NOT_OURS },
	{ "rgate_ring_tstamp_offset", ENODATA, false, "not known yet: ask again when frames have "
	  "come" },
	{ "rgate_ring_resize", EINVAL, false, "slots or slot size cannot be: both are powers of "
	  "two within their limits (ringgate(4))" },
	{ "rgate_ring_resize", ENOMEM, false, FEWER_SLOTS },
	{ "rgate_ring_resize", ENOSPC, false, FEWER_SLOTS },
	{ "rgate_ring_resize", ENOBUFS, false, "over the limit of locked memory: `ulimit -l "
	  "unlimited` as root, or give fewer slots" },
	{ "rgate_ring_resize", EOPNOTSUPP, false, NOT_OURS },
	{ "rgate_ring_remap", ESTALE, false, NO_VIEW },
	{ "rgate_ring_dmabuf", EINVAL, false, "no such area: RGATE_AREA_CONSUMER or "
	  "RGATE_AREA_SLOTS" },
	{ "rgate_ring_dmabuf", ESTALE, false, "the ring was resized: rgate_ring_remap(), and "
	  "once more" },
	{ "rgate_ring_dmabuf", EOPNOTSUPP, false, "a ring in a memfd has no dma-bufs, nor does "
	  "one of a module or kernel without them: register its mapping" },
	{ "rgate_ring_dmabuf", EMFILE, false, MORE_FILES },

	{ "rgate_consumer_init", EOPNOTSUPP, false, "the ring is for sending: the module takes "
	  "its frames" },
	{ "rgate_consumer_init", EINVAL, false, "take, orphans, index or spin of its options "
	  "cannot be: see struct rgate_consumer_opts" },
	{ "rgate_consumer_", EPIPE, false, "the producer is gone, and all frames were taken" },
	{ "rgate_consumer_", EAGAIN, false, "no frame is there: wait for one, "
	  "rgate_consumer_wait()" },
	{ "rgate_consumer_", ESTALE, false, NO_VIEW },
	{ "rgate_producer_", EBUSY, false, FILLED },
	{ "rgate_producer_", EOPNOTSUPP, false, NOT_OURS },
	{ "rgate_producer_", ENOBUFS, false, "the ring is full, or the frame longer than a "
	  "chain" },
	{ "rgate_sender_init", EOPNOTSUPP, false, "the ring is not for sending: make it with "
	  "RGATE_RING_TRANSMIT and RGATE_RING_RW_SLOTS" },
	{ "rgate_sender_", EAGAIN, false, "as many frames are under way as may be: wait, "
	  "rgate_sender_wait()" },
	{ "rgate_sender_", ENOTCONN, false, "the ring is attached to no device: `ringgate attach "
	  "--transmit`" },
	{ "rgate_sender_", ENETDOWN, false, DOWN },
	{ "rgate_sender_", ENOBUFS, false, "no memory for frames: `free -m`" },

	{ "rgate_source_", EBUSY, false, FILLED },
	{ "rgate_source_", EOPNOTSUPP, false, "not for this source or its ring: see "
	  "rgate_source.h" },
	{ "rgate_source_start_packet", EPERM, true, "a packet socket needs CAP_NET_RAW: run it "
	  "with sudo" },
	{ "rgate_source_start_packet", ENODEV, true, NO_DEVICE },
	{ "rgate_source_start_packet", ENETDOWN, true, DOWN },
	{ "rgate_source_start_packet", EMFILE, true, MORE_FILES },
	{ "rgate_source_start_udp", EADDRINUSE, true, "another socket has this address and port: "
	  "`ss -lunp` tells whose it is" },
	{ "rgate_source_start_udp", EADDRNOTAVAIL, true, "this machine has no such address: `ip "
	  "addr` lists them" },
	{ "rgate_source_start_udp", EACCES, true, "ports below 1024 are root's: take another, or "
	  "run it with sudo" },
	{ "rgate_source_start_udp", EMFILE, true, MORE_FILES },
	{ "rgate_source_turn", ENODEV, false, "its device is gone: `ip link` lists those that "
	  "are there" },

	{ "rgate_ctl_open", ENOENT, false, NO_MODULE },
	{ "rgate_ctl_", ETIMEDOUT, false, "the kernel does not answer: `dmesg`" },
	{ "rgate_ctl_", EPERM, true, "this needs CAP_NET_ADMIN: run it with sudo" },
	{ "rgate_ctl_", ENODEV, true, NO_DEVICE },
	{ "rgate_ctl_", ENOENT, true, RING_GONE },
	{ "rgate_ctl_", ESTALE, false, "another one has that number now: `ringgate status` lists "
	  "what is there" },
	{ "rgate_ctl_", EINVAL, false, "rings or options that do not go together" },
	{ "rgate_ctl_", ENOMEM, true, "not enough memory" },
	{ "rgate_ctl_", EBUSY, false, "a ring sends through another attachment: `ringgate "
	  "status` tells which" },
	{ "rgate_ctl_", ERANGE, false, "a thread takes 1 to 100 percent of a CPU" },
	{ "rgate_ctl_", EOPNOTSUPP, false, "not for this kind of attachment or device: see "
	  "rgate_ctl_attach()" },
	{ "rgate_ctl_", ENOBUFS, false, "some events were lost: read what is there now" },
	{ "rgate_ctl_attach:transmit", EPERM, true, "this needs CAP_NET_ADMIN and CAP_NET_RAW: "
	  "run it with sudo" },
	{ "rgate_ctl_attach:transmit", ENETDOWN, true, DOWN },
	{ "rgate_ctl_attach:transmit", ENOTCONN, true, "the device is gone: `ip link` lists "
	  "those that are there" },
	{ "rgate_ctl_attach:transmit", EPROTOTYPE, true, "its frames are not those of Ethernet: "
	  "`ip link` tells which devices' are" },
	{ "rgate_ctl_attach:transmit", EINVAL, true, "the ring is for receiving: `ringgate "
	  "status` tells which transmit" },
	{ "rgate_ctl_attach:transmit", EBUSY, true, "the ring sends through a device already: "
	  "`ringgate status` tells which, `ringgate detach` ends it" },
	{ "rgate_ctl_attach:transmit", ENOBUFS, true, "no memory for frames: `free -m`" },
	{ "rgate_filter_", EINVAL, false, "the expression does not compile, or not for the "
	  "kernel: pcap-filter(7)" },
	{ "rgate_filter_", EPERM, false, "`vlan` in a filter needs CAP_NET_RAW: run it with "
	  "sudo" },
	{ .call = NULL },
};
