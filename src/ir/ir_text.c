/* Writes the ir as text, one node a line. ir_read.c reads it. */
#include "base/alloc.h"
#include "base/number.h"
#include "base/philox.h"
#include "ir/ir.h"
#include "ops/attributes.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Constants of up to WHOLE_ELEMENTS elements are written in full, and uniform ones as one number. Others
 * are replaced by a seed. Those that "constant_fold" can compute with (256 bytes) are always exact. */
enum { WHOLE_ELEMENTS = 64, WHOLE_BYTES = 256, HASHED_BYTES = 1024 };

static size_t element_bytes(mix_dtype dtype, const void *data, int64_t index, unsigned char bytes[8]) {
  size_t size = mix_dtype_size(dtype);
  memset(bytes, 0, 8);
  memcpy(bytes, (const char *)data + (size_t)index * size, size);
  return size;
}

/* The shortest decimal that gives the same bits. NaNs other than the default one are written as bits. */
static void put_element(mix_text *out, mix_dtype dtype, const void *data, int64_t index) {
  unsigned char bytes[8], reread[8] = {0};
  size_t size = element_bytes(dtype, data, index, bytes);
  if (!mix_dtype_is_floating(dtype)) {
    mix_text_put(out, "%" PRId64, mix_load_integer(data, dtype, index));
    return;
  }
  double x = mix_load_double(data, dtype, index);
  mix_store_double(reread, dtype, 0, (double)NAN);
  if (isnan(x) && memcmp(bytes, reread, size) != 0) {
    mix_text_put(out, "0x");
    for (size_t i = size; i-- > 0;) mix_text_put(out, "%02x", (unsigned)bytes[i]);
    return;
  }
  if (!isfinite(x) || dtype == MIX_FLOAT64) {
    mix_text_put_number(out, x);
    return;
  }
  char number[40];
  for (int digits = 1; digits <= 17; digits++) {
    mix_number_write(number, sizeof number, 'g', digits, x);
    mix_store_double(reread, dtype, 0, mix_number_read(number, NULL));
    if (!memcmp(bytes, reread, size)) break;
  }
  mix_text_put(out, "%s", number);
}

static bool all_equal(const unsigned char *data, size_t element, size_t bytes) {
  return bytes >= 2 * element && !memcmp(data, data + element, bytes - element);
}

/* Constants whose first bytes or sizes differ get different seeds. */
static uint32_t seed_of(const unsigned char *data, size_t bytes) {
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (size_t i = 0; i < bytes && i < HASHED_BYTES; i++) hash = (hash ^ data[i]) * 16777619u;
  hash = (hash ^ (uint32_t)bytes) * 16777619u & 0x7fffffffu;
  return hash ? hash : 1;
}

void mix_ir_fill(void *data, mix_dtype dtype, int64_t count, uint64_t seed) {
  mix_philox block = {{0}};
  for (int64_t i = 0; i < count; i++) {
    if (i % 4 == 0) block = mix_philox_block(seed, 0, (uint64_t)i / 4);
    uint32_t word = block.v[i % 4];
    if (mix_dtype_is_floating(dtype))
      mix_store_double(data, dtype, i, (double)word / 2147483648.0 - 1);
    else
      mix_store_integer(data, dtype, i, word >> 31);
  }
}

static void put_constant(mix_text *out, const mix_ir_node *node, const mix_ir_value *value) {
  int64_t count = mix_shape_size(value->shape);
  size_t bytes = mix_value_bytes(value->dtype, value->shape);
  const void *data = mix_ir_map_constant(node);
  mix_text_put(out, "constant ");
  if (node->index)
    mix_text_put(out, "seed %d", node->index);
  else if (value->shape.rank == 0)
    put_element(out, value->dtype, data, 0);
  else if (all_equal(data, mix_dtype_size(value->dtype), bytes)) {
    mix_text_put(out, "all ");
    put_element(out, value->dtype, data, 0);
  } else if (count <= WHOLE_ELEMENTS || bytes <= WHOLE_BYTES) {
    mix_text_put(out, "[");
    for (int64_t i = 0; i < count; i++) {
      if (i) mix_text_put(out, ", ");
      put_element(out, value->dtype, data, i);
    }
    mix_text_put(out, "]");
  } else
    mix_text_put(out, "seed %" PRIu32, seed_of(data, bytes));
  if (data) mix_ir_unmap_constant(node);
}

static int entry_of(const mix_ir *ir, const mix_variable *variable) {
  for (int i = 0; i < ir->variable_count; i++)
    if (ir->variables[i].variable == variable) return ir->variables[i].entry;
  return -1;
}

