/* The part of a program that has MPI, which tests/distribute/local_host.c loads for itself. */
#include <mpi.h>

#include "distribute/local_part.h"
#include <stddef.h>

int local_part_begin(void) {
  int level;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
  return (int)MPI_Comm_c2f(MPI_COMM_WORLD);
}

void local_part_end(void) { MPI_Finalize(); }
