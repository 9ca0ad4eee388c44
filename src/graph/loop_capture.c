#include "graph/loop_capture.h"

#include "base/alloc.h"

static _Thread_local mix_loop_capture *current;

mix_loop_capture *mix_loop_capture_current(void) { return current; }

mix_loop_capture *mix_loop_capture_set(mix_loop_capture *trace) {
  mix_loop_capture *former = current;
  current = trace;
  return former;
}

static mix_loop_variable *find(const mix_loop_capture *trace, const mix_variable *variable) {
  for (int i = 0; i < trace->count; i++)
    if (trace->variables[i].variable == variable) return &trace->variables[i];
  return NULL;
}

mix_tensor *mix_loop_value(const mix_variable *variable) {
  for (const mix_loop_capture *trace = current; trace; trace = trace->outer) {
    const mix_loop_variable *found = find(trace, variable);
    if (found) return mix_tensor_of(found->value->node, found->value->output);
  }
  return NULL;
}

bool mix_loop_assign(mix_loop_capture *trace, mix_variable *variable, mix_tensor *value) {
  mix_loop_variable *place = find(trace, variable);
  if (!value) return false;
  mix_retain(value);
  if (place) {
    mix_release(place->value);
    place->value = value;
    return true;
  }
  if (!mix_reserve(&trace->variables, &trace->capacity, trace->count + 1, sizeof *trace->variables))
    return mix_release(value), false;
  trace->variables[trace->count++] = (mix_loop_variable){mix_retain(variable), value};
  return true;
}

void mix_loop_capture_clear(mix_loop_capture *trace) {
  for (int i = 0; i < trace->count; i++) {
    mix_release(trace->variables[i].variable);
    mix_release(trace->variables[i].value);
  }
  mix_free(trace->variables);
  trace->variables = NULL;
  trace->count = trace->capacity = 0;
}
