/* The device "ref": the reference kernels, on one thread. */
#include "backend/host/executor.h"
#include "base/alloc.h"

static const mix_kernel_row *const tables[] = {mix_ref_kernels, NULL};

static const char *unavailable(void) { return NULL; }

static bool same_product(const mix_product *x, const mix_product *y) {
  return mix_host_same_product(tables, x, y);
}
static bool prefers_upcast(const mix_product *product) { return mix_host_prefers_upcast(tables, product); }

static mix_executable *compile(const mix_plan *plan, int threads) {
  (void)threads;
  return mix_host_compile(plan, 1, tables, false);
}

const mix_backend mix_backend_ref = {.name = "ref",
                                     .memory = &mix_host_memory,
                                     .unavailable = unavailable,
                                     .compile = compile,
                                     .run = mix_host_run,
                                     .facts = mix_host_facts,
                                     .kernel_name = mix_host_kernel_name,
                                     .same_product = same_product,
                                     .prefers_upcast = prefers_upcast,
                                     .destroy = mix_host_destroy};
