/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What differs between a GPU and a CPU, so that the headers beside this one compile
 * for both: on the GPU a warp has 32 lanes, on a CPU, where the ring's device code is
 * tested, it has one.
 *
 * Memory of the host ("sys" scope) is loaded and stored here, never read-modify-
 * written: over PCIe a GPU has no native atomics on it. Memory of the device ("gpu"
 * scope) has all of them.
 */
#ifndef RINGGATE_GPU_PORT_CUH
#define RINGGATE_GPU_PORT_CUH

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__

#define RGATE_DEV	static __device__ __forceinline__
#define RGATE_DWARP	32U
#define RGATE_DUNROLL	_Pragma("unroll")
/* Loops over what is one a lane have one round: unrolled they would be code and nothing else */
#define RGATE_DROLL	_Pragma("unroll 1")

#define RGATE_DALIGN(n)	__align__(n)

struct __align__(16) rgate_dvec {
	uint32_t w[4];
};

#else

#include <time.h>

#define RGATE_DEV	static inline __attribute__((unused))
#define RGATE_DWARP	1U
#define RGATE_DUNROLL
#define RGATE_DROLL
#define RGATE_DALIGN(n)	__attribute__((aligned(n)))

struct rgate_dvec {
	uint32_t w[4];
} __attribute__((aligned(16), may_alias));

#endif

/* This lane's number in its warp */
RGATE_DEV uint32_t rgate_dlane(void)
{
#ifdef __CUDACC__
	uint32_t v;

	asm("mov.u32 %0, %%laneid;" : "=r"(v));
	return v;
#else
	return 0;
#endif
}

RGATE_DEV void rgate_dwarp_sync(void)
{
#ifdef __CUDACC__
	__syncwarp();
#endif
}

/* The bits that any lane has set */
RGATE_DEV uint32_t rgate_dwarp_or(uint32_t v)
{
#ifdef __CUDACC__
	return __reduce_or_sync(0xffffffffU, v);
#else
	return v;
#endif
}

/* The sum over the lanes */
RGATE_DEV uint32_t rgate_dwarp_add(uint32_t v)
{
#ifdef __CUDACC__
	return __reduce_add_sync(0xffffffffU, v);
#else
	return v;
#endif
}

/* What lane 0 has */
RGATE_DEV uint64_t rgate_dwarp_first(uint64_t v)
{
#ifdef __CUDACC__
	return __shfl_sync(0xffffffffU, v, 0);
#else
	return v;
#endif
}

/* What lane @from has, which is the same number in each */
RGATE_DEV uint32_t rgate_dwarp_from(uint32_t v, uint32_t from)
{
#ifdef __CUDACC__
	return __shfl_sync(0xffffffffU, v, (int)from);
#else
	(void)from;
	return v;
#endif
}

/* How many bits above the highest one are 0; 32: all */
RGATE_DEV uint32_t rgate_dzeros(uint32_t mask)
{
#ifdef __CUDACC__
	return (uint32_t)__clz((int)mask);
#else
	return mask ? (uint32_t)__builtin_clz(mask) : 32;
#endif
}

/* Index of the lowest bit that is 0; 32: none */
RGATE_DEV uint32_t rgate_dones(uint32_t mask)
{
	if (mask == 0xffffffffU)
		return 32;
#ifdef __CUDACC__
	return (uint32_t)__ffs((int)~mask) - 1;
#else
	return (uint32_t)__builtin_ctz(~mask);
#endif
}

RGATE_DEV uint32_t rgate_dcount(uint32_t mask)
{
#ifdef __CUDACC__
	return (uint32_t)__popc(mask);
#else
	return (uint32_t)__builtin_popcount(mask);
#endif
}

/*
 * Words of the host
 */

/* Everything its writer had written before a release of it is visible after this */
RGATE_DEV uint64_t rgate_dsys_acquire(const void *p)
{
#ifdef __CUDACC__
	uint64_t v;

	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
#else
	return __atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE);
#endif
}

