/* Inserts casts between types of different colours (spec 7.5, step 15). */
#include "base/alloc.h"
#include "base/error.h"
#include "amp/paint.h"

#include <stdio.h>
#include <string.h>

/* Adds a cast after an output port, or after an earlier cast of it. Returns its number, or -1 with the error
 * recorded. */
static int add_cast(mix_amp_result *r, int before, int node, int port, mix_amp_dtype dtype) {
  if (!mix_reserve(&r->casts, &r->cast_capacity, r->cast_count + 1, sizeof *r->casts)) return -1;
  r->casts[r->cast_count] = (mix_amp_cast){
      .cast = before, .node = node, .port = port, .dtype = (uint8_t)dtype, .first_use = r->use_count};
  return r->cast_count++;
}

/* Makes an input read the latest cast. */
static bool use_cast(mix_amp_result *r, int input) {
  if (!mix_reserve(&r->uses, &r->use_capacity, r->use_count + 1, sizeof *r->uses)) return false;
  r->uses[r->use_count++] = input;
  r->casts[r->cast_count - 1].use_count++;
  r->input_cast[input] = r->cast_count - 1;
  return true;
}

static bool reads_allow(const mix_amp_result *r, int input) {
  const mix_amp_input *in = &r->graph->inputs[input];
  return mix_amp_is_allow(r, mix_amp_input_type(r->graph, mix_amp_signature_of(r, in->node),
                                                input - r->graph->nodes[in->node].first_input));
}

/* Adds one cast for all consumers of the other colour. */
static bool cast_output(mix_amp_result *r, int node, int port, bool allow, const int *consumers, int count) {
  int cast = -1;
  for (int c = 0; c < count; c++) {
    if (reads_allow(r, consumers[c]) == allow) continue;
    if (cast < 0 && (cast = add_cast(r, -1, node, port, allow ? MIX_AMP_DTYPE_FLOAT32 : r->target)) < 0)
      return false;
    if (!use_cast(r, consumers[c])) return false;
  }
  return true;
}

/* TensorFlow 2.21 fails here where a producer comes after its consumer (a NextIteration after its Merge): the
 * cast back gives "Index", and the whole graph stays unchanged. This implementation handles the case. */
/* Emulation: adds a cast that rounds, then a cast back for each converted consumer, and one for all other
 * consumers of a converted producer. */
static bool round_output(mix_amp_result *r, int node, int port, bool allow, const int *consumers, int count) {
  int rounding = -1;
  for (int c = 0; c < count; c++) {
    if (!reads_allow(r, consumers[c])) continue;
    if (rounding < 0 && (rounding = add_cast(r, -1, node, port, r->target)) < 0) return false;
    if (add_cast(r, rounding, node, port, MIX_AMP_DTYPE_FLOAT32) < 0 || !use_cast(r, consumers[c]))
      return false;
  }
  int back = -1;
  for (int c = 0; allow && c < count; c++) {
    if (reads_allow(r, consumers[c])) continue;
    if (rounding < 0 && (rounding = add_cast(r, -1, node, port, r->target)) < 0) return false;
    if (back < 0 && (back = add_cast(r, rounding, node, port, MIX_AMP_DTYPE_FLOAT32)) < 0) return false;
    if (!use_cast(r, consumers[c])) return false;
  }
  return true;
}

/* Casts of constants are folded, and casts of variables are expected: neither counts. */
static bool is_constant_or_variable(const char *op) {
  static const char *const ops[] = {"Const",       "Variable",     "VariableV2", "AutoReloadVariable",
                                    "VarHandleOp", "_VarHandlesOp"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (!strcmp(ops[i], op)) return true;
  return false;
}

bool mix_amp_materialise(mix_amp_result *r) {
  const mix_amp_graph *graph = r->graph;
  for (int n = 0; n < graph->node_count; n++) {
    const mix_amp_node *node = &graph->nodes[n];
    const mix_amp_signature *signature = mix_amp_signature_of(r, n);
    bool converted = false;
    for (int t = signature->first_type; t < signature->first_type + signature->type_count; t++) {
      if (graph->types[t].dtype != MIX_AMP_DTYPE_FLOAT32 || !mix_amp_is_allow(r, t)) continue;
      converted = true;
      if (r->emulated) continue;
      if (graph->types[t].fixed) {
        r->status = MIX_AMP_INTERNAL;
        snprintf(r->message, sizeof r->message,
                 "node '%s' (%s) has a port that the op fixes to float32, which cannot be forced to %s",
                 node->name, signature->op, mix_amp_dtype_name(r->target));
        return false;
      }
      r->after[t] = (uint8_t)r->target;
    }
    if (converted) r->converted_nodes++;
    for (int port = 0; port < signature->output_count; port++) {
      int type = mix_amp_output_type(graph, node, signature, port), output = node->first_output + port,
          casts = r->cast_count;
      if (graph->types[type].dtype != MIX_AMP_DTYPE_FLOAT32) continue;
      bool (*add)(mix_amp_result *, int, int, bool, const int *, int) =
          r->emulated ? round_output : cast_output;
      const int *consumers = graph->consumers + graph->first_consumer[output];
      if (!add(r, n, port, mix_amp_is_allow(r, type), consumers,
               graph->first_consumer[output + 1] - graph->first_consumer[output]))
        return false;
      for (int c = casts; c < r->cast_count; c++)
        if (r->casts[c].dtype == r->target && !is_constant_or_variable(signature->op)) r->casts_to_target++;
    }
  }
  return true;
}
