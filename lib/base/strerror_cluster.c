// SPDX-License-Identifier: MIT OR GPL-2.0
/* Errors of RDMA devices, memory, nodes and what runs on them */
#include <errno.h>
#include <stddef.h>

#include "strerror.h"

#define MORE_FILES	"too many open files: `ulimit -n 4096`, and once more"
#define NO_DAEMON	"no ringgated runs here: `sudo systemctl start ringgated`"
#define DAEMON_ENDED	"ringgated of this machine has ended: `systemctl status ringgated`"
#define DAEMON_SILENT	"ringgated runs here, and does not answer: `journalctl -u ringgated`"
#define SOCKET_DENIED	"ringgated's socket is not for this user: run it with sudo"
#define NO_ANSWER	"no answer: `systemctl status ringgated` on that node"
#define NODE_GONE	"the node is gone: `systemctl status ringgated` on it"
#define RUNS_NOTHING	"it runs nothing for others: `ringgated --spawn 'policy FILE'` on that node"
#define HOME_GONE	"its node is gone: `systemctl status ringgated` on it"
#define OTHER_VERSION	"ringgated is of another version, here or at its node: install the same one"
#define OTHER_SHARD	"the shard's home has another version of the library: install the same one"
#define HAS_OTHERS	"the keys do not fit: compare what `ringgate cluster show` prints here " \
			"and there"
#define NO_SUCH_NODE	"the cluster has no such node: `ringgate cluster show` lists them"
#define KEY_OPEN	"others may read the key, or it is another node's: `chmod 600` it, or " \
			"`ringgate cluster keygen`"

