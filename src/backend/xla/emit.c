/* The module: parameters, statements of the nodes, results; and which op has which form. */
#include "backend/xla/emit_inside.h"

#include "base/alloc.h"
#include "base/error.h"
#include "ops/debug_ops.h"
#include "tensor/shape.h"

/* Larger constants are parameters: the text would have two characters a byte. */
enum { LARGEST_CONSTANT = 1 << 16 };

/* ---- the forms ---- */

typedef struct form {
  const mix_op *op;
  mix_emit_node *emit;
} form;

#define FORM(name, kernel, form, ...) {&mix_op_##name, mix_emit_##form},
/* Of what is not element-wise. */
static const form forms[] = {MIX_KERNEL_OPS(FORM){&mix_op_scan, mix_emit_scan},
                             {&mix_op_check_numerics, mix_emit_check_numerics}};

static mix_emit_node *form_of(const mix_op *op) {
  if (op->flags & (MIX_OP_ELEMENTWISE | MIX_OP_READ)) return mix_emit_elementwise;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (forms[i].op == op) return forms[i].emit;
  return NULL;
}

bool mix_xla_supports(const mix_op *op, mix_dtype dtype) { return mix_dtype_size(dtype) && form_of(op); }

static bool refuse(const mix_ir *ir, const mix_ir_node *node) {
  const mix_dtype dtype = ir->values[node->input_count ? node->inputs[0] : node->first_output].dtype;
  return mix_fail_unsupported(
      "%s of %s%s%s: it has no form in StableHLO%s; try mix_set_device(\"cpu\")", node->op->name,
      mix_dtype_name(dtype), node->scope ? " in " : "", node->scope ? node->scope : "",
      node->program || (node->op->flags & MIX_OP_PROGRAM) ? ", which takes graphs before the pass fuse" : "");
}

/* ---- graphs ---- */

static void put_title(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_line(&e->w);
  mix_text_put(&e->w.text, "// %s", node->op->name);
  if (node->scope) mix_text_put(&e->w.text, " @");
  if (node->scope) mix_text_put_word(&e->w.text, node->scope);
  mix_text_put(&e->w.text, "\n");
}

static bool emit_constant(mix_emitter *e, const mix_ir_node *node) {
  const void *data = mix_ir_map_constant(node);
  if (!data) return false;
  e->values[node->first_output] = mix_hlo_constant(&e->w, mix_emit_type(e, node, 0), data);
  mix_ir_unmap_constant(node);
  return true;
}

static bool emit_node(mix_emitter *e, const mix_ir_node *node) {
  if (node->source == MIX_IR_CONSTANT)
    return e->values[node->first_output].number >= 0 || emit_constant(e, node);
  if (node->source) return true;
  mix_emit_node *emit = form_of(node->op);
  if (!emit || node->program || node->guard >= 0) return refuse(e->ir, node);
  e->node = node;
  put_title(e, node);
  emit(e, node);
  return !e->failed && !e->w.text.failed;
}

static bool emit_graph(mix_emitter *e, const mix_ir *ir) {
  for (int n = 0; n < ir->node_count; n++)
    if (!ir->nodes[n].dead && !emit_node(e, &ir->nodes[n])) return false;
  return true;
}

/* ---- the signature ---- */

static size_t bytes_of(const mix_ir *ir, const mix_ir_node *node) {
  const mix_ir_value *value = &ir->values[node->first_output];
  return mix_value_bytes(value->dtype, value->shape);
}

static void add_parameter(mix_emitter *e, mix_xla_parameter parameter, int value) {
  mix_xla_signature *s = e->signature;
  const mix_hlo defined = mix_hlo_new(&e->w, parameter.type);
  if (value >= 0) e->values[value] = defined;
  if (parameter.kind == MIX_XLA_ERROR) e->error = defined, s->error_parameter = s->parameter_count;
  if (parameter.result >= 0) s->results[s->result_count++] = parameter.type;
  s->parameters[s->parameter_count++] = parameter;
}

static void add_argument(mix_emitter *e, const mix_ir_node *node) {
  const mix_xla_parameter parameter = {
      .kind = MIX_XLA_ARGUMENT, .type = mix_emit_type(e, node, 0), .index = node->index, .result = -1};
  add_parameter(e, parameter, node->first_output);
}

/* In the order of their numbers, whatever that of their nodes. */
static void add_arguments(mix_emitter *e, const mix_ir *ir) {
  for (int i = 0; i < ir->argument_count; i++)
    for (int n = 0; n < ir->node_count; n++) {
      const mix_ir_node *node = &ir->nodes[n];
      if (!node->dead && node->source == MIX_IR_ARGUMENT && node->index == i) add_argument(e, node);
    }
}

static void add_large_constants(mix_emitter *e, const mix_ir *ir) {
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (node->dead || node->source != MIX_IR_CONSTANT || bytes_of(ir, node) <= LARGEST_CONSTANT) continue;
    const mix_xla_parameter parameter = {.kind = MIX_XLA_CONSTANT,
                                         .type = mix_emit_type(e, node, 0),
                                         .index = n,
                                         .constant = node,
                                         .result = -1};
    add_parameter(e, parameter, node->first_output);
  }
}

static bool is_assigned(const mix_ir_variable *variable) { return variable->exit != variable->entry; }

