/* A program that links no MPI and loads a part that has it, for itself alone (RTLD_LOCAL), as scripting
 * languages and applications with plug-ins do: PART FLAVOR OTHER. It names the flavour in one way after the
 * other, the right one last, and sums over the ranks. */
#include "distribute/local_part.h"
#include <dlfcn.h>
#include <mixtape/mixtape.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *what) {
  fprintf(stderr, "local_host.c: %s: %s\n", what, mix_error_message());
  return 1;
}

static bool refused(int world, const char *flavor, const char *part) {
  const bool right =
      !mix_distribution_mpi_from(world, flavor) && mix_error() && strstr(mix_error_message(), part);
  if (!right) fail(part);
  mix_error_clear();
  return right;
}

/* Open MPI makes itself visible to all, as it finds its plug-ins by its own names; MPICH does not. */
static bool all_is_refused(int world, const char *other, bool other_is_there, bool visible) {
  if (visible) return refused(world, other, "name that one, or none");
  if (!refused(world, NULL, "or name its flavour (openmpi or mpich) if it was loaded locally")) return false;
  return !other_is_there || refused(world, other, "has not called MPI_Init_thread");
}

static bool sum_is_right(mix_distribution *distribution) {
  if (!distribution || mix_set_distribution(distribution)) return false;
  const double sum = mix_tensor_item(mix_all_reduce(mix_scalar(1, MIX_FLOAT32)));
  return mix_set_distribution(NULL) == MIX_OK && sum == mix_distribution_size(distribution) && sum > 1;
}

int main(int argc, char **argv) {
  int (*begin)(void);
  void (*end)(void);
  void *part = argc == 5 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!part) return fail(argc == 5 ? dlerror() : "PART FLAVOR OTHER OTHER_IS_THERE");
  *(void **)&begin = dlsym(part, "local_part_begin");
  *(void **)&end = dlsym(part, "local_part_end");
  if (!begin || !end) return fail("the part has no functions");
  const int world = begin();
  const bool visible = dlsym(RTLD_DEFAULT, "MPI_Get_library_version") != NULL;
  mix_scope *scope = mix_scope_begin();
  if (!all_is_refused(world, argv[3], !strcmp(argv[4], "yes"), visible)) return 1;
  if (!sum_is_right(mix_distribution_mpi_from(world, argv[2]))) return fail("a named flavour");
  if (visible && !sum_is_right(mix_distribution_mpi_from(world, NULL))) return fail("a visible MPI");
  mix_scope_end(scope);
  end();
  return 0;
}
