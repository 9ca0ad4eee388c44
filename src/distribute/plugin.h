/* The plug-in of the MPI flavour that started this process. */
#pragma once

#include "distribute/transport.h"

/* Loads MIXTAPE_MPI_PLUGIN, else the plug-in of the flavour that the environment shows, from the folders of
 * this build or installation. NULL with the error recorded. The plug-in stays loaded. */
const mix_transport *mix_mpi_plugin(void);
/* The same for the MPI that the program has loaded: `flavor` is openmpi or mpich; NULL: it is asked. */
const mix_transport *mix_mpi_plugin_of_host(const char *flavor);
