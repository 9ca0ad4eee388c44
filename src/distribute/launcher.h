/* The launcher that started this process: mpirun or srun. */
#pragma once

#include <stdbool.h>

/* Was this process started by mpirun or srun? */
bool mix_mpi_launched(void);
/* Was it started with others by srun, which no MPI was asked of? */
bool mix_mpi_is_missing(void);
/* The rank of this process as the launcher's environment has it, before MPI starts; "?": unknown. */
const char *mix_mpi_launched_rank(void);
/* The number of processes that the launcher started; 0: unknown. */
int mix_mpi_launched_ranks(void);
/* Flushes standard output and error and leaves the launcher time to pass on what was printed. Call it before
 * a rank ends the job. */
void mix_wait_for_launcher(void);
/* For a rank that MPI does not start on, before its process ends: MPICH's launcher would let the others wait
 * for it. Includes mix_wait_for_launcher. */
void mix_end_job_without_mpi(int code);
/* The flavour whose launcher it is: openmpi or mpich; NULL: none. */
const char *mix_mpi_launched_flavor(void);
