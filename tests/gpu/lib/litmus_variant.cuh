/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Included once for each variant, with LIT_NAME and LIT_KIND: the device's headers in a
 * namespace of their own, where names of port.cuh and pair.cuh may stand for something weaker,
 * and the litmus kernels on them. What the headers include themselves has to be included before.
 */
namespace LIT_NAME {

#undef RINGGATE_GPU_PORT_CUH
#undef RINGGATE_GPU_PAIR_CUH
#include <ringgate/gpu/pair.cuh>

RGATE_DEV void lit_nothing(void)
{
	asm volatile("" ::: "memory");
}

RGATE_DEV void lit_fence_block(void)
{
	asm volatile("fence.acq_rel.cta;" ::: "memory");
}

/* After the load that @v is of */
template<class T> RGATE_DEV T lit_then(T v)
{
	lit_fence_block();
	return v;
}

RGATE_DEV uint32_t lit_load32(const void *p)
{
	uint32_t v;

	asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
}

RGATE_DEV uint32_t lit_block_load(const uint32_t *p)
{
	uint32_t v;

	asm volatile("ld.relaxed.cta.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
}

RGATE_DEV void lit_block_store(uint32_t *p, uint32_t v)
{
	asm volatile("st.relaxed.cta.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory");
}

#define LIT_ATOM32(name, what) \
	RGATE_DEV uint32_t name(uint32_t *p, uint32_t v) \
	{ \
		uint32_t old; \
		asm volatile("atom." what " %0, [%1], %2;" \
			     : "=r"(old) : "l"(p), "r"(v) : "memory"); \
		return old; \
	}

LIT_ATOM32(lit_add32_acquire, "acquire.gpu.global.add.u32")
LIT_ATOM32(lit_add32_release, "release.gpu.global.add.u32")
LIT_ATOM32(lit_add32, "relaxed.gpu.global.add.u32")
LIT_ATOM32(lit_and32, "relaxed.gpu.global.and.b32")

RGATE_DEV uint64_t lit_or(uint64_t *p, uint64_t v)
{
	uint64_t old;

	asm volatile("atom.relaxed.gpu.global.or.b64 %0, [%1], %2;"
		     : "=l"(old) : "l"(p), "l"(v) : "memory");
	return old;
}

RGATE_DEV uint64_t lit_cas(uint64_t *p, uint64_t old, uint64_t v)
{
	uint64_t was;

	asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;"
		     : "=l"(was) : "l"(p), "l"(old), "l"(v) : "memory");
	return was;
}

#if LIT_KIND == 1 || LIT_KIND == 4	/* LIT_NO_ACQUIRE, LIT_RELAXED */
#define LIT_LOADED(v)	(v)
#elif LIT_KIND == 3	/* LIT_NARROW */
#define LIT_LOADED(v)	lit_then(v)
#endif

#if LIT_KIND == 1 || LIT_KIND == 3 || LIT_KIND == 4
#define rgate_dsys_acquire(p)	LIT_LOADED(rgate_dsys_load(p))
#define rgate_dsys_acquire32(p)	LIT_LOADED(lit_load32(p))
#define rgate_dsys_pair_acquire_first(p) LIT_LOADED(rgate_dsys_pair_load(p))
#define rgate_dsys_pair_acquire(p) LIT_LOADED(rgate_dsys_pair_load_back(p))
#define rgate_dgpu_acquire(p)	LIT_LOADED(rgate_dgpu_load(p))
#define rgate_dgpu_acquire32(p)	LIT_LOADED(rgate_dgpu_load32(p))
#define rgate_dgpu_pair_acquire(p) LIT_LOADED(rgate_dgpu_pair_load(p))
#define rgate_dgpu_and32(p, v)	LIT_LOADED(lit_and32(p, v))
#define rgate_dgpu_or(p, v)	LIT_LOADED(lit_or(p, v))
#define rgate_dgpu_cas(p, old, v) LIT_LOADED(lit_cas(p, old, v))
#endif
#if LIT_KIND == 1 || LIT_KIND == 4
#define rgate_dblock_acquire(p)	lit_block_load(p)
#endif

#if LIT_KIND == 2 || LIT_KIND == 4	/* LIT_NO_RELEASE, LIT_RELAXED */
#define LIT_BEFORE	lit_nothing()
#elif LIT_KIND == 3
#define LIT_BEFORE	lit_fence_block()
#endif

#if LIT_KIND == 2 || LIT_KIND == 3 || LIT_KIND == 4
#define rgate_dsys_fence()	LIT_BEFORE
#define rgate_dsys_release(p, v) (LIT_BEFORE, rgate_dsys_store(p, v))
#define rgate_dgpu_release(p, v) (LIT_BEFORE, rgate_dgpu_store(p, v))
#define rgate_dgpu_release32(p, v) (LIT_BEFORE, rgate_dgpu_store32(p, v))
#define rgate_dgpu_pair_release(p, a, b) (LIT_BEFORE, rgate_dgpu_pair_store(p, a, b))
#endif
#if LIT_KIND == 2 || LIT_KIND == 4
#define rgate_dblock_release(p, v) lit_block_store(p, v)
#endif

#if LIT_KIND == 1
#define rgate_dgpu_add32(p, v)	lit_add32_release(p, v)
#elif LIT_KIND == 2
#define rgate_dgpu_add32(p, v)	lit_add32_acquire(p, v)
#elif LIT_KIND == 4
#define rgate_dgpu_add32(p, v)	lit_add32(p, v)
#elif LIT_KIND == 3
#define rgate_dgpu_add32(p, v)	(LIT_BEFORE, lit_then(lit_add32(p, v)))
#endif

#undef RINGGATE_GPU_RING_CUH
#undef RINGGATE_GPU_CONTEXT_CUH
#undef RINGGATE_GPU_POLL_CUH
#undef RINGGATE_GPU_OUT_CUH
#undef RINGGATE_GPU_PACKET_CUH
#undef RINGGATE_GPU_STAGE_CUH
#undef RINGGATE_GPU_CLERK_CUH
#undef RINGGATE_GPU_ORDER_CUH
#undef RINGGATE_GPU_KERNEL_CUH
#undef RINGGATE_GPU_ASKER_CUH
#undef RINGGATE_GPU_ANSWER_CUH
#undef RINGGATE_GPU_ASK_CUH
#include <ringgate/gpu/kernel.cuh>
#include <ringgate/gpu/ask.cuh>

#include "litmus_device.cuh"
#include "litmus_host.cuh"
#include "litmus_chain.cuh"

} /* namespace */

#undef LIT_LOADED
#undef LIT_BEFORE
#undef LIT_ATOM32
#undef rgate_dsys_acquire
#undef rgate_dsys_acquire32
#undef rgate_dsys_pair_acquire_first
#undef rgate_dsys_pair_acquire
#undef rgate_dgpu_acquire
#undef rgate_dgpu_acquire32
#undef rgate_dgpu_pair_acquire
#undef rgate_dgpu_and32
#undef rgate_dgpu_or
#undef rgate_dgpu_cas
#undef rgate_dblock_acquire
#undef rgate_dblock_release
#undef rgate_dgpu_add32
#undef rgate_dsys_fence
#undef rgate_dsys_release
#undef rgate_dgpu_release
#undef rgate_dgpu_release32
#undef rgate_dgpu_pair_release
#undef LIT_NAME
#undef LIT_KIND
