/* In place of backend/xla/: devices that can never be chosen. */
#include "backend/backend.h"
#include "backend/xla/emit.h"
#include "base/features.h"

static const char *unavailable(void) {
  static _Thread_local char reason[160];
  mix_absent_reason("xla", reason, sizeof reason);
  return reason;
}
static bool choose(const char *which, const char *source) { return mix_fail_absent(source, "xla"); }

const mix_backend mix_backend_xla = {.name = "xla", .choose = choose, .unavailable = unavailable};
const mix_backend mix_backend_cuda = {.name = "cuda", .choose = choose, .unavailable = unavailable};

bool mix_cuda_set_target(const char *target) { return mix_fail_absent("compile", "xla"); }
void mix_cuda_describe_target(mix_text *text) {}
char *mix_xla_emit(mix_ir *graph, mix_xla_signature *signature) {
  return mix_fail_absent("the graph in StableHLO", "xla");
}
