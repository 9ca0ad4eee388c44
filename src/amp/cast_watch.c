/* Follows the casts of a rewritten function through the passes after the rewrite, some of which remove casts.
 * After those passes it reports the rewrite's result to the observer. A cast is identified by its result
 * value, whose number does not change. */
#include "amp/cast_watch.h"

#include "base/alloc.h"
#include "base/error.h"
#include "amp/setting.h"
#include "tensor/shape.h"
#include <string.h>

struct mix_cast_watch {
  mix_amp_result *result;
  const int *inserted, *own;
};

bool mix_cast_watch_begin(mix_ir *ir, mix_amp_result *result, const int *inserted, const int *own) {
  mix_cast_watch *watch = mix_ir_alloc(ir, sizeof *watch);
  if (!watch || !mix_reserve(&ir->held, &ir->held_capacity, ir->held_count + 1, sizeof *ir->held))
    return false;
  ir->held[ir->held_count++] = mix_retain(&result->object);
  *watch = (mix_cast_watch){.result = result, .inserted = inserted, .own = own};
  ir->watch = watch;
  return true;
}

static bool is_cast(const mix_ir *ir, int value) {
  int n = mix_ir_producer(ir, value); /* arbitrary if the node was removed */
  return n < ir->node_count && ir->nodes[n].first_output == value && !ir->nodes[n].dead &&
         ir->nodes[n].op == &mix_op_cast;
}

void mix_cast_watch_pass(mix_ir *ir, const char *pass) {
  const mix_cast_watch *watch = ir->watch;
  if (!watch) return;
  mix_amp_result *r = watch->result;
  for (int c = 0; c < r->cast_count; c++)
    if (!r->cast_removed[c] && !is_cast(ir, watch->inserted[c])) r->cast_removed[c] = pass;
  for (int g = 0; g < r->graph->node_count; g++)
    if (watch->own[g] >= 0 && !r->node_removed[g] && !is_cast(ir, watch->own[g])) r->node_removed[g] = pass;
}

/* One message a line, because the length of a message is limited. */
static void log_report(const mix_amp_result *result) {
  char *report = mix_amp_report(result);
  for (char *line = report, *end; line && *line; line = end) {
    end = line + strcspn(line, "\n");
    mix_log_message(MIX_LOG_DEBUG, "amp: %.*s", (int)(end - line), line);
    end += *end == '\n';
  }
  mix_free(report);
}

void mix_cast_watch_end(mix_ir *ir) {
  const mix_cast_watch *watch = ir->watch;
  if (!watch) return;
  mix_amp_result *r = watch->result;
  ir->watch = NULL;
  for (int c = 0; c < r->cast_count; c++) {
    const mix_ir_value *value = &ir->values[watch->inserted[c]];
    if (!r->cast_removed[c]) r->bytes_cast += (int64_t)mix_value_bytes(value->dtype, value->shape);
  }
  if (mix_verbose("amp")) log_report(r);
  mix_amp_observed(r);
}