static void put_variable(mix_text *out, const mix_ir *ir, const mix_variable *variable) {
  int original = variable->original ? entry_of(ir, variable->original) : -1;
  if (original >= 0)
    mix_text_put(out, variable->dtype == variable->rounded ? "copy %%%d" : "copy %%%d rounded %s", original,
                 mix_dtype_name(variable->rounded));
  else {
    mix_text_put(out, "variable ");
    mix_text_put_quoted(out, variable->name);
  }
}

static void put_operation(mix_text *out, const mix_ir_node *node) {
  mix_text_put(out, "%s(", node->op->name);
  for (int i = 0; i < node->input_count; i++) mix_text_put(out, "%s%%%d", i ? ", " : "", node->inputs[i]);
  mix_text_put(out, ")");
  size_t before = out->used;
  mix_text_put(out, " {");
  size_t begin = out->used;
  mix_attributes_put(node->op, node->attributes, out);
  if (out->used == begin && !out->failed)
    out->used = before;
  else
    mix_text_put(out, "}");
}

static void put_graph(mix_text *out, const mix_ir *ir);

/* The body of a loop: its text, each line behind a bar. */
static void put_body(mix_text *out, const mix_ir *body) {
  mix_text inside = {.grows = true};
  put_graph(&inside, body);
  out->failed |= inside.failed;
  for (const char *line = inside.failed ? "" : inside.text, *end; *line; line = end + 1) {
    end = strchr(line, '\n');
    mix_text_put(out, "| %.*s\n", (int)(end - line), line);
  }
  mix_free(inside.text);
}

static void put_node(mix_text *out, const mix_ir *ir, const mix_ir_node *node) {
  for (int o = 0; o < node->output_count; o++) {
    const mix_ir_value *value = &ir->values[node->first_output + o];
    mix_text_put(out, "%s%%%d:%s%s", o ? ", " : "", node->first_output + o, mix_dtype_name(value->dtype),
                 MIX_SHAPE_TEXT(value->shape));
  }
  mix_text_put(out, " = ");
  switch (node->source) {
  case MIX_IR_ARGUMENT: mix_text_put(out, "argument %d", node->index); break;
  case MIX_IR_VARIABLE: put_variable(out, ir, ir->variables[node->index].variable); break;
  case MIX_IR_CONSTANT: put_constant(out, node, &ir->values[node->first_output]); break;
  case MIX_IR_COMPUTED: put_operation(out, node); break;
  }
  if (node->guard >= 0) mix_text_put(out, " if %%%d", node->guard);
  if (node->keep) mix_text_put(out, " keep");
  if (node->scope && *node->scope) {
    mix_text_put(out, " @");
    mix_text_put_word(out, node->scope);
  }
  mix_text_put(out, "\n");
  if (node->program) mix_program_put(node->program, "    ", out);
  if (node->body) put_body(out, node->body);
}

/* In the order of the entry lines, because a reader numbers variables in that order. */
static void put_stores(mix_text *out, const mix_ir *ir) {
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (node->dead || node->source != MIX_IR_VARIABLE) continue;
    const mix_ir_variable *variable = &ir->variables[node->index];
    if (variable->exit == variable->entry) continue;
    mix_text_put(out, "store %%%d ", variable->entry);
    mix_text_put_quoted(out, variable->variable->name);
    mix_text_put(out, " = %%%d", variable->exit);
    if (variable->guard >= 0) mix_text_put(out, " if %%%d", variable->guard);
    mix_text_put(out, "\n");
  }
}

static void put_graph(mix_text *out, const mix_ir *ir) {
  for (int n = 0; n < ir->node_count; n++)
    if (!ir->nodes[n].dead) put_node(out, ir, &ir->nodes[n]);
  put_stores(out, ir);
  mix_text_put(out, "return");
  for (int i = 0; i < ir->result_count; i++) mix_text_put(out, "%s %%%d", i ? "," : "", ir->results[i]);
  mix_text_put(out, "\n");
}

const char *mix_ir_text(mix_ir *ir) {
  mix_text out = {.grows = true};
  if (ir->eager) mix_text_put(&out, "eager\n");
  if (ir->excess_precision) mix_text_put(&out, "excess_precision\n");
  put_graph(&out, ir);
  char *text = out.failed ? NULL : mix_ir_alloc(ir, out.used + 1);
  if (text) memcpy(text, out.text, out.used);
  mix_free(out.text);
  return text;
}