RGATE_DEV uint32_t rgate_dsys_acquire32(const void *p)
{
#ifdef __CUDACC__
	uint32_t v;

	asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
#else
	return __atomic_load_n((const uint32_t *)p, __ATOMIC_ACQUIRE);
#endif
}

/* Never torn, orders nothing */
RGATE_DEV uint64_t rgate_dsys_load(const void *p)
{
#ifdef __CUDACC__
	uint64_t v;

	asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
#else
	return __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED);
#endif
}

/*
 * All that this thread has read and written, and what it knows of others by barriers
 * and acquires, comes before the store.
 */
RGATE_DEV void rgate_dsys_release(void *p, uint64_t v)
{
#ifdef __CUDACC__
	asm volatile("st.release.sys.global.u64 [%0], %1;" :: "l"(p), "l"(v) : "memory");
#else
	__atomic_store_n((uint64_t *)p, v, __ATOMIC_RELEASE);
#endif
}

RGATE_DEV void rgate_dsys_store(void *p, uint64_t v)
{
#ifdef __CUDACC__
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;" :: "l"(p), "l"(v) : "memory");
#else
	__atomic_store_n((uint64_t *)p, v, __ATOMIC_RELAXED);
#endif
}

/* Orders what comes before against what comes after, for the whole system */
RGATE_DEV void rgate_dsys_fence(void)
{
#ifdef __CUDACC__
	asm volatile("fence.acq_rel.sys;" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_ACQ_REL);
#endif
}

/*
 * Words of the device
 */

RGATE_DEV uint64_t rgate_dgpu_acquire(const uint64_t *p)
{
#ifdef __CUDACC__
	uint64_t v;

	asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
#else
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
#endif
}

RGATE_DEV uint32_t rgate_dgpu_acquire32(const uint32_t *p)
{
#ifdef __CUDACC__
	uint32_t v;

	asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
#else
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
#endif
}

RGATE_DEV uint64_t rgate_dgpu_load(const uint64_t *p)
{
#ifdef __CUDACC__
	uint64_t v;

	asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
#else
	return __atomic_load_n(p, __ATOMIC_RELAXED);
#endif
}

RGATE_DEV uint32_t rgate_dgpu_load32(const uint32_t *p)
{
#ifdef __CUDACC__
	uint32_t v;

	asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
#else
	return __atomic_load_n(p, __ATOMIC_RELAXED);
#endif
}

RGATE_DEV void rgate_dgpu_release(uint64_t *p, uint64_t v)
{
#ifdef __CUDACC__
	asm volatile("st.release.gpu.global.u64 [%0], %1;" :: "l"(p), "l"(v) : "memory");
#else
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
#endif
}

RGATE_DEV void rgate_dgpu_store(uint64_t *p, uint64_t v)
{
#ifdef __CUDACC__
	asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(p), "l"(v) : "memory");
#else
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
#endif
}

/* After a fence, which makes a release of it; on a CPU the thread sanitizer knows no fences */
RGATE_DEV void rgate_dgpu_store_fenced(uint64_t *p, uint64_t v)
{
#ifdef __CUDACC__
	rgate_dgpu_store(p, v);
#else
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
#endif
}

RGATE_DEV void rgate_dgpu_store32(uint32_t *p, uint32_t v)
{
#ifdef __CUDACC__
	asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory");
#else
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
#endif
}

RGATE_DEV void rgate_dgpu_release32(uint32_t *p, uint32_t v)
{
#ifdef __CUDACC__
	asm volatile("st.release.gpu.global.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory");
#else
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
#endif
}

/* Adds, returns what was there; relaxed */
RGATE_DEV uint64_t rgate_dgpu_add(uint64_t *p, uint64_t v)
{
#ifdef __CUDACC__
	uint64_t old;

	asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
		     : "=l"(old) : "l"(p), "l"(v) : "memory");
	return old;
#else
	return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
#endif
}

/* Adds, returns what was there; acquires and releases */
RGATE_DEV uint32_t rgate_dgpu_add32(uint32_t *p, uint32_t v)
{
#ifdef __CUDACC__
	uint32_t old;

	asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
		     : "=r"(old) : "l"(p), "r"(v) : "memory");
	return old;
