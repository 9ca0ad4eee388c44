/* The numerics report as JSON. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "train/numerics/numerics.h"
#include "ops/magnitudes.h"
#include "passes/simulation.h"
#include <mixtape/simulate.h>

static json_t *text_or_null(const char *text) { return text ? mix_json_name(text) : json_null(); }

/* Counts from the first nonzero exponent to the last. */
static json_t *histogram(const mix_numerics_sum *sum, mix_dtype dtype) {
  int first = 0, last = mix_magnitude_bins(dtype) - 1;
  while (first <= last && !sum->bins[first]) first++;
  while (last >= first && !sum->bins[last]) last--;
  json_t *counts = json_array();
  for (int i = first; i <= last; i++) mix_json_append(counts, json_integer(sum->bins[i]));
  return json_pack("{s:i, s:o}", "first_exponent", first <= last ? mix_magnitude_lowest(dtype) + first : 0,
                   "counts", counts);
}

static json_t *statistics(const mix_numerics_sum *sum, mix_dtype dtype) {
  const mix_numerics_statistics *s = &sum->statistics;
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "elements", (json_int_t)s->elements, "zeros",
                   (json_int_t)s->zeros, "subnormals", (json_int_t)s->subnormals, "infinities",
                   (json_int_t)s->infinities, "nans", (json_int_t)s->nans, "smallest",
                   s->smallest > 0 ? mix_json_real(s->smallest) : json_null(), "largest",
                   s->largest > 0 ? mix_json_real(s->largest) : json_null(), "histogram",
                   histogram(sum, dtype));
}

static json_t *tensor(const mix_numerics_entry *entry) {
  return json_pack("{s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:o}", "layer", mix_json_name(entry->layer), "tensor",
                   mix_json_name(entry->tensor), "kind", mix_numerics_kind_name(entry->kind), "op", entry->op,
                   "dtype", mix_dtype_name(entry->dtype), "shape", mix_shape_json(entry->shape, false),
                   "forward", statistics(&entry->forward, entry->dtype), "gradient",
                   entry->has_gradient ? statistics(&entry->gradient, entry->dtype) : json_null());
}

static json_t *event(const mix_numerics *r, int index) {
  mix_numerics_event e;
  mix_numerics_get_event(r, index, &e, sizeof e);
  return json_pack("{s:I, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "step", (json_int_t)e.step, "applied",
                   e.applied, "pass", e.forward ? "forward" : "backward", "layer", text_or_null(e.layer),
                   "tensor", text_or_null(e.tensor), "tensor_layer", text_or_null(e.tensor_layer), "op",
                   text_or_null(e.op), "value", e.layer ? json_string(e.nan ? "nan" : "inf") : json_null(),
                   "loss_scale", mix_json_real(e.loss_scale));
}

static json_t *verdict(const mix_numerics *r) {
  const mix_numerics_conclusion *c = mix_numerics_conclude(r);
  json_t *advice = json_array();
  for (int i = 0; i < c->advice_count; i++)
    mix_json_append(
        advice, json_pack("{s:s, s:o, s:o, s:o}", "kind", c->advice[i].kind, "layer",
                          text_or_null(c->advice[i].layer), "loss_scale",
                          c->advice[i].loss_scale > 0 ? mix_json_real(c->advice[i].loss_scale) : json_null(),
                          "text", mix_json_name(c->advice[i].text)));
  return json_pack("{s:s, s:o, s:o, s:o}", "status", c->status, "layer", text_or_null(c->layer), "text",
                   mix_json_name(c->text), "advice", advice);
}

static json_t *loss_scale(const mix_numerics *r) {
  if (!r->scaled || !r->watched) return json_null();
  return json_pack("{s:b, s:o, s:o, s:o}", "dynamic", r->dynamic, "first", mix_json_real(r->first_scale),
                   "last", mix_json_real(r->scale), "least", mix_json_real(r->min_scale));
}

static json_t *simulated_row(int index) {
  mix_simulated_row row = {.layer = "", .operand = "", .numbers = 1};
  mix_simulated_get(index, &row, sizeof row);
  const double numbers = (double)row.numbers;
  return json_pack("{s:o, s:s, s:I, s:I, s:I, s:f, s:f}", "layer", mix_json_name(row.layer), "operand",
                   row.operand, "numbers", (json_int_t)row.numbers, "saturated", (json_int_t)row.saturated,
                   "flushed", (json_int_t)row.flushed, "saturated_share", (double)row.saturated / numbers,
                   "flushed_share", (double)row.flushed / numbers);
}

/* What the process simulates, and its counts since then. */
static json_t *simulated(void) {
  const mix_simulation now = mix_simulation_now();
  if (now.format == MIX_BLOCK_NONE) return json_null();
  json_t *rows = json_array();
  const int count = mix_simulated_count();
  for (int i = 0; i < count; i++) mix_json_append(rows, simulated_row(i));
  return json_pack("{s:s, s:b, s:o}", "format", mix_block_format_name(now.format), "stochastic_rounding",
                   now.stochastic, "operands", rows);
}

const char *mix_numerics_json(mix_numerics *r) {
  if (!mix_given(r, &mix_numerics_class, "numerics_json", "a numerics report") ||
      !mix_numerics_given(r, "numerics_json"))
    return NULL;
  json_t *tensors = json_array(), *events = json_array();
  for (int i = 0; i < r->entry_count; i++) mix_json_append(tensors, tensor(&r->entries[i]));
  for (int i = 0; i < r->incident_count; i++) mix_json_append(events, event(r, i));
  json_t *root = json_pack(
      "{s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "policy", text_or_null(r->policy),
      "graph_rewrite", r->rewrite == MIX_DTYPE_NONE ? json_null() : json_string(mix_dtype_name(r->rewrite)),
      "steps", (json_int_t)r->steps, "watched", (json_int_t)r->watched, "skipped", (json_int_t)r->skipped,
      "loss_scale", loss_scale(r), "verdict", verdict(r), "simulated", simulated(), "events", events,
      "tensors", tensors);
  root = mix_json_whole(root);
  char *dumped = root ? json_dumps(root, JSON_COMPACT) : NULL;
  json_decref(root);
  mix_free(r->json);
  r->json = dumped ? mix_strdup(dumped) : NULL;
  free(dumped);
  if (!dumped) mix_fail_memory("the JSON of a numerics report");
  return r->json;
}
