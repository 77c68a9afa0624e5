# SPDX-License-Identifier: MIT OR GPL-2.0
# See `make help`.

VERSION := 0.1.0
SOVERSION := 0

# What a user may set.
O ?= build
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
SBINDIR ?= $(PREFIX)/sbin
LIBEXECDIR ?= $(PREFIX)/libexec
UNITDIR ?= $(PREFIX)/lib/systemd/system
SRCDIR ?= /usr/src
PKG_CONFIG ?= pkg-config
INSTALL ?= install
LAB_KERNEL ?= 6.1
# for programs that run in the kernel
BPF_CC ?= clang
# Warnings are errors in a checkout, not in a release.
WERROR ?= $(if $(wildcard .git),1)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
# Variables of this command line are not for the kernel's own build.
MAKEOVERRIDES :=

Q := $(if $(filter 1,$(V)),,@)
# What make does itself takes no process, as printf and mkdir did, which came to a tenth of the CPU
# of a compiler.
space := $() $()
labels := AR_____ CC_____ LD_____ BPF____ GEN____ KMOD___ NVCC___
say = $(if $(filter 1,$(V)),,$(info $(space) $(subst _,$(space),$(filter $(1)%,$(labels))) $(2)))
# Makes the target's directory, once
need_dir = $(if $(have_dir_$(@D)),,$(shell mkdir -p $(@D))$(eval have_dir_$(@D) := 1))

#
# Flags
#

pc = $(shell $(PKG_CONFIG) $(1) 2>/dev/null)

PCAP_CFLAGS := $(or $(call pc,--cflags libpcap),$(shell pcap-config --cflags 2>/dev/null))
PCAP_LIBS := $(or $(call pc,--libs libpcap),$(shell pcap-config --libs 2>/dev/null))

LIB_CFLAGS := $(call pc,--cflags libmnl libibverbs) $(PCAP_CFLAGS)
RING_LIBS := $(call pc,--libs libmnl) $(PCAP_LIBS) -lpthread
CLUSTER_LIBS := $(PCAP_LIBS) $(call pc,--libs libibverbs librdmacm libcrypto)
LIB_LIBS := $(RING_LIBS) $(CLUSTER_LIBS)
TOOL_CFLAGS := $(call pc,--cflags libkmod libbpf)
TOOL_LIBS := $(call pc,--libs libkmod libbpf)
# Asked once, and only where they are needed
ask_once = $(eval $(1) := $(call pc,--libs $(2)))$($(1))
CMOCKA_LIBS = $(call ask_once,CMOCKA_LIBS,cmocka)
URING_LIBS = $(call ask_once,URING_LIBS,liburing)
CRYPTO_LIBS = $(call ask_once,CRYPTO_LIBS,libcrypto)
# Other pools, for bench_pool only, where they are installed (scripts/deps bench).
DPDK_CFLAGS = $(patsubst -I%,-isystem %,$(call pc,--cflags libdpdk))
DPDK_LIBS = $(if $(DPDK_CFLAGS),-lrte_mempool -lrte_ring -lrte_eal)
UCS_LIBS = $(call pc,--libs ucx-ucs)
# Other queues, for bench_queue only, likewise
HIREDIS_LIBS = $(call pc,--libs hiredis)
# And MPI's barrier, for bench_sync
MPI_LIBS = $(call pc,--libs ompi-c)

ALL_CFLAGS := -std=gnu11 -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror)
ALL_CFLAGS += -Iuapi -Ilib/include $(LIB_CFLAGS) $(TOOL_CFLAGS)
ALL_CFLAGS += $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all)
# gcc's thread sanitizer does not know fences and says so; clang has no such word.
ALL_CFLAGS += $(if $(findstring thread,$(SANITIZE)),-Wno-unknown-warning-option -Wno-tsan)
ALL_LDFLAGS := $(if $(SANITIZE),-fsanitize=$(SANITIZE))
# Such programs start by the thousand: with a place of their own each description of a variable is
# relocated first, and with two runtimes the leak check reads the tables of both.
ASAN_LDFLAGS := $(if $(findstring address,$(SANITIZE)),-no-pie \
	$(if $(findstring clang,$(CC)),,-static-libubsan))

# What runs once is to be compiled soon: the native suites, but not what they test.
TEST_CFLAGS ?= $(patsubst -O2,-O1,$(patsubst -g,-g1,$(CFLAGS)))

compile = $(CC) $(ALL_CFLAGS) $(EXTRA) $(CPPFLAGS) $(or $(OWN_CFLAGS),$(CFLAGS)) -MMD -MP -c -o $@ $<
# What is for tests alone is linked by what takes half the time, where it is installed.
quick_ld_name := $(if $(findstring clang,$(CC)),lld,gold)
quick_ld := $(if $(shell command -v ld.$(quick_ld_name) 2>/dev/null),-fuse-ld=$(quick_ld_name))
link = $(CC) $(ALL_LDFLAGS) $(ASAN_LDFLAGS) $(if $(or $(SANITIZE),$(filter $(O)/tests/%,$@)),$(quick_ld)) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(EXTRA_LIBS) $(LDLIBS)

