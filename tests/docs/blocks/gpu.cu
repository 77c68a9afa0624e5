/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The program of gpu.rst as it stands there (BLOCK_1 and BLOCK_2): a datagram with the float
 * 21 comes over loopback, and its double is printed. Exit status 77 where there is no GPU.
 */
#include BLOCK_1

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int send_float(struct rgate_source *src, float v)
{
	struct sockaddr_storage to;
	socklen_t len = sizeof(to);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || rgate_source_addr(src, (struct sockaddr *)&to, &len))
		return -1;
	return sendto(fd, &v, sizeof(v), 0, (struct sockaddr *)&to, len) == sizeof(v) ? 0 : -1;
}

int main()
{
	struct rgate_gpu_start_opts o = {};
	struct sockaddr_in local = {};
	const struct sockaddr *addr = (struct sockaddr *)&local;
	const socklen_t len = sizeof(local);
	struct rgate_source *src;
	struct rgate_ring *ring;
	struct rgate_gpu *gpu;
	float result = 0;
	void *results;
	int err, i;

	local.sin_family = AF_INET;
	local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (cudaMalloc(&results, 65536 * sizeof(float)) ||
	    cudaMemset(results, 0, 65536 * sizeof(float)))
		return 77;
#include BLOCK_2
	if (!err)
		err = send_float(src, 21);
	for (i = 0; i < 100 && !err && !result; i++) {
		usleep(100000);
		err = cudaMemcpy(&result, results, sizeof(result), cudaMemcpyDeviceToHost);
	}
	printf("%g, %s\n", result, rgate_strerror("rgate_gpu_", err));
	return err || result != 42;
}
