/* Training inside a program that uses MPI. Include it after <mpi.h>; mixtape/mixtape.h does not, because it
 * needs the program's MPI:
 *
 *   mix_set_distribution(mix_distribution_mpi_of(MPI_COMM_WORLD));
 *   ... mix_model_fit(...) between the program's own steps ...
 *   mix_set_distribution(NULL);
 *   mix_scope_end(scope);
 *   MPI_Finalize(); */
#ifndef MIXTAPE_MPI_H
#define MIXTAPE_MPI_H

#include <mixtape/distribute.h>

/* The processes of an MPI_Comm: mix_distribution_mpi_from of its Fortran handle. */
#define mix_distribution_mpi_of(communicator) mix_distribution_mpi_from((int)MPI_Comm_c2f(communicator), NULL)

#endif