# Everything is built anew when the compiler or a flag changes.
flags := $(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(TEST_CFLAGS) $(ALL_LDFLAGS) $(ASAN_LDFLAGS) $(LDFLAGS) $(LDLIBS)
flags_file := $(O)/flags
ifneq ($(strip $(flags)),$(strip $(file <$(flags_file))))
.PHONY: $(flags_file)
endif

# What is missing is told in one line, before the compiler tells it in many.
missing = { echo "make: $(1) is missing: run scripts/deps" >&2; exit 1; }
need_libs := libmnl libkmod libbpf libibverbs librdmacm libcrypto libxxhash
need_others := cmocka liburing

need-tools:
	@for tool in $(firstword $(CC)) $(firstword $(PKG_CONFIG)); do \
		command -v $$tool >/dev/null || $(call missing,$$tool); \
	done
need-libs: need-tools
	@for lib in $(need_libs); do \
		$(PKG_CONFIG) --exists $$lib || $(call missing,$$lib); \
	done
	$(if $(PCAP_LIBS),,@$(call missing,libpcap))
$(need_others:%=need-%): need-%: need-tools
	@$(PKG_CONFIG) --exists $* || $(call missing,$*)

$(flags_file): | need-libs
	$(shell mkdir -p $(@D))$(file >$@,$(flags))

#
# Library
#

# Layers look down only: each sees what its include path has.
ring_layers := base ring
cluster_layers := mem fabric shard cluster request memory sync socket agent gate queue net spawn
lib_layers := $(ring_layers) $(cluster_layers)
objects_of_layers = $(patsubst %.c,$(O)/obj/%.o,$(foreach layer,$(1),$(wildcard lib/$(layer)/*.c)))
ring_obj := $(call objects_of_layers,$(ring_layers))
cluster_obj := $(call objects_of_layers,$(cluster_layers))
# The helpers without state are in each shared library, so that they need not be exported.
base_obj := $(filter-out %/log.o %/spin.o %/strerror.o %/version.o \
	%/strerror_ring.o %/strerror_cluster.o %/strerror_gpu.o,$(call objects_of_layers,base))
lib_names := libringgate libringgate-cluster
lib_real := $(lib_names:%=$(O)/lib/%.so.$(VERSION))
# What `ringgate run` loads into programs, and what it has of that itself
preload := $(O)/tools/libringgate-preload.so
shim_shared := $(patsubst %,$(O)/obj/lib/shim/shim_%.o,addr agent mark options socket)
lib_pc := $(lib_names:%=$(O)/lib/%.pc)
# In the order in which they are linked
lib_static := $(O)/lib/libringgate-cluster.a $(O)/lib/libringgate.a

lib: $(lib_real) $(lib_static) $(lib_pc)

$(O)/obj/lib/%.o: EXTRA = -D_GNU_SOURCE -fPIC -fvisibility=hidden -Ilib/base
$(O)/obj/lib/fabric/%.o: EXTRA += -Ilib/mem
$(O)/obj/lib/shard/%.o: EXTRA += -Ilib/fabric
$(O)/obj/lib/cluster/%.o: EXTRA += -Ilib/fabric
$(O)/obj/lib/net/%.o: EXTRA += -Ilib/ring -Ilib/cluster
$(O)/obj/lib/memory/%.o: EXTRA += -Ilib/cluster -Ilib/request
$(O)/obj/lib/sync/%.o: EXTRA += -Ilib/cluster -Ilib/request -Ilib/memory
$(O)/obj/lib/socket/%.o: EXTRA += -Ilib/cluster -Ilib/request -Ilib/memory
$(O)/obj/lib/agent/%.o: EXTRA += -Ilib/request -Ilib/socket
$(O)/obj/lib/gate/%.o: EXTRA += -Ilib/cluster -Ilib/request
$(O)/obj/lib/queue/%.o: EXTRA += -Ilib/cluster -Ilib/request -Ilib/memory -Ilib/sync -Ilib/socket -Ilib/gate
$(O)/obj/lib/spawn/%.o: EXTRA += -Ilib/fabric -Ilib/cluster -Ilib/request
# Into programs of others it goes without a sanitizer.
$(O)/obj/lib/shim/%.o: EXTRA += -Ilib/agent $(if $(filter-out fuzzer%,$(firstword $(subst $(comma), ,$(SANITIZE)))),-fno-sanitize=all)
# Where helper programs are looked for: compiled anew where they are installed elsewhere
$(O)/obj/lib/base/helper.o: EXTRA += -DRGATE_LIBEXECDIR='"$(LIBEXECDIR)"'
$(O)/obj/lib/base/helper.o: $(O)/libexecdir
ifneq ($(LIBEXECDIR),$(file <$(O)/libexecdir))
.PHONY: $(O)/libexecdir
endif
$(O)/libexecdir: | need-libs
	$(shell mkdir -p $(@D))$(file >$@,$(LIBEXECDIR))

$(O)/lib/libringgate.so.$(VERSION) $(O)/lib/libringgate.a: $(ring_obj)
$(O)/lib/libringgate.so.$(VERSION): SO_LIBS = $(RING_LIBS)
$(O)/lib/libringgate-cluster.so.$(VERSION) $(O)/lib/libringgate-cluster.a: $(cluster_obj)
$(O)/lib/libringgate-cluster.so.$(VERSION): $(base_obj) $(O)/lib/libringgate.so.$(VERSION)
$(O)/lib/libringgate-cluster.so.$(VERSION): SO_LIBS = -L$(O)/lib -lringgate $(CLUSTER_LIBS) -lpthread
# A thread that asks for a name may be at it when the last socket is gone: its code stays.
$(O)/lib/libringgate-cluster.so.$(VERSION): SO_LIBS += -Wl,-z,nodelete

$(lib_real): $(O)/lib/%.so.$(VERSION): lib/%.map
	$(need_dir)
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		-Wl,-soname,$*.so.$(SOVERSION) -Wl,--version-script=lib/$*.map \
		$(if $(SANITIZE),,-Wl,-z,defs) $(SO_LIBS) $(LDLIBS)
	$(Q)ln -sf $(@F) $(O)/lib/$*.so.$(SOVERSION)
	$(Q)ln -sf $*.so.$(SOVERSION) $(O)/lib/$*.so

$(preload): $(patsubst %.c,$(O)/obj/%.o,$(wildcard lib/shim/*.c))
	$(need_dir)
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(CFLAGS) $(LDFLAGS) -o $@ $^ -Wl,-soname,$(@F) -Wl,-z,defs -Wl,-z,now \
		-Wl,--wrap=syscall -Wl,-Bsymbolic-functions -ldl $(LDLIBS)

$(lib_static):
	$(need_dir)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

# $(1): the template
pc_text = sed -e 's,@PREFIX@,$(PREFIX),' -e 's,@LIBDIR@,$(LIBDIR),' \
	-e 's,@INCLUDEDIR@,$(INCLUDEDIR),' -e 's,@VERSION@,$(VERSION),' $(1)

$(lib_pc): $(O)/lib/%.pc: lib/%.pc.in Makefile
	$(need_dir)
	$(call say,GEN,$@)
	$(Q)$(call pc_text,$<) >$@

#
# Programs: $(1) directory of sources, with an optional lib/ linked into each
#

$(O)/obj/%.o: %.c $(flags_file)
	$(need_dir)
	$(call say,CC,$@)
	$(Q)$(compile)

sources_of = $(wildcard $(1)/lib/*.c)
objects_of = $(patsubst %.c,$(O)/obj/%.o,$(call sources_of,$(1)))

# CUDA's headers come with it.
NVCC ?= $(firstword $(wildcard $(CUDA_HOME)/bin/nvcc /usr/local/cuda/bin/nvcc) \
	$(shell command -v nvcc 2>/dev/null))

unit_src := $(filter-out $(if $(NVCC),,tests/unit/test_runtime%),$(wildcard tests/unit/test_*.c))
vm_src := $(filter-out $(if $(NVCC),,tests/vm/t_gpu_send.c),$(wildcard tests/vm/*.c))
bench_src := $(wildcard tests/bench/*.c)
debug_src := $(wildcard tests/debug/*.c)
fabric_src := $(wildcard tests/fabric/test_*.c)
net_src := $(wildcard tests/net/test_*.c)
spawn_src := $(wildcard tests/spawn/test_*.c)
fuzz_device_src := $(wildcard tests/fuzz/dev/*.c)
fuzz_src := $(wildcard tests/fuzz/user/*.c)
cluster_src := $(wildcard tests/cluster/*.c)
demo_src := $(wildcard tests/demo/*.c)
example_src := $(filter-out %.bpf.c,$(wildcard Documentation/examples/*.c))
# by clang alone, where it is there
example_bpf := $(if $(shell command -v $(BPF_CC)),$(patsubst \
	Documentation/%.c,$(O)/%.o,$(wildcard Documentation/examples/*.bpf.c)))
tool_src := $(wildcard tools/ringgate/*.c)
# What examines hardware is a program of its own; it shares what the CLI has of words and output, ...
probe_src := $(wildcard tools/ringgate-probe/*.c)
probe_shared := $(patsubst %,tools/ringgate/%.c,clean cmd fmt number table util why)
# ... and so does the daemon.
daemon_src := $(wildcard tools/ringgated/*.c) $(patsubst %,tools/ringgate/%.c,address clean fmt number table util why)

unit_bin := $(unit_src:%.c=$(O)/%)
# of the whole CLI, on a machine of the test's own
cli_test_bin := $(filter $(O)/tests/unit/test_cli_%,$(unit_bin))
# of locks and barriers, with nodes of the test's own
sync_test_bin := $(filter $(O)/tests/unit/test_sync%,$(unit_bin))
sync_world := $(patsubst %,$(O)/obj/tests/unit/%.o,sync/world sync/four node/fake_hub)
# of what has lines to another node, of the test's own
node_other := $(patsubst %,$(O)/obj/tests/unit/node/%.o,other fake_hub)
node_gate := $(patsubst %,$(O)/obj/tests/unit/node/%.o,gate_bed asks_bed dock_bed serves_bed two_bed)
node_queue := $(patsubst %,$(O)/obj/tests/unit/node/%.o,gate_bed queue_bed queue_home)
node_test_bin := $(patsubst %,$(O)/tests/unit/test_%,line board errand memory_nodes gate gate_callers \
	gate_dock gate_dock_berths gate_dock_serve gate_dock_storm gate_dock_wide gate_ending gate_heard gate_left \
	gate_many gate_many_serve gate_many_storm gate_serve gate_slots gate_slots_serve gate_unbegun \
	queue_serve queue_nodes queue_kept queue_keeper queue_copies)
gate_test_bin := $(filter $(O)/tests/unit/test_gate%,$(node_test_bin))
queue_test_bin := $(filter $(O)/tests/unit/test_queue_%,$(node_test_bin))
vm_bin := $(vm_src:%.c=$(O)/%)
# with what the CLI has for XDP
xdp_test_bin := $(patsubst %.c,$(O)/%,$(wildcard tests/vm/t_xdp*.c))
bench_bin := $(bench_src:%.c=$(O)/%)
debug_bin := $(debug_src:%.c=$(O)/%)
fabric_bin := $(fabric_src:%.c=$(O)/%)
net_bin := $(net_src:%.c=$(O)/%)
# asks while tests/net/queue_faults.sh has everything fail
faults_bin := $(O)/tests/net/queue_faults/client
faults_obj := $(patsubst %.c,$(O)/obj/%.o,$(wildcard tests/net/queue_faults/*.c))
# asks while tests/net/queue_journal.sh kills the daemon
load_bin := $(O)/tests/net/queue_journal/load
spawn_bin := $(spawn_src:%.c=$(O)/%)
fuzz_device := $(O)/tests/debug/fuzz_device
fuzz_bin := $(fuzz_src:%.c=$(O)/%)
bench_cost := $(O)/tests/bench/bench_cost
bench_cost_obj := $(patsubst %.c,$(O)/obj/%.o,$(wildcard tests/bench/cost/*.c)) \
	$(patsubst %,$(O)/obj/tools/ringgate/%.o,xdp xdp_prog)
bench_queue := $(O)/tests/bench/bench_queue
bench_queue_obj := $(patsubst %.c,$(O)/obj/%.o,$(wildcard tests/bench/queue/*.c))
bench_sync := $(O)/tests/bench/bench_sync
bench_sync_obj := $(patsubst %.c,$(O)/obj/%.o,$(wildcard tests/bench/sync/*.c))
bench_sockets := $(O)/tests/bench/bench_sockets
bench_sockets_obj := $(patsubst %.c,$(O)/obj/%.o,$(wildcard tests/bench/sockets/*.c))
bench_pool := $(O)/tests/bench/bench_pool
bench_pool_obj := $(patsubst %.c,$(O)/obj/%.o,$(wildcard tests/bench/pool/*.c))
cluster_bin := $(cluster_src:%.c=$(O)/%)
demo_bin := $(demo_src:%.c=$(O)/%)
example_bin := $(example_src:Documentation/%.c=$(O)/%)
tool_bin := $(if $(tool_src),$(O)/tools/ringgate)
daemon_bin := $(O)/tools/ringgated
spawner_bin := $(O)/tools/ringgate-spawner
agent_bin := $(O)/tools/ringgate-agent
probe_bin := $(O)/tools/ringgate-probe

$(O)/obj/tests/unit/%.o: EXTRA = -D_GNU_SOURCE $(lib_layers:%=-Ilib/%) -Itests/unit -Itests/unit/lib -Itests/unit/cli -Itests/unit/sync -Itests/unit/node -Itools/ringgate \
	-Itools/ringgate-probe
$(O)/obj/tests/vm/%.o: EXTRA = -D_GNU_SOURCE -Ilib/mem -Itests/vm -Itests/vm/lib -Itools/ringgate
$(O)/obj/tests/fabric/%.o: EXTRA = -D_GNU_SOURCE $(lib_layers:%=-Ilib/%) -Itests/unit/lib -Itests/fabric/lib
$(O)/obj/tests/spawn/%.o: EXTRA = -D_GNU_SOURCE -Itests/unit/lib -Itests/fabric/lib -Itests/spawn/lib
$(O)/obj/tests/net/%.o: EXTRA = -D_GNU_SOURCE $(lib_layers:%=-Ilib/%) -Itests/unit/lib -Itests/fabric/lib -Itests/net/lib
$(O)/obj/tests/debug/%.o: EXTRA = -D_GNU_SOURCE -Itests/vm -Itests/vm/lib
$(O)/obj/tests/fuzz/%.o: EXTRA = -D_GNU_SOURCE
$(O)/obj/tests/fuzz/user/%.o: EXTRA += $(lib_layers:%=-Ilib/%) -Itools/ringgate -Itests/fuzz/user/lib
$(addprefix $(O)/obj/tests/fuzz/user/,fuzz_gate.o lib/gate_guests.o lib/gate_askers.o): EXTRA += -Itests/unit/node
$(O)/obj/tests/fuzz/user/fuzz_parse.o: EXTRA += -Itests/fuzz/user/shim
$(O)/obj/tests/bench/%.o: EXTRA = -D_GNU_SOURCE -Ilib/mem -Itests/bench/lib -Itests/bench/cost -Itools/ringgate
$(O)/obj/tests/bench/queue/redis.o: EXTRA += $(if $(HIREDIS_LIBS),-DHAVE_HIREDIS $(call pc,--cflags hiredis))
$(O)/obj/tests/bench/sync/redis.o: EXTRA += $(if $(HIREDIS_LIBS),-DHAVE_HIREDIS $(call pc,--cflags hiredis))
$(O)/obj/tests/bench/sync/mpi.o: EXTRA += \
	$(if $(MPI_LIBS),-DHAVE_MPI $(patsubst -I%,-isystem %,$(call pc,--cflags ompi-c)))
$(O)/obj/tests/bench/pool/%.o: EXTRA += $(if $(UCS_LIBS),-DHAVE_UCS)
$(O)/obj/tests/bench/pool/dpdk.o: EXTRA += $(if $(DPDK_CFLAGS),-DHAVE_DPDK $(DPDK_CFLAGS))
$(O)/obj/tests/cluster/%.o: EXTRA = -D_GNU_SOURCE -Itests/demo/lib -Itests/cluster/lib
$(O)/obj/tests/demo/%.o: EXTRA = -D_GNU_SOURCE -Itests/demo/lib
$(O)/obj/Documentation/examples/%.o: EXTRA = -D_GNU_SOURCE
$(O)/obj/tools/ringgated/%.o: EXTRA = -D_GNU_SOURCE -Ilib/base -Ilib/request -Ilib/memory -Ilib/sync -Ilib/socket -Ilib/gate -Ilib/queue -Ilib/spawn -Ilib/agent -Itools/ringgate -Itools/ringgated
$(O)/obj/tools/ringgate-agent/%.o: EXTRA = -D_GNU_SOURCE -Ilib/base -Ilib/request -Ilib/agent -Itools/ringgated
$(O)/obj/tools/ringgate-spawner/%.o: EXTRA = -D_GNU_SOURCE -Ilib/base -Ilib/spawn
$(O)/obj/tools/ringgate/%.o: EXTRA = -Ilib/base -Ilib/agent -Ilib/shim -Itools/ringgate -DRGATE_VERSION='"$(VERSION)"'
$(O)/obj/tools/ringgate-probe/%.o: EXTRA = -Ilib/base -Ilib/mem -Itools/ringgate -DRGATE_VERSION='"$(VERSION)"'

$(O)/obj/tests/unit/%.o $(O)/obj/tests/fabric/%.o $(O)/obj/tests/net/%.o $(O)/obj/tests/spawn/%.o: \
	OWN_CFLAGS = $(TEST_CFLAGS)

define program
	$(need_dir)
	$(call say,LD,$@)
	$(Q)$(link)
endef

cmocka_src := $(unit_src) $(fabric_src) $(net_src) $(spawn_src) \
	$(foreach suite,unit fabric net spawn,$(call sources_of,tests/$(suite)))
$(cmocka_src:%.c=$(O)/obj/%.o): | need-cmocka
$(bench_src:%.c=$(O)/obj/%.o) $(call objects_of,tests/bench): | need-liburing

$(O)/tests/net/test_lingering: $(O)/obj/tools/ringgated/hurry.o
$(O)/tests/unit/test_listen: $(O)/obj/tools/ringgated/listen.o
$(O)/tests/unit/test_daemon_config: $(patsubst %,$(O)/obj/tools/%.o,ringgated/config ringgate/address ringgate/number)
$(O)/tests/unit/test_daemon_log: $(patsubst %,$(O)/obj/tools/%.o,ringgated/requests_log ringgate/clean)
$(O)/tests/unit/test_daemon_rights: $(patsubst %,$(O)/obj/tools/%.o,ringgated/requests_policy ringgate/number)
$(O)/tests/unit/test_shim_datagram: $(addprefix $(O)/obj/lib/shim/,shim_datagram.o shim_mark.o shim_addr.o)
$(O)/tests/unit/test_shim_agent: $(addprefix $(O)/obj/lib/shim/,shim_agent.o shim_addr.o)
$(filter-out $(cli_test_bin) $(sync_test_bin) $(node_test_bin),$(unit_bin)): $(O)/%: $(O)/obj/%.o $(call objects_of,tests/unit) $(lib_static)
	$(program)
$(cli_test_bin): $(O)/%: $(O)/obj/%.o $(call objects_of,tests/unit) \
		$(patsubst %.c,$(O)/obj/%.o,$(wildcard tests/unit/cli/*.c)) $(O)/cli.a $(lib_static)
	$(program)
$(sync_test_bin): $(O)/%: $(O)/obj/%.o $(sync_world) \
		$(call objects_of,tests/unit) $(lib_static)
	$(program)
$(filter-out $(gate_test_bin) $(queue_test_bin),$(node_test_bin)): $(O)/%: $(O)/obj/%.o $(node_other) \
		$(call objects_of,tests/unit) $(lib_static)
	$(program)
$(gate_test_bin): $(O)/%: $(O)/obj/%.o $(node_other) $(node_gate) $(call objects_of,tests/unit) $(lib_static)
	$(program)
$(queue_test_bin): $(O)/%: $(O)/obj/%.o $(node_other) $(node_queue) $(call objects_of,tests/unit) $(lib_static)
	$(program)
# That one has the parts of a test of the runtime: lib/gpu/gpu.mk
gpu_vm_bin := $(filter %/t_gpu_send,$(vm_bin))
$(filter-out $(gpu_vm_bin),$(vm_bin)): $(O)/%: $(O)/obj/%.o $(call objects_of,tests/vm) $(lib_static)
	$(program)
$(gpu_vm_bin): $(O)/%: $(O)/obj/%.o $(call objects_of,tests/unit)
	$(program)
$(xdp_test_bin): $(patsubst %,$(O)/obj/tools/ringgate/%.o,xdp xdp_prog) $(O)/obj/tests/vm/lib/xdp/vt_xdp.o
$(debug_bin): $(O)/%: $(O)/obj/%.o $(call objects_of,tests/vm) $(lib_static)
	$(program)
$(fabric_bin): $(O)/%: $(O)/obj/%.o $(call objects_of,tests/fabric) $(O)/obj/tests/unit/lib/unit.o \
		$(lib_static)
	$(program)
$(spawn_bin): $(O)/%: $(O)/obj/%.o $(call objects_of,tests/spawn) $(call objects_of,tests/fabric) \
		$(O)/obj/tests/unit/lib/unit.o $(lib_static)
	$(program)
$(net_bin): $(O)/%: $(O)/obj/%.o $(call objects_of,tests/net) $(call objects_of,tests/fabric) \
		$(O)/obj/tests/unit/lib/unit.o $(lib_static)
	$(program)
$(faults_bin): $(faults_obj) $(lib_static)
	$(program)
$(load_bin): $(O)/%: $(O)/obj/%.o $(lib_static)
	$(program)
$(fuzz_device): $(fuzz_device_src:%.c=$(O)/obj/%.o)
	$(program)
$(filter-out $(bench_cost) $(bench_pool) $(bench_queue) $(bench_sockets) $(bench_sync),$(bench_bin)): $(O)/%: $(O)/obj/%.o $(call objects_of,tests/bench) $(lib_static)
	$(program)
$(bench_cost): $(O)/%: $(O)/obj/%.o $(bench_cost_obj) $(call objects_of,tests/bench) $(lib_static)
	$(program)
$(bench_queue): $(O)/%: $(O)/obj/%.o $(bench_queue_obj) $(call objects_of,tests/bench) $(lib_static)
	$(program)
$(bench_sync): $(O)/%: $(O)/obj/%.o $(bench_sync_obj) $(call objects_of,tests/bench) $(lib_static)
	$(program)
$(bench_sockets): $(O)/%: $(O)/obj/%.o $(bench_sockets_obj) $(call objects_of,tests/bench) $(lib_static)
	$(program)
$(bench_pool): $(O)/%: $(O)/obj/%.o $(bench_pool_obj) $(call objects_of,tests/bench) $(lib_static)
	$(program)
$(demo_bin): $(O)/%: $(O)/obj/%.o $(call objects_of,tests/demo) $(lib_static)
	$(program)
$(cluster_bin): $(O)/%: $(O)/obj/%.o $(call objects_of,tests/cluster) $(O)/obj/tests/demo/lib/demo.o \
		$(lib_static)
	$(program)
# Programs for the kernel; the headers of this machine's architecture are not in clang's way.
$(example_bpf): $(O)/%.bpf.o: Documentation/%.bpf.c $(wildcard Documentation/examples/*.h)
	$(need_dir)
	$(call say,BPF,$@)
	$(Q)$(BPF_CC) -O2 -g -target bpf -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror) \
		-I/usr/include/$(shell $(CC) -print-multiarch 2>/dev/null) -c -o $@ $<
$(example_bin): $(O)/examples/%: $(O)/obj/Documentation/examples/%.o $(lib_static)
	$(program)
$(tool_bin): $(tool_src:%.c=$(O)/obj/%.o) $(shim_shared) $(lib_static)
	$(program)
$(daemon_bin): $(daemon_src:%.c=$(O)/obj/%.o) $(lib_static)
	$(program)
$(spawner_bin): $(O)/obj/tools/ringgate-spawner/main.o $(lib_static)
	$(program)
$(agent_bin): $(patsubst %.c,$(O)/obj/%.o,$(wildcard tools/ringgate-agent/*.c)) $(O)/obj/tools/ringgated/hurry.o $(lib_static)
	$(program)
$(probe_bin): $(patsubst %.c,$(O)/obj/%.o,$(probe_src) $(probe_shared)) $(lib_static)
	$(program)
$(daemon_bin): | $(agent_bin)
# What runs processes for other nodes runs it.
$(spawn_bin) $(net_bin) $(daemon_bin) $(O)/examples/spawn $(O)/tests/bench/bench_spawn: | $(spawner_bin)

wrap = $(1:%=-Wl,--wrap=%)

# Unit tests have verbs of their own (tests/unit/lib/mock_verbs.c).
$(unit_bin): EXTRA_LIBS = $(RING_LIBS) $(CRYPTO_LIBS) $(CMOCKA_LIBS)
$(cli_test_bin): EXTRA_LIBS = $(LIB_LIBS) $(TOOL_LIBS) $(CMOCKA_LIBS) $(call wrap,access fopen open \
	opendir glob readlink uname geteuid getrlimit isatty clock_gettime time util_now util_sleep \
	execv dlopen dlsym dlclose $(addprefix rgate_ctl_,open close rings atts att attach detach join \
	leave set subscribe fd event) rgate_ring_open peer_start)
$(O)/tests/unit/test_memfd_fail: EXTRA_LIBS += $(call wrap,memfd_create ftruncate fallocate fstat \
	sysinfo fcntl mmap)
$(O)/tests/unit/test_backing: EXTRA_LIBS += $(call wrap,memfd_create ftruncate fcntl mmap madvise \
	open fopen syscall)
$(O)/tests/unit/test_cli_bench: EXTRA_LIBS += $(call wrap,bench_rate bench_latency \
	sched_getaffinity pthread_setaffinity_np)
$(O)/tests/unit/test_cli_attach: EXTRA_LIBS += $(call wrap,statfs mkdir lstat unlink $(addprefix \
	bpf_,btf_get_next_id btf_get_fd_by_id prog_get_fd_by_id obj_get_info_by_fd prog_load \
	link_create obj_pin obj_get xdp_query_id) $(addprefix btf__,load_vmlinux_btf load_module_btf \
	find_by_name_kind free))
$(O)/tests/unit/test_cli_module: EXTRA_LIBS += $(call wrap,reallocarray)
$(O)/tests/unit/test_cli_replay: EXTRA_LIBS += $(call wrap,rgate_ring_attach rgate_ring_stats \
	$(addprefix rgate_sender_,init kick wait))
$(O)/tests/unit/test_cli_verify: EXTRA_LIBS += $(call wrap,poll)
$(O)/tests/unit/test_cli_daemon: EXTRA_LIBS += $(call wrap,rgate_daemon_call)
$(O)/tests/unit/test_cli_load: EXTRA_LIBS += $(call wrap,bpf_prog_get_next_id bpf_prog_get_fd_by_id \
	bpf_obj_get_info_by_fd)
$(O)/tests/unit/test_cli_spawn $(O)/tests/unit/test_cli_ps: EXTRA_LIBS += $(call wrap,spawn_node_open \
	spawn_node_close rgate_cluster_nodes rgate_cluster_node $(addprefix rgate_spawn_,start attach fd \
	process next kill list $(addprefix job_,read write close_stdin wait result kill detach close)))
$(O)/tests/unit/test_spawner: EXTRA_LIBS += $(call wrap,rgate_cgroup_remove rgate_spawner_hello \
	events_wait syscall)
$(O)/tests/unit/test_sync_client: EXTRA_LIBS += $(call wrap,rgate_session_submit_many rgate_session_poll \
	rgate_session_wait rgate_session_cancel rgate_session_open rgate_session_memory rgate_session_close)
$(O)/tests/unit/test_agent: EXTRA_LIBS += $(call wrap,rgate_sockets_next socket_close_quiet)
$(O)/tests/unit/test_agent_domain: EXTRA_LIBS += $(call wrap,getaddrinfo)
$(O)/tests/unit/test_agent_renew: EXTRA_LIBS += $(call wrap,rgate_sockets_next rgate_socket_bind \
	rgate_socket_listen rgate_socket_name rgate_socket_setopt socket_is_lost)
$(O)/tests/unit/test_conf: EXTRA_LIBS += $(call wrap,getgrnam_r)
$(O)/tests/unit/test_daemon_log: EXTRA_LIBS += $(call wrap,open_memstream)
$(O)/tests/unit/test_events: EXTRA_LIBS += $(call wrap,eventfd)
$(O)/tests/unit/test_index: EXTRA_LIBS += $(call wrap,malloc)
$(O)/tests/unit/test_journal: EXTRA_LIBS += $(call wrap,fdatasync rgate_req_end)
$(O)/tests/unit/test_listen: EXTRA_LIBS += $(call wrap,bind chmod chown listen)
$(O)/tests/unit/test_pool: EXTRA_LIBS += $(call wrap,syscall getpid memmove)
$(O)/tests/unit/test_ahead: EXTRA_LIBS += $(call wrap,write)
$(O)/tests/unit/test_filehash: EXTRA_LIBS += $(call wrap,write fstat)
$(O)/tests/unit/test_gate_dock: EXTRA_LIBS += $(call wrap,calloc)
$(O)/tests/unit/test_gate_ending: EXTRA_LIBS += $(call wrap,clock_gettime)
$(O)/tests/unit/test_gate_heard: EXTRA_LIBS += $(call wrap,calloc)
$(O)/tests/unit/test_gate_left: EXTRA_LIBS += $(call wrap,clock_gettime rgate_seat_uid)
$(O)/tests/unit/test_gate_unbegun: EXTRA_LIBS += $(call wrap,rgate_session_submit calloc realloc free)
$(O)/tests/unit/test_journal_lost: EXTRA_LIBS += $(call wrap,fdatasync)
$(O)/tests/unit/test_queue_copies: EXTRA_LIBS += $(call wrap,clock_gettime usleep)
$(O)/tests/unit/test_queue_mirror: EXTRA_LIBS += $(call wrap,$(addprefix gate_,service_find service_whose \
	service_process service_limits caller_new caller_leave caller_is_lost forward forward_cancel))
$(O)/tests/unit/test_queue_keeper: EXTRA_LIBS += $(call wrap,clock_gettime rgate_session_submit \
	gate_forward)
$(O)/tests/unit/test_queue_lies $(O)/tests/unit/test_queue_memory: EXTRA_LIBS += $(call wrap,sync_client_ask)
$(O)/tests/unit/test_queue_lies: EXTRA_LIBS += $(call wrap,$(addprefix rgate_session_,open memory close))
$(O)/tests/unit/test_queue_shares: EXTRA_LIBS += $(call wrap,rgate_req_seat rgate_seat_uid rgate_req_get \
	rgate_req_mem)
$(O)/tests/unit/test_queue_table: EXTRA_LIBS += $(call wrap,realloc)
$(O)/tests/unit/test_queue_worker: EXTRA_LIBS += $(call wrap,rgate_session_poll rgate_session_wait \
	rgate_session_arm rgate_session_close)
$(O)/tests/unit/test_queue_worker_told: EXTRA_LIBS += $(call wrap,queue_complete_along \
	$(addprefix rgate_queue_,complete_many bury next_start next_take quit fd))
$(O)/tests/unit/test_queues: EXTRA_LIBS += $(call wrap,rgate_session_submit_many)
$(O)/tests/unit/test_socket_ends: EXTRA_LIBS += $(call wrap,rgate_session_open epoll_pwait2)
$(O)/tests/unit/test_socket_policy: EXTRA_LIBS += $(call wrap,recv)
$(O)/tests/unit/test_socket_resolve: EXTRA_LIBS += $(call wrap,getaddrinfo freeaddrinfo)
$(O)/tests/unit/test_helper: EXTRA_LIBS += $(call wrap,readlink getauxval)
$(O)/tests/unit/test_key: EXTRA_LIBS += $(call wrap,OPENSSL_cleanse)
$(O)/tests/unit/test_prefault: EXTRA_LIBS += $(call wrap,pthread_create)
$(O)/tests/unit/test_xfer: EXTRA_LIBS += $(call wrap,rgate_peer_post rgate_peer_done rgate_peer_settle)
$(O)/tests/unit/test_outbox: EXTRA_LIBS += $(call wrap,rgate_node_stage rgate_peer_post rgate_peer_done \
	rgate_pool_alloc rgate_pool_free)
$(O)/tests/unit/test_session: EXTRA_LIBS += $(call wrap,rgate_peer_info)
$(O)/tests/unit/test_call: EXTRA_LIBS += $(call wrap,rgate_peer_post rgate_peer_done rgate_peer_settle \
	rgate_pool_alloc rgate_pool_free)
# A hub, its node and its connections that are the test's (tests/unit/node/fake_hub.h)
fake_hub := $(addprefix rgate_hub_,add remove get put node peer epoch send await wake) \
	$(addprefix rgate_node_,id incarnation stage) \
	$(addprefix rgate_peer_,info post done settle cut) \
	$(addprefix rgate_pool_,alloc free) $(addprefix rgate_share_,create destroy desc)
$(node_test_bin) $(sync_test_bin): EXTRA_LIBS += $(call wrap,$(fake_hub))
$(sync_test_bin): EXTRA_LIBS += $(call wrap,clock_gettime)
$(O)/tests/unit/test_spawn_policy: EXTRA_LIBS += $(call wrap,reallocarray)
$(O)/tests/unit/test_spin: EXTRA_LIBS += $(call wrap,clock_gettime poll)
$(O)/tests/unit/test_request_engine $(O)/tests/unit/test_request_seats: EXTRA_LIBS += $(call wrap,epoll_wait)
$(O)/tests/unit/test_ring_module: EXTRA_LIBS += $(call wrap,ioctl mmap)
$(O)/tests/unit/test_sender: EXTRA_LIBS += $(call wrap,ioctl)
$(O)/tests/unit/test_base: EXTRA_LIBS += $(call wrap,fopen)
$(faults_bin) $(load_bin): EXTRA_LIBS = $(LIB_LIBS)
$(fabric_bin) $(net_bin) $(spawn_bin): EXTRA_LIBS = $(LIB_LIBS) $(CMOCKA_LIBS)
# Locks that check errors (tests/unit/lib/unit.c)
checked_locks = $(call wrap,$(addprefix pthread_mutex_,init lock unlock))
$(unit_bin) $(fabric_bin) $(net_bin) $(spawn_bin): EXTRA_LIBS += $(checked_locks)
$(O)/tests/fabric/test_shard: EXTRA_LIBS += $(call wrap,shard_run)
$(O)/tests/fabric/test_done: EXTRA_LIBS += $(call wrap,rgate_link_disconnect rgate_hs_end)
$(O)/tests/fabric/test_withdrawn: EXTRA_LIBS += $(call wrap,fcntl local_send)
$(O)/tests/fabric/test_trust: EXTRA_LIBS += $(call wrap,rgate_link_create)
$(O)/tests/net/test_plane: EXTRA_LIBS += $(call wrap,rgate_peer_post rgate_consumer_init rgate_share_create)
$(O)/tests/net/test_inbox: EXTRA_LIBS += $(call wrap,rgate_peer_post)
$(O)/tests/net/test_inlet: EXTRA_LIBS += $(call wrap,rgate_share_create rgate_share_destroy \
	rgate_pool_alloc_opts)
# Calls that are refused (tests/unit/lib/refuse.h)
refused := malloc calloc realloc strdup strndup posix_memalign mmap memfd_create ftruncate \
	epoll_create1 epoll_ctl eventfd timerfd_create socket socketpair bind listen pipe2 \
	pthread_create open
$(O)/tests/spawn/test_streams: EXTRA_LIBS += $(call wrap,read splice)
$(O)/tests/spawn/test_third: EXTRA_LIBS += $(call wrap,rgate_peer_post)
$(O)/tests/spawn/test_order: EXTRA_LIBS += $(call wrap,rgate_peer_done rgate_peer_post rgate_node_stage chdir)
$(O)/tests/net/test_exhausted $(O)/tests/spawn/test_exhausted $(O)/tests/unit/test_request_exhausted \
$(O)/tests/unit/test_agent_refused $(O)/tests/unit/test_socket_refused $(O)/tests/unit/test_spawn_policy \
$(O)/tests/unit/test_daemon_config $(O)/tests/unit/test_daemon_rights: \
	EXTRA_LIBS += $(call wrap,$(refused))
$(vm_bin) $(debug_bin) $(fuzz_device): EXTRA_LIBS = $(LIB_LIBS)
$(xdp_test_bin): EXTRA_LIBS += $(TOOL_LIBS)
$(example_bin): EXTRA_LIBS = $(LIB_LIBS)
$(O)/examples/xdp_filter: EXTRA_LIBS += $(call pc,--libs libbpf)
$(bench_bin): EXTRA_LIBS = $(LIB_LIBS) $(URING_LIBS)
$(bench_cost): EXTRA_LIBS += $(TOOL_LIBS)
$(bench_queue): EXTRA_LIBS += $(HIREDIS_LIBS)
$(bench_sync): EXTRA_LIBS += $(HIREDIS_LIBS) $(MPI_LIBS)
$(bench_pool): EXTRA_LIBS += $(DPDK_LIBS) $(UCS_LIBS)
$(cluster_bin) $(demo_bin): EXTRA_LIBS = $(LIB_LIBS)
$(tool_bin) $(daemon_bin): EXTRA_LIBS = $(LIB_LIBS) $(TOOL_LIBS)
$(probe_bin): EXTRA_LIBS = $(LIB_LIBS)
# Nothing that has devices. Functions are found once, and not by each process that is a copy of it.
$(spawner_bin): EXTRA_LIBS = $(CRYPTO_LIBS) -Wl,-z,relro,-z,now
$(agent_bin): EXTRA_LIBS = $(LIB_LIBS) -Wl,-z,relro,-z,now

tools: $(tool_bin) $(daemon_bin) $(spawner_bin) $(agent_bin) $(probe_bin) $(preload)
examples: $(example_bin) $(example_bpf)
unit-tests: $(unit_bin)
vm-tests: $(vm_bin)
bench-programs: $(bench_bin)
cluster-programs: $(cluster_bin)
demo-programs: $(demo_bin)
debug-tests: $(debug_bin) $(fuzz_device)
fabric-tests: $(fabric_bin)
net-tests: $(net_bin) $(faults_bin) $(load_bin)
spawn-tests: $(spawn_bin)
# What runs in a VM
vm-programs: tools examples vm-tests fabric-tests net-tests spawn-tests staged
# What is installed, for tests/vm/systemd.sh: in a VM make is slow, as it looks at many files.
staged: lib tools
	$(Q)rm -rf $(O)/staged
	+$(Q)$(MAKE) -s --no-print-directory O=$(O) DESTDIR=$(abspath $(O))/staged install
tests: unit-tests fabric-tests net-tests spawn-tests vm-tests debug-tests bench-programs demo-programs \
	cluster-programs

# The CLI and the program that it executes, with main() under other names
cli_obj := $(O)/obj/cli-main.o $(O)/obj/cli-probe-main.o \
	$(patsubst %.c,$(O)/obj/%.o,$(filter-out %/main.c,$(tool_src) $(probe_src)))

$(O)/obj/cli-main.o $(O)/obj/cli-probe-main.o: EXTRA = -Ilib/base -Ilib/mem -Itools/ringgate -Dmain=$(cli_main) \
	-DRGATE_VERSION='"$(VERSION)"'
$(O)/obj/cli-main.o: cli_main = ringgate_main
$(O)/obj/cli-probe-main.o: cli_main = ringgate_probe_main
$(O)/obj/cli-main.o: tools/ringgate/main.c $(flags_file)
	$(need_dir)
	$(call say,CC,$@)
	$(Q)$(compile)
$(O)/obj/cli-probe-main.o: tools/ringgate-probe/main.c $(flags_file)
	$(need_dir)
	$(call say,CC,$@)
	$(Q)$(compile)

$(O)/cli.a: $(cli_obj) $(shim_shared)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

#
# Fuzzers of user space: by clang, with the library and the CLI instrumented too, and with
# reads so short that inputs have some of several
#

FUZZ_CC ?= clang

fuzz-programs:
	+$(Q)$(MAKE) --no-print-directory O=$(O)/fuzz CC=$(FUZZ_CC) \
		CFLAGS='-O1 -g1 -DRGATE_SPAWND_READ=512U' \
		SANITIZE=fuzzer-no-link,address,undefined V=$(V) WERROR=$(WERROR) fuzzers

fuzzers: $(fuzz_bin)

fuzz_lib := $(O)/cli.a $(lib_static)
fuzz_cli := $(O)/tests/fuzz/user/fuzz_cli

# An archive: of what stands in for a peer each has its own.
fuzz_shared := $(O)/obj/tests/fuzz/user/shared.a

$(fuzz_shared): $(call objects_of,tests/fuzz/user)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^
$(filter-out $(fuzz_cli),$(fuzz_bin)): $(O)/%: $(O)/obj/%.o $(fuzz_shared) $(fuzz_lib)
	$(program)
$(fuzz_cli): $(O)/%: $(O)/obj/%.o $(fuzz_shared) $(fuzz_lib:%.a=%-tame.a)
	$(program)

# What changes something, or waits, is fuzz_X() of fuzz_cli.c instead of X(). Not by
# --wrap, which would do the same to libFuzzer.
fuzz_tame := exit argp_parse argp_error argp_failure argp_state_help open fopen getaddrinfo fork \
	socket socketpair memfd_create mkostemp unlink rename shmget setrlimit prctl kill dlopen \
	kmod_new mnl_socket_open2 ibv_get_device_list pthread_create pthread_setaffinity_np isatty \
	sigaction signal signalfd raise nanosleep ppoll poll execv

%-tame.a: %.a Makefile
	$(call say,OBJCOPY,$@)
	$(Q)objcopy $(foreach f,$(fuzz_tame),--redefine-sym $(f)=fuzz_$(f)) $< $@

$(fuzz_bin): EXTRA_LIBS = -fsanitize=fuzzer $(LIB_LIBS) $(TOOL_LIBS)
$(O)/tests/fuzz/user/fuzz_netlink: EXTRA_LIBS += $(call wrap,poll mnl_socket_open2 mnl_socket_close \
	mnl_socket_bind mnl_socket_get_portid mnl_socket_get_fd mnl_socket_setsockopt \
	mnl_socket_sendto mnl_socket_recvfrom)
$(fuzz_cli): EXTRA_LIBS += $(call wrap,rgate_ring_open_memfd bench_rate bench_latency)
$(O)/tests/fuzz/user/fuzz_filter: EXTRA_LIBS += $(call wrap,pcap_create)
$(O)/tests/fuzz/user/fuzz_ring: EXTRA_LIBS += $(call wrap,mmap munmap)
fuzz_peer := $(call wrap,$(addprefix rgate_node_,pool stage readable id incarnation) \
	$(addprefix rgate_peer_,info post done settle cut recv arm fd))
$(O)/tests/fuzz/user/fuzz_agent: EXTRA_LIBS += $(call wrap,clock_gettime \
	$(addprefix rgate_sockets_,open close memory fd arm next resolve_begin cancel) \
	$(addprefix rgate_socket_,open close begin bind connect send sendto listen name peer setopt \
		getopt shutdown) \
	socket_setopt_quiet socket_close_quiet sockets_settle sockets_settled sockets_end_by \
	sockets_open_asking sockets_are_here)
$(O)/tests/fuzz/user/fuzz_gate: $(node_other)
$(O)/tests/fuzz/user/fuzz_gate: EXTRA_LIBS += $(call wrap,$(fake_hub) rgate_thread_start pthread_join \
	epoll_ctl epoll_wait rgate_seat_remove \
	$(addprefix rgate_session_,at memory fd arm submit poll cancel close) \
	$(addprefix rgate_req_,get seat mem data set_data shots more end) \
	$(addprefix rgate_seat_,memory uid handle))
$(O)/tests/fuzz/user/fuzz_queue: EXTRA_LIBS += $(call wrap, \
	$(addprefix gate_,service_find service_whose service_process service_limits forward_cancel) \
	$(addprefix rgate_req_,get seat mem data object set_data set_value end) \
	$(addprefix rgate_seat_,uid handle release))
$(O)/tests/fuzz/user/fuzz_shim: $(patsubst %,$(O)/obj/lib/shim/shim_%.o,datagram names)
$(addprefix $(O)/tests/fuzz/user/fuzz_,shim super): EXTRA_LIBS += $(call wrap,syscall)
$(O)/tests/fuzz/user/fuzz_spawn_client: EXTRA_LIBS += $(fuzz_peer)
$(O)/tests/fuzz/user/fuzz_spawn_server: EXTRA_LIBS += $(fuzz_peer) $(call wrap,rgate_policy_load \
	$(addprefix rgate_spawner_,create destroy order start cancel tell recv))

include lib/gpu/gpu.mk

-include $(shell find $(O)/obj -name '*.d' 2>/dev/null)

#
# Kernel module: built in a copy, so that several kernels can be served
#

# Found when needed: this may have to fetch the kernel of the lab.
KVER = $(eval KVER := $(if $(wildcard /lib/modules/$(shell uname -r)/build/Makefile),$(shell \
	uname -r),$(lab_kver)))$(KVER)
lab_kver = $(eval lab_kver := $(or $(if $(filter 1,$(HOST)),$(shell uname -r),$(shell \
	scripts/kernel --print version $(LAB_KERNEL))),$(error no kernel for the lab)))$(lab_kver)
kdir = $(or $(KDIR),$(patsubst %/Makefile,%,$(firstword $(wildcard /lib/modules/$(1)/build/Makefile))),$(shell \
	scripts/kernel --cached --print headers $(1)),$(error no headers for kernel $(1): set KDIR))

kmod_files := $(filter-out %.mod.c,$(wildcard kmod/*.c kmod/*.h)) kmod/Kbuild $(wildcard uapi/ringgate/*.h)
# What makes the types that XDP programs need, where the kernel's build does not
kmod_tools := $(wildcard kmod/tools/*)

# In a make of its own: only now, and not where something else is made, is it asked which
# kernel this is. One at a time, as both may be the same.
own_make = +$(Q)mkdir -p $(O) && flock $(O)/kmod.lock $(MAKE) $(if $(Q),-s) --no-print-directory $(1)
kmod:
	$(call own_make,$(O)/kmod-$(KVER)/ringgate.ko)
lab-kmod:
	$(call own_make,$(O)/kmod-$(lab_kver)/ringgate.ko $(O)/kmod-$(lab_kver)/rgate_import.ko)

# The kernel's make in the folder $(1) of $(@D), for the kernel $*
kbuild_in = +$(Q)scripts/kbuild $(call kdir,$*) M=$(abspath $(@D))/$(1) V=$(V) $(KMOD_FLAGS) \
	$(if $(filter 1,$(WERROR)),RGATE_WERROR=y) modules $(if $(filter 1,$(V)),,>$(@D)/$(1).log 2>&1 || \
	{ cat $(@D)/$(1).log; exit 1; })

# Builds in $(@D) for the kernel $*
define build_kmod
	$(call say,KMOD,$@)
	$(Q)mkdir -p $(@D)/kmod $(@D)/uapi/ringgate
	$(Q)cd $(@D) && for file in kmod/*.[ch] uapi/ringgate/*.h; do \
		case $$file in *.mod.c) continue ;; esac; \
		[ -e "$(CURDIR)/$$file" ] || rm -f "$$file"; \
	done
	$(Q)for file in $(kmod_files); do cp -pu "$$file" "$(@D)/$$file"; done
	$(call kbuild_in,kmod)
	$(Q)kmod/tools/add-btf $(@D)/kmod/ringgate.ko $(wildcard .cache/kernels/$*/vmlinux)
	$(Q)ln -sf kmod/ringgate.ko $@
	$(Q)touch -h $@
endef

$(O)/kmod-%/ringgate.ko: $(kmod_files) $(kmod_tools)
	$(build_kmod)

# What tests of the module load beside it
$(O)/kmod-%/rgate_import.ko: $(wildcard tests/vm/kmod/*)
	$(call say,KMOD,$@)
	$(Q)mkdir -p $(@D)/tests && cp -pu $^ $(@D)/tests/
	$(call kbuild_in,tests)
	$(Q)ln -sf tests/rgate_import.ko $@
	$(Q)touch -h $@

# With the unit tests in it, for a kernel that has KUnit
lab-kunit:
	$(call own_make,$(O)/kunit-$(lab_kver)/ringgate.ko)
$(O)/kunit-%/ringgate.ko: KMOD_FLAGS = RGATE_KUNIT=y
$(O)/kunit-%/ringgate.ko: $(kmod_files)
	$(build_kmod)

#
# Checks
#

# What the very first command on a machine has to do. Flags and kernel are only known once
# the packages are there: hence make in make, on all CPUs where no number of jobs was given.
# $(1): groups of scripts/deps, $(2): what to build, $(3): how long that takes
all_cpus = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))
define prepare
	$(Q)echo '[1/4] packages'
	$(Q)scripts/deps $(1)
	$(Q)echo '[2/4] the kernel of the VM'
	$(Q)$(if $(filter 1,$(HOST)),echo "  HOST=1: this machine's",scripts/kernel $(LAB_KERNEL) >/dev/null)
	$(Q)echo '[3/4] build: $(3)'
	+$(Q)$(MAKE) --no-print-directory $(all_cpus) $(2)
endef

# CHECK='unit cli vm:t_ring*': only these groups of scripts/check
check:
	$(call prepare,$(check_deps),$(if $(CHECK),check-programs,check-first),about 5 minutes)
	$(Q)echo '[4/4] tests'
	$(Q)O=$(O) LAB_KERNEL=$(LAB_KERNEL) TESTS='$(TESTS)' LATE='$(if $(CHECK),,$(built_late))' \
		JOBS='$(or $(filter -j%,$(MAKEFLAGS)),$(all_cpus))' scripts/check $(CHECK)

# What each group runs, besides `all`
programs_unit := unit-tests
programs_fabric := fabric-tests
programs_net := net-tests demo-programs
programs_spawn := spawn-tests
programs_gpu := gpu-tests $(if $(wildcard /dev/nvidia0),gpu-bench)
programs_fuzz := $(if $(shell command -v $(FUZZ_CC)),fuzz-programs)
programs_install := lab-kmod
programs_vm := vm-programs lab-kmod
programs_rdma := vm-programs lab-kmod
programs_cluster := cluster-programs lab-kmod
programs_asan := asan-programs
programs_tsan := tsan-programs
# $(1), GROUP:GLOB: the programs that it names, as far as make can tell; scripts have need of any
group_of = $(firstword $(subst :, ,$(1)))
named = $(filter $(O)/tests/$(group_of)/$(subst *,%,$(word 2,$(subst :, ,$(1)))),$($(group_of)_bin))
programs_of_word = $(if $(named),$(named) $(filter lab-kmod,$(programs_$(group_of))),$(programs_$(group_of)))

# clang is for fuzzers, and for BPF that scripts of some groups have need of; fresh has debootstrap.
needs_clang = $(if $(named),,$(filter-out unit fabric net spawn cli,$(group_of)))
needs_fresh = $(filter fresh,$(group_of))
asked = $(strip $(foreach word,$(CHECK),$(call $(1),$(word))))
check_deps = build vm test $(if $(CHECK),$(if $(call asked,needs_clang),fuzz) $(call asked,needs_fresh),fuzz fresh)

check-programs: all $(if $(CHECK),$(foreach word,$(CHECK),$(call programs_of_word,$(word))), \
	check-first $(foreach group,$(built_late),$(programs_$(group))))

# What all of scripts/check needs first; the rest, which takes longer, it builds while tests wait.
check-first: all tests staged lab-kmod $(programs_gpu)
built_late = asan tsan $(if $(programs_fuzz),fuzz)

comma := ,
# The native suites once more, for the sanitizers to judge; lines and functions are enough of what
# a debugger wants, and tests that are not optimized are compiled sooner
sanitized = +$(Q)$(MAKE) --no-print-directory O=$(O)/$(1) SANITIZE=$(2) CFLAGS='-O1 -g1' \
	TEST_CFLAGS='-O0 -g1' V=$(V) WERROR=$(WERROR) $(3) tools
asan-programs:
	$(call sanitized,asan,address$(comma)undefined,unit-tests fabric-tests net-tests spawn-tests)
tsan-programs:
	$(call sanitized,tsan,thread,threaded-tests)
# Without those that say of themselves that they make no threads, and are held to it
alone_src := $(shell grep -lw UNIT_MAIN_ALONE /dev/null $(unit_src) $(fabric_src) $(net_src) $(spawn_src))
threaded-tests: $(filter-out $(alone_src:%.c=$(O)/%),$(unit_bin) $(fabric_bin) $(net_bin) $(spawn_bin)) \
	$(faults_bin) $(load_bin)

# For targets that do not install: one line that says what is missing
need-packages:
	@scripts/deps --check build vm test

check-unit: need-packages unit-tests tools
	$(Q)O=$(O) scripts/check unit

check-cli: need-packages tools
	$(Q)O=$(O) scripts/check cli

check-vm: need-packages vm-programs lab-kmod
	$(Q)O=$(O) LAB_KERNEL=$(LAB_KERNEL) TESTS='$(TESTS)' scripts/check rdma vm

check-sanitized: need-packages tools asan-programs tsan-programs
	$(Q)O=$(O) TESTS='$(TESTS)' scripts/check asan tsan

check-fresh:
	$(Q)scripts/deps fresh
	$(Q)O=$(O) scripts/check-fresh

# The same on each kernel that scripts/kernel knows, or on KERNELS
check-kernels:
	$(Q)scripts/deps build vm test kernels
	$(Q)$(MAKE) --no-print-directory vm-programs
	$(Q)O=$(O) TESTS='$(TESTS)' scripts/check-kernels $(KERNELS)

# Everything that runs in a VM, on a kernel that looks for mistakes
check-debug:
	$(Q)scripts/deps build vm test debug
	$(Q)scripts/debug-kernel
	$(Q)$(MAKE) --no-print-directory LAB_KERNEL=debug vm-programs debug-tests lab-kmod lab-kunit
	$(Q)O=$(O) LAB_KERNEL=debug TESTS='$(TESTS)' scripts/check vm debug

# All of tests/cluster but the soak; of these `check` runs the short one.
check-cluster: need-packages cluster-programs tools lab-kmod
	$(Q)O=$(O) LAB_KERNEL=$(LAB_KERNEL) TESTS='$(TESTS)' scripts/check cluster-all

# SOAK_SECONDS=N SOAK_SEED=N
soak: need-packages cluster-programs tools lab-kmod
	$(Q)O=$(O) LAB_KERNEL=$(LAB_KERNEL) scripts/check soak

check-lab: need-packages
	$(Q)O=$(O) LAB_KERNEL=$(LAB_KERNEL) scripts/check lab

deps:
	$(Q)scripts/deps

kver:
	@echo $(KVER)

# DEMO=--native: what scripts/demo --help says
demo:
	$(call prepare,build vm demo,all demo-programs lab-kmod,about 1 minute)
	$(Q)echo '[4/4] demo: about 1 minute'
	$(Q)O=$(O) LAB_KERNEL=$(LAB_KERNEL) scripts/demo $(DEMO)

bench: need-packages all bench-programs lab-kmod
	$(Q)O=$(O) LAB_KERNEL=$(LAB_KERNEL) scripts/bench all

# Each for FUZZ_SECONDS; FUZZ='ring filter' for some
fuzz:
	$(Q)scripts/deps build fuzz
	$(Q)$(MAKE) --no-print-directory fuzz-programs
	$(Q)O=$(O) FUZZ='$(FUZZ)' FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz

check-fuzz: fuzz-programs
	$(Q)O=$(O) scripts/check fuzz

check-model:
	$(Q)scripts/deps --check model
	$(Q)O=$(O) scripts/check-model

coverage:
	$(Q)scripts/deps --check build test coverage
	$(Q)O=$(O) scripts/coverage

# N mutants of the whole tree, drawn by SEED; MUTATE='--vm ...' for other options
mutate:
	$(Q)scripts/deps build test vm mutate
	$(Q)O=$(O) scripts/mutate $(if $(N),-n $(N)) $(if $(SEED),--seed $(SEED)) $(MUTATE)

lint:
	$(Q)scripts/deps lint build test vm
	$(Q)O=$(O) KVER=$$($(MAKE) -s --no-print-directory kver) scripts/lint

#
# Installation
#

man_pages := $(wildcard Documentation/man/*.[1-8])
completion := $(wildcard tools/ringgate/completion/ringgate)
public_headers := $(wildcard lib/include/ringgate/*.h uapi/ringgate/*.h)

install: lib tools
	$(INSTALL) -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR)/ringgate
	$(INSTALL) -m 755 $(tool_bin) $(DESTDIR)$(BINDIR)/
	$(INSTALL) -D -m 755 $(daemon_bin) $(DESTDIR)$(SBINDIR)/ringgated
	$(INSTALL) -d $(DESTDIR)$(LIBEXECDIR)/ringgate
	$(INSTALL) -m 755 $(spawner_bin) $(agent_bin) $(probe_bin) $(preload) $(DESTDIR)$(LIBEXECDIR)/ringgate/
	$(INSTALL) -d $(DESTDIR)$(UNITDIR)
	sed 's,@SBINDIR@,$(SBINDIR),' tools/ringgated/ringgated.service.in \
		>$(DESTDIR)$(UNITDIR)/ringgated.service
	$(INSTALL) -m 755 $(lib_real) $(DESTDIR)$(LIBDIR)/
	set -e; for name in $(lib_names); do \
		ln -sf $$name.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$$name.so.$(SOVERSION); \
		ln -sf $$name.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/$$name.so; \
	done
	$(INSTALL) -m 644 $(lib_static) $(DESTDIR)$(LIBDIR)/
	$(foreach name,$(lib_names),$(call pc_text,lib/$(name).pc.in) \
		>$(DESTDIR)$(LIBDIR)/pkgconfig/$(name).pc &&) :
	$(INSTALL) -m 644 $(public_headers) $(DESTDIR)$(INCLUDEDIR)/ringgate/
	set -e; for page in $(man_pages); do \
		$(INSTALL) -D -m 644 $$page $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/}; \
	done
	$(if $(completion),$(INSTALL) -D -m 644 $(completion) \
		$(DESTDIR)$(DATADIR)/bash-completion/completions/ringgate)
	$(if $(DESTDIR),,-ldconfig)

uninstall:
	rm -f $(DESTDIR)$(BINDIR)/ringgate $(DESTDIR)$(SBINDIR)/ringgated
	rm -f $(addprefix $(DESTDIR)$(LIBEXECDIR)/ringgate/,ringgate-spawner ringgate-agent ringgate-probe \
		$(notdir $(preload)))
	-rmdir $(DESTDIR)$(LIBEXECDIR)/ringgate
	rm -f $(DESTDIR)$(UNITDIR)/ringgated.service
	rm -f $(foreach name,$(lib_names),$(addprefix $(DESTDIR)$(LIBDIR)/,$(name).a $(name).so* \
		pkgconfig/$(name).pc))
	rm -f $(addprefix $(DESTDIR)$(INCLUDEDIR)/ringgate/,$(notdir $(public_headers)))
	-rmdir $(DESTDIR)$(INCLUDEDIR)/ringgate
	set -e; for page in $(man_pages); do \
		rm -f $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/}; \
	done
	rm -f $(DESTDIR)$(DATADIR)/bash-completion/completions/ringgate
	$(if $(DESTDIR),,-ldconfig)

install-kmod: kmod
	$(MAKE) -C $(call kdir,$(KVER)) M=$(abspath $(O))/kmod-$(KVER)/kmod \
		$(if $(DESTDIR),INSTALL_MOD_PATH=$(DESTDIR)) modules_install

dkms_dir = $(DESTDIR)$(SRCDIR)/ringgate-$(VERSION)
dkms_kver = $(or $(if $(filter command line environment,$(origin KVER)),$(KVER)),$(shell uname -r))

dkms: dkms-deps dkms-source
	dkms status -m ringgate -v $(VERSION) | grep -q . || dkms add -m ringgate -v $(VERSION)
	dkms build -m ringgate -v $(VERSION) -k $(dkms_kver) --force
	dkms install -m ringgate -v $(VERSION) -k $(dkms_kver) --force

# What dkms builds with: the package, and the headers of that kernel
dkms-deps:
	$(Q)command -v dkms >/dev/null || scripts/deps dkms
	$(Q)[ -e /lib/modules/$(dkms_kver)/build ] || { \
		echo "dkms: no headers of this kernel: apt-get install linux-headers-$(dkms_kver)" >&2; exit 1; }

dkms-source:
	$(INSTALL) -d $(dkms_dir)/kmod/tools $(dkms_dir)/uapi/ringgate
	$(INSTALL) -m 644 $(filter kmod/%,$(kmod_files)) kmod/Makefile $(dkms_dir)/kmod/
	$(INSTALL) $(kmod_tools) $(dkms_dir)/kmod/tools/
	$(INSTALL) -m 644 $(filter uapi/%,$(kmod_files)) $(dkms_dir)/uapi/ringgate/
	$(INSTALL) -m 644 kmod/dkms.conf $(dkms_dir)/dkms.conf

dkms-remove:
	dkms remove -m ringgate -v $(VERSION) --all
	rm -rf $(dkms_dir)

clean:
	rm -rf $(O)

distclean: clean
	rm -rf .cache

help:
	@scripts/make-help

.PHONY: need-tools need-libs $(need_others:%=need-%) need-packages
.PHONY: all lib tools examples unit-tests fabric-tests net-tests spawn-tests threaded-tests vm-tests vm-programs staged debug-tests bench-programs \
	demo-programs cluster-programs tests fuzz fuzz-programs fuzzers kmod lab-kmod lab-kunit check check-programs check-first \
	asan-programs tsan-programs check-sanitized check-fresh check-unit check-cli check-fuzz check-vm check-cluster soak check-kernels check-debug \
	check-model check-lab coverage mutate deps kver demo bench lint install install-kmod uninstall dkms dkms-deps dkms-source \
	dkms-remove clean distclean help

all: lib tools examples kmod gpu
