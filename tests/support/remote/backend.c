/* The backend "remote", and how a process gets it. */
#include "support/remote/remote.h"

#include "backend/host/host.h"
#include <mixtape/device.h>
#include <stdlib.h>
#include <string.h>

/* What suits processors alone is left out. */
static const char *const passes[] = {"amp",
                                     "expand_einsum",
                                     "remove_identities",
                                     "simplify_casts",
                                     "fold_transposes",
                                     "sink_broadcasts",
                                     "constant_fold",
                                     "cse",
                                     "dce",
                                     "select_to_predicate",
                                     "round_weights",
                                     "cache_weight_casts",
                                     "expand_add_n",
                                     "row_moments",
                                     "fuse",
                                     "fuse_epilogues",
                                     "excess_precision",
                                     "inplace",
                                     "memory_plan",
                                     NULL};

static const mix_kernel_row *const tables[] = {mix_ref_kernels, NULL};

static size_t free_bytes(void) { return (size_t)1 << 30; }

static void describe(const mix_context *context, mix_text *text) {
  (void)context;
  mix_text_put(text, "remote: the scalar reference behind a queue, for tests\n");
}

mix_backend mix_backend_remote = {.name = "remote",
                                  .replaces_variables = true,
                                  .memory = &mix_remote_memory,
                                  .host = &mix_backend_ref,
                                  .own = tables,
                                  .passes = passes,
                                  MIX_HOST_ANSWERS,
                                  .compile = mix_remote_compile,
                                  .destroy = mix_remote_destroy,
                                  .enqueue = mix_remote_run,
                                  .wait = mix_remote_wait,
                                  .facts = mix_remote_facts,
                                  .kernel_name = mix_remote_kernel_name,
                                  .describe = describe};

void mix_remote_add(void) {
  const char *text = getenv("MIXTAPE_REMOTE_SEED");
  const uint64_t seed = text ? strtoull(text, NULL, 10) : 0;
  mix_remote_set_seed(seed);
  /* Small evaluations: none on the host, scalars, or most of the tests'. */
  mix_backend_remote.host_evaluation_bytes = (size_t[]){0, 64, 4096}[seed % 3];
  /* Arrays of a fit stay on the device or on the host. */
  mix_backend_remote.free_bytes = seed % 3 == 1 ? NULL : free_bytes;
  mix_backend_add(&mix_backend_remote);
}

/* Leaves nothing in the queue. */
static void finish(void) { mix_remote_wait(UINT64_MAX); }

__attribute__((constructor)) static void start(void) {
  const char *device = getenv("MIXTAPE_TEST_DEVICE");
  if (!device || strcmp(device, "remote")) return;
  mix_remote_add();
  mix_set_device("remote");
  atexit(finish);
}
