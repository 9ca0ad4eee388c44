/* The rewrite as a whole: preconditions, processable nodes, renamed batch norms, lists; then painting and
 * inserting casts. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strcasestr */
#endif
#include "base/alloc.h"
#include "base/error.h"
#include "amp/paint.h"

#include <stdio.h>
#include <string.h>

static const char *const status_names[] = {
#define MIX_AMP_STATUS_ROW(code, name) name,
    MIX_AMP_STATUS_LIST(MIX_AMP_STATUS_ROW)
#undef MIX_AMP_STATUS_ROW
};
const char *mix_amp_class_name(mix_amp_class class) {
  static const char *const names[] = {"none", "allow", "infer", "deny", "clear"};
  return names[class];
}

const char *mix_amp_status_name(mix_amp_status status) { return status_names[status]; }

static void finalize(void *object) {
  mix_amp_result *r = object;
  mix_release(r->graph);
  void *memory[] = {r->class, r->left,       r->renamed, r->colour, r->reason,       r->cause,       r->other,
                    r->after, r->input_cast, r->casts,   r->uses,   r->cast_removed, r->node_removed};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) mix_free(memory[i]);
}

static const mix_class class = {.name = "mixed precision rewrite", .finalize = finalize};

static bool is_new_gpu(const mix_amp_options *o) { return o->ignore_performance || o->architecture[0] >= 7; }

/* Step 0. In every mode an unplaced node is on the GPU if there is one, even a simulated one. */
static void find_processable(mix_amp_result *r) {
  const mix_amp_options *o = &r->options;
  bool on_gpu = o->mode == MIX_AMP_CUDA_FLOAT16;
  for (int n = 0; n < r->graph->node_count; n++) {
    const mix_amp_node *node = &r->graph->nodes[n];
    const char *device = node->device[0] ? node->device : o->has_gpu || o->simulate_gpu ? "gpu" : "cpu";
    bool here = strcasestr(device, on_gpu ? "gpu" : "cpu") != NULL;
    if (node->preserved)
      r->left[n] = MIX_AMP_PRESERVED;
    else if (!here)
      r->left[n] = MIX_AMP_ELSEWHERE;
    else if (on_gpu && o->has_gpu && !is_new_gpu(o))
      r->left[n] = MIX_AMP_OLD_GPU;
    r->renamed[n] = !r->left[n] && node->renamed.op;
  }
}

/* Why the mode does not apply to this machine; NULL: it does. */
static const char *no_device(const mix_amp_options *o) {
  if (o->mode == MIX_AMP_CUDA_FLOAT16 && !o->has_gpu && !o->simulate_gpu) return "there is no GPU";
  if (o->mode == MIX_AMP_CUDA_FLOAT16 && o->has_gpu && !is_new_gpu(o))
    return "the GPU is older than compute capability 7.0 (IGNORE_PERFORMANCE=1 takes it anyway)";
  if (o->mode == MIX_AMP_ONEDNN_FLOAT16 && !o->cpu_computes_float16)
    return "the processor does not compute in float16";
  return NULL;
}

/* Resets all dtypes, after an error or if there is nothing to do. */
static void leave_alone(mix_amp_result *r) {
  for (int t = 0; t < r->graph->type_count; t++) r->after[t] = r->graph->types[t].dtype, r->colour[t] = 0;
  for (int i = 0; i < r->graph->input_count; i++) r->input_cast[i] = -1;
  r->cast_count = r->use_count = r->converted_nodes = r->casts_to_target = 0;
}

static mix_amp_result *make(mix_amp_graph *graph, const mix_amp_options *options) {
  mix_amp_result *r = mix_object_new(sizeof *r, &class);
  if (!r) return NULL;
  mix_scoped(r);
  r->graph = mix_retain(graph);
  r->options = *options;
  r->target = mix_amp_mode_target(options->mode);
  r->emulated = options->mode == MIX_AMP_CPU_FLOAT16 && !options->no_emulation;
  size_t nodes = (size_t)graph->node_count + 1, types = (size_t)graph->type_count + 1;
  r->class = mix_calloc(nodes, 1);
  r->left = mix_calloc(nodes, 1);
  r->renamed = mix_calloc(nodes, sizeof *r->renamed);
  r->colour = mix_calloc(types, 1);
  r->reason = mix_calloc(types, 1);
  r->cause = mix_alloc(types * sizeof *r->cause);
  r->other = mix_alloc(types * sizeof *r->other);
  r->after = mix_alloc(types);
  r->input_cast = mix_alloc(((size_t)graph->input_count + 1) * sizeof *r->input_cast);
  r->node_removed = mix_calloc(nodes, sizeof *r->node_removed);
  if (!r->class || !r->left || !r->renamed || !r->colour || !r->reason || !r->cause || !r->other ||
      !r->after || !r->input_cast || !r->node_removed)
    return NULL;
  for (int t = 0; t < graph->type_count; t++) r->cause[t] = r->other[t] = -1;
  leave_alone(r);
  return r;
}