#else
	return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL);
#endif
}

/* Leaves the bits of @v, returns what was there; acquires */
RGATE_DEV uint32_t rgate_dgpu_and32(uint32_t *p, uint32_t v)
{
#ifdef __CUDACC__
	uint32_t old;

	asm volatile("atom.acquire.gpu.global.and.b32 %0, [%1], %2;"
		     : "=r"(old) : "l"(p), "r"(v) : "memory");
	return old;
#else
	return __atomic_fetch_and(p, v, __ATOMIC_ACQUIRE);
#endif
}

/* Sets the bits of @v, returns what was there; acquires */
RGATE_DEV uint64_t rgate_dgpu_or(uint64_t *p, uint64_t v)
{
#ifdef __CUDACC__
	uint64_t old;

	asm volatile("atom.acquire.gpu.global.or.b64 %0, [%1], %2;"
		     : "=l"(old) : "l"(p), "l"(v) : "memory");
	return old;
#else
	return __atomic_fetch_or(p, v, __ATOMIC_ACQUIRE);
#endif
}

/* Puts @v where @old is; returns what was there; acquires */
RGATE_DEV uint64_t rgate_dgpu_cas(uint64_t *p, uint64_t old, uint64_t v)
{
#ifdef __CUDACC__
	uint64_t was;

	asm volatile("atom.acquire.gpu.global.cas.b64 %0, [%1], %2, %3;"
		     : "=l"(was) : "l"(p), "l"(old), "l"(v) : "memory");
	return was;
#else
	__atomic_compare_exchange_n(p, &old, v, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
	return old;
#endif
}

/*
 * Words of a block, in its shared memory
 */

RGATE_DEV uint32_t rgate_dblock_acquire(const uint32_t *p)
{
#ifdef __CUDACC__
	uint32_t v;

	asm volatile("ld.acquire.cta.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
#else
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
#endif
}

RGATE_DEV void rgate_dblock_release(uint32_t *p, uint32_t v)
{
#ifdef __CUDACC__
	asm volatile("st.release.cta.u32 [%0], %1;" :: "l"(p), "r"(v) : "memory");
#else
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
#endif
}

/*
 * 16 bytes of a slot, read once. Evict-first is for the link's sake: on an H200 a kernel
 * that reads host memory by it moves 52 GB/s, by plain loads 51, by L1::no_allocate 26.
 * The line may stay in this processor's L1 cache: only after an acquire are the bytes of
 * the next lap sure to be read anew.
 */
RGATE_DEV struct rgate_dvec rgate_dload16(const void *p)
{
#ifdef __CUDACC__
	struct rgate_dvec v;

	asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
		     : "l"(p) : "memory");
	return v;
#else
	return *(const struct rgate_dvec *)p;
#endif
}

/* A number that threads which run at the same time have different ones of, most of them */
RGATE_DEV uint32_t rgate_dsalt(void)
{
#ifdef __CUDACC__
	uint32_t sm, warp;

	asm("mov.u32 %0, %%smid;" : "=r"(sm));
	asm("mov.u32 %0, %%warpid;" : "=r"(warp));
	return (sm * 64 + warp) * 32 + rgate_dlane();
#else
	static __thread char mine;

	return (uint32_t)((uintptr_t)&mine >> 6);
#endif
}

/* ns of a clock that goes on; its origin means nothing */
RGATE_DEV uint64_t rgate_dnow(void)
{
#ifdef __CUDACC__
	uint64_t v;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(v));
	return v;
#else
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
#endif
}

/* Lets about @ns pass (a hint) */
RGATE_DEV void rgate_dpause(uint32_t ns)
{
#ifdef __CUDACC__
	if (ns)
		__nanosleep(ns);
#elif defined(RGATE_DPAUSE)
	RGATE_DPAUSE(ns);	/* a test's own */
#else
	(void)ns;
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
#endif
}

#endif