const struct rgate_error_row rgate_errors_cluster[] = {
	/* As those of all that registers memory: see also[] of strerror.c */
	{ "rgate_mem_", EPERM, false, "belongs to another process: what a parent opened cannot "
	  "be used after fork(); open it anew" },
	{ "rgate_mem_", ENOENT, false, "there is none of that number, or no held buffer at that "
	  "address" },
	{ "rgate_mem_", EIO, false, "the RDMA device was removed or failed: close everything of "
	  "it and open it anew" },
	{ "rgate_mem_", EBADF, false, "the descriptor is not a dma-buf" },
	{ "rgate_mem_", ENOMEM, false, "out of memory, or no huge pages of the size asked for" },
	{ "rgate_mem_", EACCES, false, "no permission: on /dev/infiniband/uverbs* (join its "
	  "group or run as root), or the memory was not registered for that access" },
	{ "rgate_mem_", EFAULT, false, "memory that cannot be registered: not mapped, not "
	  "writable, a device's own, or outside of the pool; `ringgate probe` shows what can" },
	{ "rgate_mem_", EBUSY, false, "the device holds the region still: deallocate the memory "
	  "windows on it" },
	{ "rgate_mem_", ENODEV, false, "no such RDMA device, or none at all; `ringgate probe "
	  "--list`, and for soft-RoCE `rdma link add rxe0 type rxe netdev DEVICE`" },
	{ "rgate_mem_", EINVAL, false, "invalid argument: a size of 0, flags that contradict "
	  "each other, or an alignment that is no power of two" },
	{ "rgate_mem_", ENOSPC, false, "the device's limit of memory regions (or of the size of "
	  "one) is reached: use one pool instead of many regions, or raise RGATE_MAX_MR" },
	{ "rgate_mem_", ERANGE, false, "outside of the memory" },
	{ "rgate_mem_", ENOSYS, false, "this kernel has no RDMA: load ib_uverbs and the driver "
	  "of the device" },
	{ "rgate_mem_", EPROTO, false, "not a descriptor of remote memory, or a damaged one" },
	{ "rgate_mem_", EPROTONOSUPPORT, false, "a descriptor of another version: install the "
	  "same version on both sides" },
	{ "rgate_mem_", EOVERFLOW, false, "a buffer was written beyond its end, or the range "
	  "wraps around" },
	{ "rgate_mem_", EMSGSIZE, false, "larger than a region of the pool: make the pool with a "
	  "larger region_size" },
	{ "rgate_mem_", EOPNOTSUPP, false, "this device, driver or pool cannot do that; see the "
	  "log" },
	{ "rgate_mem_", ENETDOWN, false, "the port of the RDMA device is not active; see `rdma "
	  "link`" },
	{ "rgate_mem_", ENETUNREACH, false, "the RDMA device has no usable GID: give its network "
	  "device an IP address" },
	{ "rgate_mem_", ENOBUFS, false, "the pool is exhausted, or the limit of locked memory is "
	  "too small: raise max_size of the pool, or `ulimit -l`" },
	{ "rgate_mem_", ETIMEDOUT, false, "nothing came in time" },
	{ "rgate_mem_", EALREADY, false, "the buffer was released before" },
	{ "rgate_mem_", EREMOTEIO, false, "the peer's device refused the access" },
	{ "rgate_mem_", ENOTCONN, false, "the connection failed before" },
	{ "rgate_mem_", ECANCELED, false, "given up, as the connection failed" },
	{ "rgate_mem_page_size", EFAULT, false, "nothing is mapped there" },
	{ "rgate_device_open", EACCES, false, "no permission on /dev/infiniband/uverbs*: join "
	  "its group, or run it with sudo" },
	{ "rgate_device_each", EACCES, false, "no permission on /dev/infiniband/uverbs*: join "
	  "its group, or run it with sudo" },
	{ "rgate_device_json", EINVAL, false, "no information, or no buffer for its text" },
	{ "rgate_pool_alloc", ENOBUFS, false, "the pool is exhausted: release buffers, or make "
	  "it with a larger max_size" },
	{ "rgate_pool_alloc_", ENOBUFS, false, "the pool is exhausted: release buffers, or make "
	  "it with a larger max_size" },
	{ "rgate_pool_lookup", EFAULT, false, "the address is not in this pool" },
	{ "rgate_pool_lookup", ENOENT, false, "the address is in no held buffer" },
	{ "rgate_pool_check", EOPNOTSUPP, false, "the pool keeps no red zones: "
	  "RGATE_POOL_DEBUG=1" },
	{ "rgate_pool_free", EINVAL, false, "not a buffer of this pool" },
	{ "rgate_buf_desc", EACCES, false, "the pool was made without remote access" },
	{ "rgate_share_desc", EACCES, false, "the memory was shared without remote access" },
	{ "rgate_share_", EOPNOTSUPP, false, "memory of the local provider is a memfd that "
	  "cannot shrink, and only it has bells" },

	{ "rgate_cluster_load", ENOENT, false, "there is no such cluster file: RGATE_CLUSTER "
	  "names another" },
	{ "rgate_cluster_load", EACCES, false, "no permission to read the cluster file: run it "
	  "with sudo" },
	{ "rgate_cluster_load", EINVAL, false, "the cluster file is malformed: `ringgate cluster "
	  "show` says where" },
	{ "rgate_cluster_load", EFBIG, false, "the cluster file is larger than 64 KiB" },
	{ "rgate_cluster_", ENOENT, false, NO_SUCH_NODE },
	{ "rgate_cluster_", EACCES, false, KEY_OPEN },
	{ "rgate_cluster_", ENAMETOOLONG, false, "the path of the node's key is too long" },
	{ "rgate_key_", EINVAL, false, "no key: 32 bytes as one line of base64, `ringgate "
	  "cluster keygen` makes one" },
	{ "rgate_key_", EACCES, false, KEY_OPEN },
	{ "rgate_key_", ENOENT, false, "there is no key: `ringgate cluster keygen` makes one" },
	{ "rgate_key_", EIO, false, "no random bytes, or libcrypto does not do it" },
	{ "rgate_node_create", ENOMEM, true, "not enough memory for the node's buffers" },
	{ "rgate_node_create", EMFILE, true, MORE_FILES },
	{ "rgate_node_create", ENOENT, false, "the cluster has no such node, or there is no key: "
	  "`ringgate cluster keygen` makes one" },
	{ "rgate_node_create", EADDRINUSE, false, "another process is that node: `ss -ltnp` and "
	  "`systemctl status ringgated` tell which" },
	{ "rgate_node_create", EACCES, false, KEY_OPEN },
	{ "rgate_peer_open", ENOENT, false, NO_SUCH_NODE },
	{ "rgate_peer_open", EBUSY, false, "this node has that peer open already" },
	{ "rgate_peer_wait_up", ETIMEDOUT, true, NO_ANSWER },
	{ "rgate_peer_wait_up", EHOSTUNREACH, true, NO_ANSWER },
	{ "rgate_peer_wait_up", EACCES, true, HAS_OTHERS },
	{ "rgate_peer_", EACCES, false, "the peer does not let its memory be used so" },
	{ "rgate_peer_", EAGAIN, false, "too much is under way to the peer, or no message came: "
	  "poll, and try again" },
	{ "rgate_peer_", ENOTCONN, false, "no connection to the peer: rgate_peer_wait_up()" },
	{ "rgate_peer_", EINVAL, false, "malformed, or more than can be outstanding" },
	{ "rgate_peer_", EMSGSIZE, false, "longer than the peer takes messages, or than the "
	  "buffer" },
	{ "rgate_peer_", ETIMEDOUT, false, "late, so the connection was ended: whether it was "
	  "done is not known" },
	{ "rgate_peer_", ERANGE, false, "not inside of the peer's memory" },
	{ "rgate_peer_", EPERM, false, "this node's device refused it: nothing was done" },
	{ "rgate_peer_", EREMOTEIO, false, "the peer's device refused it: nothing was done" },
	{ "rgate_peer_", ECONNRESET, false, "the connection failed: whether it was done is not "
	  "known" },
	{ "rgate_peer_", ECANCELED, false, "the connection failed: whether it was done is not "
	  "known" },
	{ "rgate_peer_", EIO, false, "the connection failed: whether it was done is not known" },
	{ "rgate_shard_", EPROTO, false, "no shard is there, or its home has another idea of one: "
	  "open what rgate_shard_desc() gave" },
	{ "rgate_shard_", EPROTONOSUPPORT, false, OTHER_SHARD },
	{ "rgate_shard_", EEXIST, false, "that node is admitted already" },
	{ "rgate_shard_", EPERM, false, "for the home alone, or for the nodes that submit" },
	{ "rgate_shard_", EMSGSIZE, false, "longer than the shard's payload_size, or result_size" },
	{ "rgate_shard_", ESTALE, false, "the claim was lost: the task is another one's" },
	{ "rgate_shard_", EBADMSG, false, "task or result was damaged in the home's memory" },
	{ "rgate_shard_", EAGAIN, false, "the home has to call rgate_shard_step() first, or too "
	  "much is under way to it: try again" },
	{ "rgate_shard_take", ECANCELED, false, "the connection failed before it was submitted" },
	{ "rgate_peer_", ENOBUFS, false, "no buffer for the message: take what has completed "
	  "first" },

	{ "rgate_hub_create", EBUSY, false, "a peer of the node is open already" },
	{ "rgate_hub_create", EINVAL, false, "flags that there are not, or spin_us above a "
	  "second" },
	{ "rgate_hub_start", EALREADY, false, "the hub has begun before" },
	{ "rgate_hub_", EEXIST, false, "the hub has that service already" },
	{ "rgate_hub_", EAGAIN, false, "256 messages wait for that node already: later" },
	{ "rgate_hub_", EMSGSIZE, false, "longer than a message to that node may be" },
	{ "rgate_hub_", ENOTCONN, false, "no connection to that node: `systemctl status "
	  "ringgated` on it" },
	{ "rgate_gateway_create", EINVAL, false, "its options, or this node is no gateway of the "
	  "cluster" },
	{ "rgate_gateway_create", EEXIST, false, "the hub has a gateway already" },
	{ "rgate_gateway_add", ENOSPC, false, "the gateway has as many rings as it can" },
	{ "rgate_gateway_add", EOPNOTSUPP, false, "the ring overwrites its oldest frames: make "
	  "it with another policy" },
	{ "rgate_gateway_add", EMSGSIZE, false, "a slot of the ring is longer than nodes take" },
	{ "rgate_gateway_", ENOENT, false, "the gateway has no such ring, node or rule" },
	{ "rgate_inlet_create", EEXIST, false, "the hub has an inlet already" },
	{ "rgate_inlet_create", EINVAL, false, "this node is the gateway" },
	{ "rgate_inlet_add", EEXIST, false, "another ring has that name or number" },
	{ "rgate_inlet_add", ENOSPC, false, "64 rings are open: close one first" },
	{ "rgate_inlet_add", EOPNOTSUPP, false, "frames of a gateway do not overwrite: make the "
	  "ring with another policy" },
	{ "rgate_inlet_", ENOENT, false, "no ring of that number is open" },
	{ "rgate_inlet_device", EAGAIN, false, "the gateway was asked: again in some "
	  "milliseconds" },
	{ "rgate_inlet_device", EINVAL, false, "no number of a device" },
	{ "rgate_inlet_device", ENODEV, false, "the gateway has no such device" },
	{ "rgate_inlet_device", ENOTCONN, false, "there is no gateway now: `ringgate cluster "
	  "status`" },
	{ "rgate_steer_", EINVAL, false, "malformed: NAME TARGET [full=wait|drop] "
	  "[down=next|drop] [FILTER]" },
	{ "rgate_steer_", EEXIST, false, "there is a rule of that name: `ringgate steer list`" },
	{ "rgate_steer_", ENOENT, false, "there is no rule of that name: `ringgate steer "
	  "list`" },
	{ "rgate_steer_", ENOSPC, false, "as many rules as there can be: `ringgate steer remove` "
	  "one" },

	{ "rgate_daemon_call", ENOENT, true, NO_DAEMON },
	{ "rgate_daemon_call", ECONNREFUSED, true, NO_DAEMON },
	{ "rgate_daemon_call", EACCES, true, SOCKET_DENIED },
	{ "rgate_daemon_call", EPERM, true, SOCKET_DENIED },
	{ "rgate_daemon_call", ETIMEDOUT, true, DAEMON_SILENT },
	{ "rgate_daemon_call", EPROTO, false, "what answers is no ringgated of this version" },
	{ "rgate_daemon_call", EMSGSIZE, false, "the answer is longer than the buffer" },
	{ "rgate_ring_open_remote", EOPNOTSUPP, false, "this node is the gateway: frames are in "
	  "its own rings" },
	{ "rgate_ring_remote_", ECONNRESET, false, "ringgated has ended, or closed the ring: "
	  "open it anew" },
	{ "rgate_ring_remote_", EINVAL, false, "no ring that ringgated fills" },
	{ "rgate_ring_remote_", EMSGSIZE, false, "its slots are too small for the gateway's "
	  "frames: make them larger" },
	{ "rgate_ring_remote_", EAGAIN, false, "the gateway was asked: again in some "
	  "milliseconds" },
	{ "rgate_ring_remote_", ENODEV, false, "the gateway has no such device" },
	{ "rgate_ring_remote_", ENOTCONN, false, "there is no gateway now: `ringgate cluster "
	  "status`" },

	{ "rgate_session_open", ENOENT, true, NO_DAEMON },
	{ "rgate_session_open", ECONNREFUSED, true, NO_DAEMON },
	{ "rgate_session_open", EACCES, true, SOCKET_DENIED },
	{ "rgate_session_open", EPERM, true, SOCKET_DENIED },
	{ "rgate_session_open", ETIMEDOUT, true, DAEMON_SILENT },
	{ "rgate_session_open", EDQUOT, false, "this user has as many sessions, or as much "
	  "memory, as he may: `limit` in the file of ringgated's `requests policy`" },
	{ "rgate_session_open", EPROTO, false, "what answers is no ringgated" },
	{ "rgate_session_open", EPROTONOSUPPORT, false, "ringgated is of another version: "
	  "install the same one" },
	{ "rgate_session_open", EMFILE, false, MORE_FILES },
	{ "rgate_session_", EAGAIN, false, "no place for a request: take completions first" },
	{ "rgate_session_", EPIPE, false, DAEMON_ENDED },
	{ "rgate_session_", EBUSY, false, "the session is lent: its borrower submits and "
	  "takes" },
	{ "rgate_session_", ENOENT, false, "no request with that cookie is under way" },
	{ "rgate_session_", EALREADY, false, "it ends by itself, or is being cancelled" },
	{ "rgate_session_", EINVAL, false, "none to submit, or a structure of another size" },

	{ "rgate_lock_", ENOENT, true, "it is not there, and only its owner can make it: "
	  "`ringgate lock --list` shows what is" },
	{ "rgate_lock_", ECONNREFUSED, true, NO_DAEMON },
	{ "rgate_lock_", EACCES, true, "it is not for this user: its owner makes it with "
	  "--others, and the file of ringgated's `requests policy` allows `lock barrier`" },
	{ "rgate_lock_", ENXIO, true, "there is no such node: `ringgate cluster status` lists "
	  "them" },
	{ "rgate_lock_", ETIMEDOUT, true, "its node does not answer: `systemctl status "
	  "ringgated` on it" },
	{ "rgate_lock_", ENOTCONN, true, "its node is not there: `systemctl status ringgated` on "
	  "it" },
	{ "rgate_lock_", EPROTONOSUPPORT, true, OTHER_VERSION },
	{ "rgate_lock_", ECONNRESET, true, HOME_GONE },
	{ "rgate_lock_", ESTALE, true, "its node was gone: `systemctl status ringgated` on it" },
	{ "rgate_lock_", EPIPE, true, DAEMON_ENDED },
	{ "rgate_lock_", EOPNOTSUPP, true, "this ringgated has no locks: install one of this "
	  "version" },
	{ "rgate_lock_", EDQUOT, true, "this user has as many as he may: `limit` in the file of "
	  "ringgated's `requests policy`" },
	{ "rgate_lock_", ENOSPC, false, "its node has as many as it can: `ringgate lock --list` "
	  "shows them" },
	{ "rgate_lock_acquire", ETIMEDOUT, false, "it was not free in time" },
	{ "rgate_lock_acquire", EAGAIN, false, "it is not free, or its node began just now" },
	{ "rgate_lock_acquire", EALREADY, false, "it is held by this one already" },
	{ "rgate_lock_release", ENOLCK, false, "it is not held" },
	{ "rgate_lock_release", ESTALE, false, "it was lost before: others may have had it "
	  "meanwhile" },
	{ "rgate_queue_", ENOENT, true, "there is no such task any more: it was completed, or "
	  "discarded" },
	{ "rgate_queue_fetch", ENOENT, true, "nobody has that memory any more: bury the task" },
	{ "rgate_queue_fetch", ESTALE, true, "nobody has that memory any more: bury the task" },
	{ "rgate_queue_fetch", ERANGE, false, "the memory is shorter than was said, or asked for" },
	{ "rgate_queue_fetch", EACCES, true, "that memory is not for this user, or its node lets "
	  "this one not ask for him" },
	{ "rgate_queue_fetch", EOPNOTSUPP, true, "this ringgated has no exported memory: install "
	  "one of this version" },
	{ "rgate_queue_fetch", EDQUOT, true, "this user has as much memory open as he may" },
	{ "rgate_queue_open", ENOENT, true, "it is not there, and only its owner can make it" },
	{ "rgate_queue_handle", ENOENT, true, "it is not there, and only its owner can make it" },
	{ "rgate_queue_list", ENOENT, true, "it is not there" },
	{ "rgate_queue_worker_start", ENOENT, true, "it is not there, and only its owner can make "
	  "it" },
	{ "rgate_queue_worker_start", EEXIST, false, "there is a queue of that name already: open "
	  "it, or give this one another name" },
	{ "rgate_queue_worker_start", EAGAIN, false, "no more threads (ulimit -u)" },
	{ "rgate_queue_worker_join", ETIMEDOUT, false, "a handler runs, or nothing has ended it: "
	  "stop it first" },
	{ "rgate_queue_worker_join", EDEADLK, false, "a handler cannot wait for its own worker" },
	{ "rgate_queue_worker_close", EBUSY, false, "a handler runs: wait for its end first" },
	{ "rgate_queue_work_fetch", ENOENT, true, "nobody has that memory any more: "
	  "bury the task" },
	{ "rgate_queue_work_fetch", ESTALE, true, "nobody has that memory any more: "
	  "bury the task" },
	{ "rgate_queue_work_fetch", ERANGE, false, "the memory is shorter than was said, or asked "
	  "for" },
	{ "rgate_queue_work_fetch", EOPNOTSUPP, true, "this ringgated has no exported memory: "
	  "install one of this version" },
	{ "rgate_queue_work_submit", ECANCELED, false, "the worker was stopped" },
	{ "rgate_queue_next_start", EBUSY, false, "another one is in the background: "
	  "take it first" },
	{ "rgate_queue_wait_start", EBUSY, false, "another one is in the background: "
	  "take it first" },
	{ "rgate_queue_", ENONET, false, "a mirror needs a cluster of three nodes: without one "
	  "`ringgated --journal` keeps the tasks of a machine" },
	{ "rgate_queue_open", EEXIST, false, "there is a queue of that name already: open it, or "
	  "give this one another name" },
	{ "rgate_queue_handle", EEXIST, false, "there is a queue of that name already: open it, or "
	  "give this one another name" },
	{ "rgate_queue_list", EEXIST, false, "there is a queue of that name already" },
	{ "rgate_queue_handle", EBUSY, false, "the session is lent, or has completions that were "
	  "not taken: ask before that" },
	{ "rgate_queue_", ECONNREFUSED, true, NO_DAEMON },
	{ "rgate_queue_", EACCES, true, "that is not for this user: its owner makes it for others, "
	  "and the file of ringgated's `requests policy` allows `queue`" },
	{ "rgate_queue_", ETIMEDOUT, true, "nothing came in time" },
	{ "rgate_queue_submit", EOPNOTSUPP, true, "its home cannot tell when a task has ended: "
	  "update ringgated there" },
	{ "rgate_queue_submit", ETIMEDOUT, true, "it was full all the time: start more workers" },
	{ "rgate_queue_", EAGAIN, false, "there is nothing to claim, or no room, for now" },
	{ "rgate_queue_", ESTALE, true, "the claim is over, or the queue was removed" },
	{ "rgate_queue_", EPIPE, true, DAEMON_ENDED },
	{ "rgate_queue_", EOPNOTSUPP, true, "this ringgated has no queues: install one of this "
	  "version" },
	{ "rgate_queue_", EDQUOT, true, "its owner's queues have as much as they may: complete "
	  "tasks, or remove a queue" },
	{ "rgate_queue_open", ENOSPC, false, "there are as many queues as there can be: remove "
	  "one" },
	{ "rgate_queue_handle", ENOSPC, false, "there are as many queues as there can be: remove "
	  "one" },
	{ "rgate_queue_", ENOSPC, true, "there is no room for the journal of its home: make some on "
	  "that disk" },
	{ "rgate_queue_", EIO, true, "the journal of its home cannot be written: the log of "
	  "`ringgated` there says why" },
	{ "rgate_queue_", EMSGSIZE, false, "longer than a task, a result, the queue or the room "
	  "for it may be" },
	{ "rgate_queue_", ENOBUFS, false, "too many wait for its tasks" },
	{ "rgate_queue_", ENXIO, true, "there is no such node: `ringgate cluster status` lists "
	  "them" },
	{ "rgate_queue_", ENOTCONN, true, "its node is not there: `systemctl status ringgated` on "
	  "it" },
	{ "rgate_queue_", EPROTONOSUPPORT, true, OTHER_VERSION },
	{ "rgate_queue_", ECONNRESET, true, HOME_GONE },
	{ "rgate_queue_", EUSERS, true, "this node's sessions come and go too fast for its home: "
	  "keep one open for several tasks" },
	{ "rgate_barrier_", EUSERS, true, "it has all its members: give it another name" },
	{ "rgate_barrier_open", EPIPE, false, "a member died or left, so it is broken: all close "
	  "it, then it can be made anew" },
	{ "rgate_barrier_arrive", EALREADY, false, "this one has arrived, and not waited "
	  "since" },
	{ "rgate_barrier_wait", ENOLCK, false, "this one has not arrived: rgate_barrier_arrive() "
	  "first" },
	{ "rgate_barrier_wait", ETIMEDOUT, false, "not all have arrived in time: it may be "
	  "waited for again" },
	{ "rgate_barrier_meet", ETIMEDOUT, false, "not all have arrived in time: it may be "
	  "waited for again" },

	{ "rgate_socket_", EACCES, false, "the gateway's policy, or that of ringgated, does not "
	  "let this user do that" },
	{ "rgate_socket_", EAGAIN, false, "as many are under way as can be: take ends, "
	  "rgate_sockets_next()" },
	{ "rgate_socket_", EFAULT, false, "the buffer is not in the set's memory: "
	  "rgate_sockets_memory()" },
	{ "rgate_socket_", ENFILE, false, "the gateway has as many sockets as it can" },
	{ "rgate_socket_", EMFILE, false, "this session has as many sockets as it can: close one "
	  "first" },
	{ "rgate_socket_", EDQUOT, false, "this user has as many sockets as he may: `limit` in "
	  "the file of ringgated's `requests policy`" },
	{ "rgate_socket_", EUSERS, false, "sessions of this node come faster than the gateway "
	  "takes them: again in a second" },
	{ "rgate_socket_", ETIMEDOUT, false, "it took longer than rgate_socket_timeout() "
	  "allows" },
	{ "rgate_socket_", ECANCELED, false, "the socket was closed meanwhile" },
	{ "rgate_sockets_resolve", EACCES, false, "the policy does not let this user ask for that "
	  "name: `allow WHO resolve NAME` in the file of ringgated's `requests sockets`" },
	{ "rgate_sockets_resolve", ENOENT, false, "there is no such name, or no such service" },
	{ "rgate_sockets_resolve", ENODATA, false, "the name has no address" },
	{ "rgate_sockets_resolve", EADDRNOTAVAIL, false, "the name has no address of that family" },
	{ "rgate_sockets_resolve", EHOSTUNREACH, false, "no name server has answered: "
	  "/etc/resolv.conf where ringgated runs" },
	{ "rgate_sockets_resolve", EREMOTEIO, false, "a name server failed" },
	{ "rgate_sockets_resolve", EPROTONOSUPPORT, false, "no such service for that type" },
	{ "rgate_sockets_resolve", ENAMETOOLONG, false, "a name has 255 bytes at most, a service "
	  "32" },
	{ "rgate_sockets_resolve", EILSEQ, false, "no name has such bytes" },
	{ "rgate_sockets_resolve", EDQUOT, false, "this user has as many names looked up as he "
	  "may: again when some have ended" },
	{ "rgate_sockets_resolve", ENOBUFS, false, "too many names are looked up: again in a "
	  "second" },
	{ "rgate_sockets_resolve", EOPNOTSUPP, false, "who serves looks no names up: install a "
	  "ringgated of this version" },
	{ "rgate_socket_addr_", EINVAL, false, "no address: 10.0.0.1:80 or [2001:db8::1]:80" },

	{ "rgate_spawn_", ETIMEDOUT, true, RUNS_NOTHING },
	{ "rgate_spawn_", EOPNOTSUPP, true, RUNS_NOTHING },
	{ "rgate_spawn_", ECONNRESET, true, NODE_GONE },
	{ "rgate_spawn_", ENOTCONN, true, NODE_GONE },
	{ "rgate_spawn_", EPIPE, true, DAEMON_ENDED },
	{ "rgate_spawn_", EDQUOT, true, "this user has as many processes as he may: `limit` in "
	  "the file of ringgated's `requests policy`" },
	{ "rgate_spawn_", ENOBUFS, true, "no memory for one more: `pool` in ringgated's "
	  "configuration, or end others" },
	{ "rgate_spawn_", ENOENT, false, "there is no such process, or it is another node's: "
	  "`ringgate ps` lists them" },
	{ "rgate_spawn_", ESRCH, false, "it has ended" },
	{ "rgate_spawn_", E2BIG, false, "the request is longer than a record may be" },
	{ "rgate_spawn_", EINVAL, false, "the request is malformed: see the log" },
	{ "rgate_spawn_", EMSGSIZE, false, "the other node takes shorter messages, or the rings "
	  "do not fit: make them smaller" },
	{ "rgate_spawn_", EBUSY, false, "somebody is attached to the job already" },
	{ "rgate_spawn_record_encode", ENOBUFS, false, "the record is longer than the buffer" },
	{ "rgate_spawn_status_decode", EINVAL, false, "a structure of another size" },
	{ "rgate_spawn_next", ETIMEDOUT, false, "no news in time" },
	{ "rgate_spawn_list", ETIMEDOUT, false, NO_ANSWER },
	{ "rgate_spawn_kill", ETIMEDOUT, false, "no answer so far: whether the signal was sent "
	  "is not known" },
	{ "rgate_spawn_kill", EINVAL, false, "no such signal: `kill -l` lists them" },
	{ "rgate_spawn_job_", ETIMEDOUT, false, "not over in time: it may be called again" },
	{ "rgate_spawn_job_", EAGAIN, false, "nothing there yet, or no room: later" },
	{ "rgate_spawn_job_read", EPIPE, false, "the job was lost, with part of its output" },
	{ "rgate_spawn_job_read", EINVAL, false, "no such stream: 1 and 2 are there" },
	{ "rgate_spawn_job_", EPIPE, false, "nobody reads its input any more" },
	{ "rgate_spawnd_", EINVAL, false, "the policy is malformed: `ringgated --check` says "
	  "where" },
	{ "rgate_spawnd_", EPERM, false, "others may write the policy: `chmod go-w` it" },
	{ "rgate_spawnd_", EACCES, false, "the spawner, or the policy, may not be used: see the "
	  "log" },
	{ "rgate_spawnd_", ENOENT, false, "the spawner is not there: it comes with `make "
	  "install`; RGATE_SPAWNER names another" },
	{ "rgate_spawnd_check", ENOENT, false, "there is no such policy, or no "
	  "spawner, which `make install` brings" },
	{ "rgate_spawnd_", EPROTONOSUPPORT, false, "the spawner is of another version: `make "
	  "install` brings both" },
	{ "rgate_spawnd_", EPIPE, false, "the spawner has ended: start ringgated anew" },
	{ "rgate_spawnd_", ETIMEDOUT, false, "the spawner does not begin: see the log" },
	{ .call = NULL },
};
