/* In place of distribute/plugin.c: no transport loads, so that nothing else of distribute/ begins. */
#include "base/features.h"
#include "distribute/plugin.h"

const mix_transport *mix_mpi_plugin(void) { return mix_fail_absent("distribution_mpi", "mpi"); }
const mix_transport *mix_mpi_plugin_of_host(const char *flavor) {
  return mix_fail_absent("distribution_mpi_from", "mpi");
}
