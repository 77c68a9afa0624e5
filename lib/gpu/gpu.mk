# SPDX-License-Identifier: MIT OR GPL-2.0
# The GPU's library, its tests, benchmarks and examples: only where nvcc is.

# The responder needs no CUDA, and is tested everywhere.
responder_obj := $(O)/obj/lib/gpu/responder.o
$(O)/tests/unit/test_gpu_responder: $(responder_obj)
$(O)/tests/unit/test_gpu_responder: EXTRA_LIBS += $(lib_static) $(RING_LIBS) $(call wrap,sendmmsg clock_gettime)
# Nor does the device's code on the CPU.
$(O)/tests/net/test_gpu_remote: $(O)/obj/tests/unit/lib/gpu_dev.o

# Machine code for these, and PTX of the last for what comes after
GPU_ARCHS ?= 80 90

gpu_src := $(wildcard lib/gpu/*.c)
gpu_cu := $(wildcard lib/gpu/*.cu)
gpu_obj := $(gpu_src:%.c=$(O)/obj/%.o) $(gpu_cu:%.cu=$(O)/obj/%.cu.o)

gpu_real := $(O)/lib/libringgate-gpu.so.$(VERSION)
gpu_static := $(O)/lib/libringgate-gpu.a
gpu_pc := $(O)/lib/libringgate-gpu.pc
gpu_headers := $(wildcard lib/include/ringgate/gpu/*.cuh)

gpu_test_src := $(wildcard tests/gpu/*.cu)
gpu_bench_src := $(wildcard tests/bench/gpu/*.cu)
gpu_example_src := $(wildcard Documentation/examples/gpu/*.cu)
gpu_test_bin := $(gpu_test_src:%.cu=$(O)/%)
gpu_bench_bin := $(gpu_bench_src:%.cu=$(O)/%)
gpu_example_bin := $(gpu_example_src:Documentation/%.cu=$(O)/%)

ifeq ($(NVCC),)
gpu gpu-c gpu-tests gpu-examples gpu-bench:
	@:
else

gpu_cuda := $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
# What is to be fast at once: the library, and the benchmarks
gpu_codes = $(foreach arch,$(GPU_ARCHS),-gencode arch=compute_$(arch),code=sm_$(arch))
gpu_codes += -gencode arch=compute_$(lastword $(GPU_ARCHS)),code=compute_$(lastword $(GPU_ARCHS))
GPU_LIBS = -L$(gpu_cuda)/lib64 -lcudart_static -ldl -lrt -lpthread
# Others are compiled to the end where they run, for the GPU that is there: a third of the time here.
gpu_code_later = -gencode arch=compute_$(firstword $(GPU_ARCHS)),code=compute_$(firstword $(GPU_ARCHS))
nvcc_flags := -std=c++17 -O3 -lineinfo -Iuapi -Ilib/include -Xcompiler -Wall,-Wextra,-Wno-missing-field-initializers
nvcc_flags += $(if $(filter 1,$(WERROR)),-Werror all-warnings)

gpu: $(gpu_real) $(gpu_static) $(gpu_pc) gpu-examples
# What is C alone
gpu-c: $(filter-out %.cu.o,$(gpu_obj)) $(call objects_of,tests/gpu) $(call objects_of,tests/bench/gpu)
gpu-tests: $(gpu_test_bin)
gpu-examples: $(gpu_example_bin)
gpu-bench: $(gpu_bench_bin)

# The runtime on a CUDA of the test's own
runtime_test_bin := $(filter $(O)/tests/unit/test_runtime%,$(unit_bin)) $(gpu_vm_bin)
$(gpu_vm_bin:$(O)/%=$(O)/obj/%.o): EXTRA += $(lib_layers:%=-Ilib/%) -Itests/unit/lib
$(gpu_vm_bin): EXTRA_LIBS += $(CMOCKA_LIBS) $(checked_locks)
$(runtime_test_bin:$(O)/%=$(O)/obj/%.o) $(O)/obj/tests/unit/gpu/%.o: EXTRA += -Ilib/gpu -Itests/unit/gpu \
	-isystem $(gpu_cuda)/include
$(runtime_test_bin): $(patsubst %.c,$(O)/obj/%.o,$(wildcard tests/unit/gpu/*.c)) \
	$(filter-out %/selfbench.o,$(gpu_src:%.c=$(O)/obj/%.o))
# What these objects call comes behind them.
$(runtime_test_bin): EXTRA_LIBS += $(lib_static) $(RING_LIBS)
$(filter $(O)/tests/unit/test_runtime_send,$(unit_bin)): EXTRA_LIBS += $(call wrap,ioctl)

# Warnings of CUDA's own headers are CUDA's.
$(O)/obj/lib/gpu/%.o: EXTRA += -Ilib/gpu -Ilib/ring -isystem $(gpu_cuda)/include
$(O)/obj/tests/gpu/%.o: EXTRA = -D_GNU_SOURCE -Itests/gpu/lib -isystem $(gpu_cuda)/include
$(O)/obj/tests/bench/gpu/%.o: EXTRA += -isystem $(gpu_cuda)/include

$(O)/obj/%.cu.o: %.cu $(flags_file) lib/gpu/gpu.mk
	$(need_dir)
	$(call say,NVCC,$@)
	$(Q)$(NVCC) $(nvcc_flags) $(or $(NVCC_CODES),$(gpu_codes)) $(NVCC_EXTRA) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

# The library is C: nothing in it may need libstdc++.
$(O)/obj/lib/gpu/%.cu.o: NVCC_EXTRA = -Ilib/gpu \
	-Xcompiler -fPIC,-fvisibility=hidden,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics
$(O)/obj/tests/gpu/%.cu.o: NVCC_EXTRA = -Itests/gpu/lib
$(O)/obj/tests/gpu/%.cu.o $(O)/obj/Documentation/examples/gpu/%.cu.o: NVCC_CODES = $(gpu_code_later)
$(O)/obj/tests/bench/gpu/%.cu.o: NVCC_EXTRA = -Itests/bench/gpu/lib

$(gpu_real): $(gpu_obj) $(base_obj) lib/gpu/libringgate-gpu.map \
		$(O)/lib/libringgate.so.$(VERSION)
	$(need_dir)
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		-Wl,-soname,libringgate-gpu.so.$(SOVERSION) \
		-Wl,--version-script=lib/gpu/libringgate-gpu.map \
		$(if $(SANITIZE),,-Wl,-z,defs) -L$(O)/lib -lringgate $(GPU_LIBS) $(LDLIBS)
	$(Q)ln -sf $(@F) $(O)/lib/libringgate-gpu.so.$(SOVERSION)
	$(Q)ln -sf libringgate-gpu.so.$(SOVERSION) $(O)/lib/libringgate-gpu.so

$(gpu_static): $(gpu_obj)
	$(need_dir)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

gpu_pc_text = $(call pc_text,lib/gpu/libringgate-gpu.pc.in)

$(gpu_pc): lib/gpu/libringgate-gpu.pc.in Makefile
	$(need_dir)
	$(call say,GEN,$@)
	$(Q)$(gpu_pc_text) >$@

# nvcc takes the comma of "address,undefined" for one between two options.
gpu_sanitize = $(foreach s,$(subst $(comma), ,$(SANITIZE)),-Xcompiler -fsanitize=$(s))

define gpu_program
	$(need_dir)
	$(call say,LD,$@)
	$(Q)$(NVCC) -cudart static $(gpu_sanitize) -o $@ $(filter %.o,$^) \
		$(gpu_static) $(lib_static) -Xlinker --as-needed $(LIB_LIBS:-pthread=-lpthread) $(LDLIBS)
endef

$(gpu_test_bin): $(O)/%: $(O)/obj/%.cu.o $(call objects_of,tests/gpu) $(gpu_static) $(lib_static)
	$(gpu_program)
$(gpu_bench_bin): $(O)/%: $(O)/obj/%.cu.o $(call objects_of,tests/bench/gpu) $(gpu_static) $(lib_static)
	$(gpu_program)
$(gpu_example_bin): $(O)/examples/%: $(O)/obj/Documentation/examples/%.cu.o $(gpu_static) $(lib_static)
	$(gpu_program)

install: install-gpu
install-gpu: $(gpu_real) $(gpu_static)
	$(INSTALL) -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR)/ringgate/gpu
	$(INSTALL) -m 755 $(gpu_real) $(DESTDIR)$(LIBDIR)/
	ln -sf $(notdir $(gpu_real)) $(DESTDIR)$(LIBDIR)/libringgate-gpu.so.$(SOVERSION)
	ln -sf libringgate-gpu.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libringgate-gpu.so
	$(INSTALL) -m 644 $(gpu_static) $(DESTDIR)$(LIBDIR)/
	$(gpu_pc_text) >$(DESTDIR)$(LIBDIR)/pkgconfig/libringgate-gpu.pc
	$(INSTALL) -m 644 $(gpu_headers) $(DESTDIR)$(INCLUDEDIR)/ringgate/gpu/

endif

uninstall: uninstall-gpu
uninstall-gpu:
	rm -f $(DESTDIR)$(LIBDIR)/libringgate-gpu.a $(DESTDIR)$(LIBDIR)/libringgate-gpu.so*
	rm -f $(DESTDIR)$(LIBDIR)/pkgconfig/libringgate-gpu.pc
	rm -f $(addprefix $(DESTDIR)$(INCLUDEDIR)/ringgate/gpu/,$(notdir $(gpu_headers)))
	-rmdir $(DESTDIR)$(INCLUDEDIR)/ringgate/gpu

.PHONY: gpu gpu-c gpu-tests gpu-examples gpu-bench install-gpu uninstall-gpu