static void refuse_conflict(mix_amp_result *r, const mix_amp_lists *lists) {
  const unsigned classes = (unsigned)mix_amp_lists_classes(lists, lists->conflict);
  const mix_amp_class lowest = mix_amp_lists_class(lists, lists->conflict),
                      other = (mix_amp_class)__builtin_ctz(classes & ~(1u << lowest));
  r->status = MIX_AMP_INVALID_ARGUMENT;
  snprintf(
      r->message, sizeof r->message,
      "the op lists have conflicting entries: %.120s is in the %s list and in the %s list; one edit more "
      "takes it out of one: %s_REMOVE=%.120s or %s_REMOVE=%.120s",
      lists->conflict, mix_amp_class_name(lowest), mix_amp_class_name(other), mix_amp_class_list(lowest),
      lists->conflict, mix_amp_class_list(other), lists->conflict);
}

/* The steps after the preconditions. Returns whether the graph changes. */
static bool run(mix_amp_result *r, mix_amp_lists *lists) {
  if (!mix_amp_lists_make(lists, &r->options, r->graph)) return false;
  if (lists->unknown) snprintf(r->unknown, sizeof r->unknown, "%s", lists->unknown);
  if (lists->conflict) return refuse_conflict(r, lists), false;
  find_processable(r);
  for (int n = 0; n < r->graph->node_count; n++)
    r->class[n] = (uint8_t)mix_amp_lists_class(lists, mix_amp_signature_of(r, n)->op);
  mix_amp_painting painting;
  bool changes =
      mix_amp_painting_make(&painting, r) && mix_amp_find_lists(&painting) && mix_amp_paint(&painting);
  mix_amp_painting_free(&painting);
  return changes && mix_amp_materialise(r);
}

mix_amp_result *mix_amp_rewrite(mix_amp_graph *graph, const mix_amp_options *options) {
  if (mix_failed() || !graph || !options) return NULL;
  mix_amp_result *r = make(graph, options);
  if (!r) return NULL;
  bool oneDNN = options->mode == MIX_AMP_ONEDNN_BFLOAT16 || options->mode == MIX_AMP_ONEDNN_FLOAT16;
  const char *nothing = no_device(options);
  if (nothing) {
    snprintf(r->message, sizeof r->message, "%s", nothing);
  } else if (oneDNN && options->level == MIX_AMP_UNSAFE_FORCE_ALL) {
    r->status = MIX_AMP_INVALID_ARGUMENT;
    snprintf(r->message, sizeof r->message, "LEVEL is UNSAFE_FORCE_ALL, which the oneDNN modes do not have");
  } else {
    if (oneDNN && options->has_gpu)
      mix_log_message(
          MIX_LOG_WARNING,
          "mixed precision rewrite: %s: the mode %s changes nodes on the CPU alone, but there is a GPU",
          graph->label, mix_amp_mode_name(options->mode));
    mix_amp_lists lists = {0};
    bool changes = run(r, &lists);
    if (!mix_failed() && changes && options->log_path) mix_amp_lists_write(&lists, options, graph->label);
    mix_amp_lists_free(&lists);
    if (mix_failed()) return NULL;
    if (!changes) leave_alone(r);
    /* Batch norms are renamed first and stay renamed even if no op is converted. After an error the old graph
     * applies. */
    if (r->status != MIX_AMP_OK) memset(r->renamed, 0, (size_t)graph->node_count * sizeof *r->renamed);
  }
  if (!(r->cast_removed = mix_calloc((size_t)r->cast_count + 1, sizeof *r->cast_removed))) return NULL;
  if (r->status != MIX_AMP_OK)
    mix_log_message(MIX_LOG_WARNING, "mixed precision rewrite: %s: %s: %s; the graph stays as it is",
                    graph->label, mix_amp_status_name(r->status), r->message);
  else if (mix_verbose("compile"))
    mix_log_message(
        MIX_LOG_DEBUG,
        "mixed precision rewrite: %s: converted %d of %d nodes to %s, with %d casts to it besides those of "
        "constants and variables",
        graph->label, r->converted_nodes, graph->node_count, mix_amp_dtype_name(r->target),
        r->casts_to_target);
  return r;
}