static bool make_signature(mix_emitter *e, mix_ir *ir) {
  mix_xla_signature *s = e->signature;
  const int most = ir->node_count + ir->variable_count + ir->result_count + 1;
  const bool checks = mix_emit_checks(ir);
  bool assigns = false;
  *s = (mix_xla_signature){.error_parameter = -1, .error_result = -1};
  s->parameters = mix_ir_array(ir, most, sizeof *s->parameters);
  s->results = mix_ir_array(ir, most, sizeof *s->results);
  if (!s->parameters || !s->results) return false;
  for (int r = 0; r < ir->result_count; r++) s->results[s->result_count++] = ir->values[ir->results[r]].type;
  add_arguments(e, ir);
  for (int i = 0; i < ir->variable_count; i++) {
    const mix_ir_variable *variable = &ir->variables[i];
    assigns |= is_assigned(variable);
    add_parameter(e,
                  (mix_xla_parameter){.kind = MIX_XLA_VARIABLE,
                                      .type = ir->values[variable->entry].type,
                                      .index = i,
                                      .result = is_assigned(variable) ? s->result_count : -1},
                  variable->entry);
  }
  add_large_constants(e, ir);
  if (checks) s->error_result = s->result_count;
  if (checks || assigns)
    add_parameter(e,
                  (mix_xla_parameter){.kind = MIX_XLA_ERROR,
                                      .type = {MIX_INT64, MIX_SHAPE(MIX_XLA_ERROR_WORDS)},
                                      .result = s->error_result},
                  -1);
  return true;
}

/* ---- main ---- */

static void put_header(mix_emitter *e, const mix_ir *ir) {
  const mix_xla_signature *s = e->signature;
  mix_text *text = &e->w.text;
  mix_text_put(text, "module @");
  for (const char *c = ir->name ? ir->name : "graph"; *c; c++)
    mix_text_put(text, "%c", (*c | 32) >= 'a' && (*c | 32) <= 'z' ? *c : '_');
  mix_text_put(text, " {\n  func.func public @main(");
  for (int i = 0; i < s->parameter_count; i++) {
    mix_text_put(text, "%s%%%d: ", i ? ", " : "", i);
    mix_hlo_put_type(&e->w, s->parameters[i].type);
    if (s->parameters[i].result >= 0)
      mix_text_put(text, " {tf.aliasing_output = %d : i32}", s->parameters[i].result);
  }
  mix_text_put(text, ") -> (");
  for (int i = 0; i < s->result_count; i++) {
    if (i) mix_text_put(text, ", ");
    mix_hlo_put_type(&e->w, s->results[i]);
  }
  mix_text_put(text, ") {\n");
}

/* A run with an error, its own or a former one, changes no variable. */
static mix_hlo new_value(mix_emitter *e, const mix_ir_variable *variable, mix_hlo good) {
  const mix_hlo old = e->values[variable->entry];
  mix_hlo new = e->values[variable->exit];
  if (variable->guard >= 0) new = mix_hlo_select(&e->w, e->values[variable->guard], new, old);
  return mix_hlo_select(&e->w, good, new, old);
}

static mix_hlo no_error(mix_emitter *e) {
  const mix_hlo check = mix_hlo_reshape(
      &e->w, mix_hlo_slice(&e->w, e->error, (const int64_t[]){0}, (const int64_t[]){1}, NULL), MIX_SCALAR);
  return mix_hlo_compare(&e->w, "EQ", check, mix_hlo_like(&e->w, check, 0));
}

static bool put_results(mix_emitter *e, mix_ir *ir) {
  const mix_xla_signature *s = e->signature;
  mix_hlo *results = mix_ir_array(ir, s->result_count + 1, sizeof *results);
  mix_hlo good = {0};
  int count = 0;
  if (!results) return false;
  for (int r = 0; r < ir->result_count; r++) results[count++] = e->values[ir->results[r]];
  for (int i = 0; i < ir->variable_count; i++) {
    if (!is_assigned(&ir->variables[i])) continue;
    if (count == ir->result_count) good = no_error(e);
    results[count++] = new_value(e, &ir->variables[i], good);
  }
  if (s->error_result >= 0) results[count++] = e->error;
  mix_text_put(&e->w.text, "    return");
  for (int i = 0; i < count; i++) {
    mix_text_put(&e->w.text, i ? ", " : " ");
    mix_hlo_put(&e->w, results[i]);
  }
  for (int i = 0; i < count; i++) {
    mix_text_put(&e->w.text, i ? ", " : " : ");
    mix_hlo_put_type(&e->w, results[i].type);
  }
  mix_text_put(&e->w.text, "\n  }\n}\n");
  return true;
}

char *mix_xla_emit(mix_ir *ir, mix_xla_signature *signature) {
  mix_emitter e = {
      .w = {.text = {.grows = true}, .indent = 2}, .root = ir, .signature = signature, .graph = emit_graph};
  e.precision = ir->context && ir->context->precision.float32 == MIX_FLOAT32_HIGH ? "HIGH" : "HIGHEST";
  mix_hlo *values = mix_ir_array(ir, ir->value_count + 1, sizeof *values);
  bool good = values && mix_emit_enter(&e, ir, values) && make_signature(&e, ir);
  if (good) put_header(&e, ir);
  good = good && emit_graph(&e, ir) && put_results(&e, ir) && !e.w.text.failed;
  if (good) return e.w.text.text;
  mix_free(e.w.text.text);
  return NULL;
}
