// SPDX-License-Identifier: MIT OR GPL-2.0
/* MPI_Barrier, of processes that mpirun has started */
#include "bench.h"
#include "rival.h"

#ifdef HAVE_MPI

#include <mpi.h>

double mpi_barriers(unsigned int times)
{
	uint64_t began;
	unsigned int i;
	int rank;

	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (i = 0; i < times / 10 + 1; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	began = bench_now_ns();
	for (i = 0; i < times; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	began = bench_now_ns() - began;
	MPI_Finalize();
	return rank ? 0 : (double)began / times;
}

#else

double mpi_barriers(unsigned int times)
{
	(void)times;
	bench_die(0, "mpi: it was not there when this was built");
}

#endif
