/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* All of libringgate. */
#ifndef RINGGATE_RINGGATE_H
#define RINGGATE_RINGGATE_H

#include <ringgate/rgate.h>
#include <ringgate/rgate_ring.h>
#include <ringgate/rgate_consumer.h>
#include <ringgate/rgate_producer.h>
#include <ringgate/rgate_sender.h>
#include <ringgate/rgate_source.h>
#include <ringgate/rgate_ctl.h>
#include <ringgate/rgate_device.h>
#include <ringgate/rgate_mem.h>
#include <ringgate/rgate_pool.h>
#include <ringgate/rgate_key.h>
#include <ringgate/rgate_cluster.h>
#include <ringgate/rgate_node.h>
#include <ringgate/rgate_peer.h>
#include <ringgate/rgate_shard.h>
#include <ringgate/rgate_hub.h>
#include <ringgate/rgate_steer.h>
#include <ringgate/rgate_gateway.h>
#include <ringgate/rgate_inlet.h>
#include <ringgate/rgate_spawn.h>
#include <ringgate/rgate_session.h>
#include <ringgate/rgate_sync.h>
#include <ringgate/rgate_lock.h>
#include <ringgate/rgate_barrier.h>
#include <ringgate/rgate_queue.h>
#include <ringgate/rgate_socket.h>
#include <ringgate/rgate_daemon.h>

#endif
