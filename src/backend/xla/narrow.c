/* Arguments in float32 that a graph does nothing with but round them to 16 bits, as layers under a 16-bit
 * policy do: those of the host are rounded there, with the same bits, and half of the bytes are copied.
 * Arguments that are on the device stay as they are, so that a graph may have two programs, each compiled
 * when it is needed first. */
#include "backend/xla/xla.h"

#include "backend/cpu/simd/round_floats.h"
#include "base/alloc.h"
#include "base/error.h"
#include "ir/argument_cast.h"
#include "tensor/memory_inside.h"
#include "tensor/shape.h"

typedef struct narrowed {
  int index, value; /* of the argument */
  mix_dtype dtype;
  mix_memory *place; /* of the rounded bytes: mix_memory_reuse */
} narrowed;

struct mix_executable {
  mix_ir *ir;
  mix_xla_program *wide, *narrow; /* NULL: not needed yet */
  int count;
  narrowed *arguments;
  mix_memory **bound; /* arguments of the run that begins */
};

/* ---- which arguments ---- */

static void find(mix_executable *e, const mix_ir_node *node) {
  const int value = node->first_output;
  const mix_ir_value *v = &e->ir->values[value];
  if (mix_value_bytes(v->dtype, v->shape) < MIX_XLA_LARGE_COPY) return;
  const mix_dtype dtype = mix_ir_rounding_of_argument(e->ir, node->index);
  if (dtype == MIX_DTYPE_NONE) return;
  e->arguments[e->count++] = (narrowed){.index = node->index, .value = value, .dtype = dtype};
}

static bool find_all(mix_executable *e) {
  const size_t arguments = (size_t)e->ir->argument_count + 1;
  e->arguments = mix_calloc(arguments, sizeof *e->arguments);
  e->bound = mix_calloc(arguments, sizeof *e->bound);
  if (!e->arguments || !e->bound) return false;
  for (int n = 0; n < e->ir->node_count; n++) {
    const mix_ir_node *node = &e->ir->nodes[n];
    if (!node->dead && node->source == MIX_IR_ARGUMENT) find(e, node);
  }
  return true;
}

/* ---- programs ---- */

static void set_dtypes(mix_executable *e, bool narrow) {
  for (int i = 0; i < e->count; i++)
    e->ir->values[e->arguments[i].value].dtype = narrow ? e->arguments[i].dtype : MIX_FLOAT32;
}

static mix_xla_program *wide_program(mix_executable *e) {
  return e->wide ? e->wide : (e->wide = mix_xla_program_new(e->ir));
}

static mix_xla_program *narrow_program(mix_executable *e) {
  if (e->narrow) return e->narrow;
  set_dtypes(e, true);
  e->narrow = mix_xla_program_new(e->ir);
  set_dtypes(e, false);
  return e->narrow;
}

/* A graph with two programs is compiled in its first run, which tells which of them; for a GPU that is not
 * here both are. */
mix_executable *mix_xla_compile(mix_ir *ir, const mix_context *context) {
  mix_executable *e = mix_failed() ? NULL : mix_calloc(1, sizeof *e);
  if (!e) return NULL;
  e->ir = ir;
  bool good = find_all(e);
  if (good && (!e->count || mix_xla_plugin()->topology)) good = wide_program(e);
  if (good && e->count && mix_xla_plugin()->topology) good = narrow_program(e);
  if (good) return e;
  mix_xla_destroy(e);
  return NULL;
}

void mix_xla_destroy(mix_executable *e) {
  if (e->wide) mix_xla_program_free(e->wide);
  if (e->narrow) mix_xla_program_free(e->narrow);
  for (int i = 0; i < e->count; i++) mix_memory_end_reuse(&e->arguments[i].place);
  mix_free(e->arguments);
  mix_free(e->bound);
  mix_free(e);
}

/* ---- runs ---- */

static bool are_on_the_host(const mix_executable *e, const mix_bindings *bindings) {
  for (int i = 0; i < e->count; i++)
    if (bindings->arguments[e->arguments[i].index]->device != &mix_host_memory) return false;
  return true;
}

static mix_memory *rounded(narrowed *argument, mix_memory *memory, int64_t count) {
  mix_memory *place = mix_memory_reuse(&argument->place, sizeof(uint16_t) * (size_t)count);
  const float *from = place ? mix_memory_map(memory, MIX_MAP_READ) : NULL;
  uint16_t *to = from ? mix_memory_map(place, MIX_MAP_WRITE) : NULL;
  if (to) mix_round_floats(to, from, argument->dtype, count), mix_memory_unmap(place);
  if (from) mix_memory_unmap(memory);
  return to ? place : NULL;
}

mix_ticket mix_xla_enqueue(mix_executable *e, const mix_bindings *bindings) {
  if (mix_failed() || !mix_xla_usable()) return 0;
  const bool narrow = e->count && are_on_the_host(e, bindings);
  mix_xla_program *program = narrow ? narrow_program(e) : wide_program(e);
  if (!program) return 0;
  if (!narrow) return mix_xla_program_enqueue(program, bindings);
  mix_bindings own = *bindings;
  own.arguments = e->bound;
  for (int i = 0; i < e->ir->argument_count; i++) e->bound[i] = bindings->arguments[i];
  for (int i = 0; i < e->count; i++) {
    narrowed *argument = &e->arguments[i];
    const int64_t count = mix_shape_size(e->ir->values[argument->value].shape);
    if (!(e->bound[argument->index] = rounded(argument, e->bound[argument->index], count))) return 0;
  }
  return mix_xla_program_enqueue(program, &own);
}
