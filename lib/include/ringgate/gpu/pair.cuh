/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Two words that are loaded and stored as one, so that one of them says what the other is: of the
 * host's memory, then of the device's. port.cuh beside this has single words.
 */
#ifndef RINGGATE_GPU_PAIR_CUH
#define RINGGATE_GPU_PAIR_CUH

#include <ringgate/gpu/port.cuh>

struct RGATE_DALIGN(16) rgate_dpair {
	uint64_t v[2];
};

/*
 * 16 bytes of the host's memory in one access, which it answers from one line of it: what their
 * writer had stored before the first word that is seen, the second is as new as, or newer.
 * Orders nothing else.
 */
RGATE_DEV struct rgate_dpair rgate_dsys_pair_load(const void *p)
{
	struct rgate_dpair v;

#ifdef __CUDACC__
	asm volatile("{\n\t.reg .b128 both;\n\t"
		     "ld.relaxed.sys.global.b128 both, [%2];\n\t"
		     "mov.b128 {%0, %1}, both;\n\t}"
		     : "=l"(v.v[0]), "=l"(v.v[1]) : "l"(p) : "memory");
#else
	v.v[0] = __atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE);
	v.v[1] = __atomic_load_n((const uint64_t *)p + 1, __ATOMIC_RELAXED);
#endif
	return v;
}

/* Likewise, with the words in the other order */
RGATE_DEV struct rgate_dpair rgate_dsys_pair_load_back(const void *p)
{
#ifdef __CUDACC__
	return rgate_dsys_pair_load(p);
#else
	struct rgate_dpair v;

	v.v[1] = __atomic_load_n((const uint64_t *)p + 1, __ATOMIC_ACQUIRE);
	v.v[0] = __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED);
	return v;
#endif
}

/* As rgate_dsys_pair_load(), and as rgate_dsys_acquire() of the first */
RGATE_DEV struct rgate_dpair rgate_dsys_pair_acquire_first(const void *p)
{
#ifdef __CUDACC__
	struct rgate_dpair v;

	asm volatile("{\n\t.reg .b128 both;\n\t"
		     "ld.acquire.sys.global.b128 both, [%2];\n\t"
		     "mov.b128 {%0, %1}, both;\n\t}"
		     : "=l"(v.v[0]), "=l"(v.v[1]) : "l"(p) : "memory");
	return v;
#else
	return rgate_dsys_pair_load(p);
#endif
}

/* As rgate_dsys_pair_load_back(), and as rgate_dsys_acquire() of the second */
RGATE_DEV struct rgate_dpair rgate_dsys_pair_acquire(const void *p)
{
	struct rgate_dpair v;

#ifdef __CUDACC__
	asm volatile("{\n\t.reg .b128 both;\n\t"
		     "ld.acquire.sys.global.b128 both, [%2];\n\t"
		     "mov.b128 {%0, %1}, both;\n\t}"
		     : "=l"(v.v[0]), "=l"(v.v[1]) : "l"(p) : "memory");
#else
	v = rgate_dsys_pair_load_back(p);
#endif
	return v;
}

/* What the lane next to this one has, of each two that begin with an even one */
RGATE_DEV struct rgate_dpair rgate_dwarp_swap(struct rgate_dpair v)
{
#ifdef __CUDACC__
	v.v[0] = __shfl_xor_sync(0xffffffffU, v.v[0], 1);
	v.v[1] = __shfl_xor_sync(0xffffffffU, v.v[1], 1);
#endif
	return v;
}

/*
 * Of the device
 */

/* Both in one access; orders nothing */
RGATE_DEV struct rgate_dpair rgate_dgpu_pair_load(const void *p)
{
	struct rgate_dpair v;

#ifdef __CUDACC__
	asm volatile("{\n\t.reg .b128 both;\n\t"
		     "ld.relaxed.gpu.global.b128 both, [%2];\n\t"
		     "mov.b128 {%0, %1}, both;\n\t}"
		     : "=l"(v.v[0]), "=l"(v.v[1]) : "l"(p) : "memory");
#else
	v.v[0] = __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED);
	v.v[1] = __atomic_load_n((const uint64_t *)p + 1, __ATOMIC_RELAXED);
#endif
	return v;
}

/* Of both, the second says what the first is. */
RGATE_DEV struct rgate_dpair rgate_dgpu_pair_acquire(const struct rgate_dpair *p)
{
	struct rgate_dpair v;

#ifdef __CUDACC__
	asm volatile("{\n\t.reg .b128 both;\n\t"
		     "ld.acquire.gpu.global.b128 both, [%2];\n\t"
		     "mov.b128 {%0, %1}, both;\n\t}"
		     : "=l"(v.v[0]), "=l"(v.v[1]) : "l"(p) : "memory");
#else
	v.v[1] = __atomic_load_n(&p->v[1], __ATOMIC_ACQUIRE);
	v.v[0] = __atomic_load_n(&p->v[0], __ATOMIC_RELAXED);
#endif
	return v;
}

RGATE_DEV void rgate_dgpu_pair_release(struct rgate_dpair *p, uint64_t first, uint64_t second)
{
#ifdef __CUDACC__
	asm volatile("{\n\t.reg .b128 both;\n\t"
		     "mov.b128 both, {%1, %2};\n\t"
		     "st.release.gpu.global.b128 [%0], both;\n\t}"
		     :: "l"(p), "l"(first), "l"(second) : "memory");
#else
	__atomic_store_n(&p->v[0], first, __ATOMIC_RELAXED);
	__atomic_store_n(&p->v[1], second, __ATOMIC_RELEASE);
#endif
}

/* Of a pair that this thread has loaded: comes after that load, and orders nothing else */
RGATE_DEV void rgate_dgpu_pair_store(struct rgate_dpair *p, uint64_t first, uint64_t second)
{
#ifdef __CUDACC__
	asm volatile("{\n\t.reg .b128 both;\n\t"
		     "mov.b128 both, {%1, %2};\n\t"
		     "st.relaxed.gpu.global.b128 [%0], both;\n\t}"
		     :: "l"(p), "l"(first), "l"(second) : "memory");
#else
	/* two words here: the next one's must not overtake the load of the first */
	rgate_dgpu_pair_release(p, first, second);
#endif
}

#endif
