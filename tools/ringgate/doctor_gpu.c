// SPDX-License-Identifier: MIT OR GPL-2.0
/* Can a GPU be the consumer of rings here? */
#include <errno.h>

#include "doctor.h"
#include "gpu_lib.h"

/* The runtime itself is asked: it knows what it needs. */
static void check_open(struct check *k, const struct gpu_lib *l)
{
	struct rgate_gpu *gpu = NULL;
	int err = l->open(&gpu, NULL);

	if (!err) {
		check_set(k, CHECK_OK, "libringgate-gpu can use the first GPU");
		l->close(gpu);
		return;
	}
	check_set(k, CHECK_WARN, "libringgate-gpu is there, and cannot use a GPU: %s",
		  l->error(NULL));
	check_fix(k, "%s", err == -ENODEV ? "see CUDA; in a container: start it with --gpus=all" :
		  err == -EOPNOTSUPP ? "a GPU of compute capability 8.0 or more" :
		  "nvidia-smi (says what is wrong with it)");
}

void doctor_gpu(struct checks *c)
{
	struct check *k = check_add(c, "GPU consumer", NEED_NOTHING);
	struct gpu_lib l;
	char why[200];

	if (gpu_lib_load(&l, why, sizeof(why))) {
		check_set(k, CHECK_WARN, "%s: needed for GPU consumers only", why);
		check_fix(k, "make gpu && make install, where nvcc is");
		return;
	}
	check_open(k, &l);
	gpu_lib_unload(&l);
}
