/* Conclusion of a numerics report: which layer is the cause, and remedies. */
#include "train/numerics/numerics.h"
#include "nn/policy/policy_map.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* If this share of a layer's nonzero gradient values is below the smallest normal float16, a larger scale is
 * advised. About as many values have then become zero. */
static const double UNDERFLOW_SHARE = 0.1;
/* Without loss scaling, scaling is advised from this share on. */
static const double NOTABLE_SHARE = 0.01;
/* If weights have grown by this factor since the first step, their growth caused the overflow, not the
 * dtype. */
static const double GROWTH_LIMIT = 16;
/* Forward values are reported from this factor below overflow on. */
enum { NEAR = 4 };
/* An advised larger scale keeps the largest gradient MARGIN powers of two below float16's limit, 2^16. */
enum { MAX_EXPONENT = 16, MARGIN = 2, INITIAL_SCALE = 32768 /* Keras's default initial scale */ };

static void put(char *text, const char *format, ...) MIX_PRINTF(2, 3);
static void put(char *text, const char *format, ...) {
  size_t used = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + used, MIX_NUMERICS_TEXT - used, format, arguments);
  va_end(arguments);
}

static void advise(mix_numerics_conclusion *c, const char *kind, const char *layer, double scale,
                   const char *format, ...) MIX_PRINTF(5, 6);
static void advise(mix_numerics_conclusion *c, const char *kind, const char *layer, double scale,
                   const char *format, ...) {
  if (c->advice_count == MIX_NUMERICS_ADVICE_MAX) return;
  struct mix_numerics_advice_item *item = &c->advice[c->advice_count++];
  item->kind = kind;
  item->layer = layer;
  item->loss_scale = scale;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(item->text, sizeof item->text, format, arguments);
  va_end(arguments);
}

static bool in_float16(const mix_numerics_entry *entry) { return entry->dtype == MIX_FLOAT16; }

/* "", or where maps are taken, the one that keeps the layer in float32. */
static const char *map_text(const mix_numerics *r, const char *layer, char *map, size_t size) {
  mix_text text = {.text = map, .size = size};
  *map = 0;
  if (!r->takes_maps) return map;
  mix_text_put(&text, ", or in a file of --policy-map {\"default_policy\": \"%s\", \"policy_map\": {\"",
               r->policy ? r->policy : "mixed_float16");
  mix_policy_map_put_key(&text, layer, false);
  mix_text_put(&text, "\": \"float32\"}}");
  return map;
}

static void advise_range(const mix_numerics *r, mix_numerics_conclusion *c, const mix_numerics_entry *entry,
                         const char *layer) {
  char map[MIX_NUMERICS_TEXT];
  if (r->rewrite == MIX_FLOAT16 && entry->dtype == MIX_FLOAT32) {
    advise(c, "bfloat16", NULL, 0,
           "rewrite the graph to bfloat16, which has float32's range: "
           "--graph-rewrite bfloat16, mix_set_graph_rewrite");
    advise(c, "float32_override", layer, 0,
           "if the rewrite to float16 made it overflow, keep operation %s in float32 "
           "(TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_ALLOWLIST_REMOVE),"
           " or train under the policy mixed_float16 with %s in float32",
           entry->op, layer);
    return;
  }
  if (!in_float16(entry)) {
    advise(c, "check_operation", layer, 0,
           "%s of %s overflows in %s, which has float32's range: "
           "check the operation, its data and the learning rate",
           entry->tensor, layer, mix_dtype_name(entry->dtype));
    return;
  }
  advise(c, "float32_override", layer, 0, "let %s compute in float32: .dtype = \"float32\" in its options%s",
         layer, map_text(r, layer, map, sizeof map));
  advise(c, "bfloat16", NULL, 0,
         "train in bfloat16, which has float32's range and needs no loss scale: "
         "policy mixed_bfloat16 (bfloat16 for a policy float16)");
}

static const char *value_name(const mix_numerics_incident *incident) {
  return incident->nan ? "NaN" : "infinity";
}

static void advise_growth(const mix_numerics *r, mix_numerics_conclusion *c) {
  const mix_numerics_entry *grown = NULL;
  for (int i = 0; i < r->entry_count; i++) {
    const mix_numerics_entry *entry = &r->entries[i];
    double factor = entry->kind == MIX_NUMERICS_WEIGHT && entry->shape.rank > 1
                        ? entry->latest_largest / entry->first_largest
                        : 0;
    if (factor >= GROWTH_LIMIT && (!grown || factor > grown->latest_largest / grown->first_largest))
      grown = entry;
  }
  if (grown)
    advise(c, "learning_rate", grown->layer, 0,
           "a lower learning rate, or clipped gradients: the largest weight of %s/%s has grown from %.3g to "
           "%.3g",
           grown->layer, grown->tensor, grown->first_largest, grown->latest_largest);
}

/* ---- one incident in words, with its remedies ---- */

/* "step 3", or "steps 1 to 17" of incidents of one kind. */
static const char *steps_text(const mix_numerics *r, const mix_numerics_incident *incident, char text[64]) {
  int first, last;
  mix_numerics_run_of_incidents(r, (int)(incident - r->incidents), &first, &last);
  snprintf(text, 64, first == last ? "step %lld" : "steps %lld to %lld", (long long)r->incidents[first].step,
           (long long)r->incidents[last].step);
  return text;
}

static const char *scales_text(const mix_numerics *r, const mix_numerics_incident *incident, char text[64]) {
  int first, last;
  mix_numerics_run_of_incidents(r, (int)(incident - r->incidents), &first, &last);
  const double from = r->incidents[first].loss_scale, to = r->incidents[last].loss_scale;
  snprintf(text, 64, from == to ? "%g" : "%g to %g", from, to);
  return text;
}

static void explain_data(const mix_numerics *r, const mix_numerics_incident *incident,
                         const mix_numerics_entry *entry, mix_numerics_conclusion *c) {
  char steps[64];
  c->status = "bad data";
  put(c->text, "The %s of %s hold %s, which every layer passes on.", entry->layer,
      steps_text(r, incident, steps), value_name(incident));
  advise(c, "clean_data", entry->layer, 0,
         "look for values that are not finite in the %s; no dtype and no loss scale helps against them",
         entry->layer);
}

static void explain_forward(const mix_numerics *r, const mix_numerics_incident *incident,
                            const mix_numerics_entry *entry, mix_numerics_conclusion *c) {
  const char *layer = c->layer = entry->layer;
  char steps[64];
  if (entry->kind == MIX_NUMERICS_DATA) {
    explain_data(r, incident, entry, c);
    return;
  }
  if (entry->kind == MIX_NUMERICS_WEIGHT && strcmp(entry->op, "cast")) {
    put(c->text, "Layer %s: its weight %s was %s before step %lld.", layer, entry->tensor,
        value_name(incident), (long long)incident->step);
    advise(c, "check_operation", layer, 0,
           "start from finite weights; if training made them so, scale the loss dynamically (it skips such "
           "updates) or lower the learning rate");
    return;
  }
  if (incident->nan && entry->kind != MIX_NUMERICS_OUTPUT) {
    put(c->text, "Layer %s: %s (operation %s, %s) made NaN of finite numbers in the forward pass of %s.",
        layer, entry->tensor, entry->op, mix_dtype_name(entry->dtype), steps_text(r, incident, steps));
    if (in_float16(entry))
      advise(c, "float32_override", layer, 0,
             "let %s compute in float32, where a divisor does not underflow to 0: .dtype = \"float32\"",
             layer);
    advise(c, "check_operation", layer, 0,
           "check what %s does with the numbers it gets: 0 / 0, the logarithm or root of a negative number, "
           "infinity - infinity",
           layer);
    return;
  }
  const char *what = entry->kind == MIX_NUMERICS_INPUT    ? "its input, cast to the layer's dtype,"
                     : entry->kind == MIX_NUMERICS_WEIGHT ? "its weight, cast to the layer's dtype,"
                                                          : "its forward pass";
  put(c->text,
      "Layer %s: %s overflowed %s (%s first in %s, made by %s) in %s. "
      "A smaller loss scale does not help against it.",
      layer, what, mix_dtype_name(entry->dtype), value_name(incident), entry->tensor, entry->op,
      steps_text(r, incident, steps));
  advise_growth(r, c);
  advise_range(r, c, entry, layer);
}

static void explain_scaled_loss(const mix_numerics *r, const mix_numerics_incident *incident,
                                mix_numerics_conclusion *c) {
  char steps[64], scales[64];
  c->layer = "loss";
  put(c->text, "The loss times its scale, %s, overflowed in %s; the loss itself is finite.",
      scales_text(r, incident, scales), steps_text(r, incident, steps));
  advise(c, "smaller_scale", NULL, incident->loss_scale / 16, "a smaller loss scale: %g",
         incident->loss_scale / 16);
}

/* True if the scale alone causes the overflow: a step was applied since at a smaller scale. */
static bool smaller_scale_fits(const mix_numerics *r, const mix_numerics_incident *incident) {
  return r->applied_scale > 0 && r->applied_scale < incident->loss_scale;
}

static void explain_backward(const mix_numerics *r, const mix_numerics_incident *incident,
                             const mix_numerics_entry *entry, mix_numerics_conclusion *c) {
  const char *layer = c->layer = entry->blamed;
  double scale = incident->loss_scale;
  char steps[64], scales[64];
  put(c->text,
      "Layer %s: its backward pass overflowed %s (gradient of %s/%s: %s) in %s at loss scale %s; "
      "the forward pass is finite.",
      layer, mix_dtype_name(entry->dtype), entry->layer, entry->tensor, value_name(incident),
      steps_text(r, incident, steps), scales_text(r, incident, scales));
  if (smaller_scale_fits(r, incident)) {
    put(c->text, " At %g it fits.", r->applied_scale);
    if (!r->dynamic)
      advise(c, "smaller_scale", NULL, r->applied_scale, "a smaller loss scale: %g", r->applied_scale);
  } else if (scale > 1 && !r->dynamic) {
    advise(c, "smaller_scale", NULL, scale / 16,
           "a smaller loss scale (%g, say), or a dynamic one, which finds it and skips such steps",
           scale / 16);
  } else if (scale > 1 && r->stalled) {
    advise(c, "smaller_scale", NULL, INITIAL_SCALE,
           "start from a smaller loss scale, %d say: after %lld skipped steps it is %g still", INITIAL_SCALE,
           (long long)r->skipped_in_row, scale);
    if (scale <= INITIAL_SCALE) advise_range(r, c, entry, layer);
  } else if (scale <= 1) {
    put(c->text, " No loss scale above 1 would fit it.");
    advise_range(r, c, entry, layer);
  }
}

static void explain(const mix_numerics *r, const mix_numerics_incident *incident,
                    mix_numerics_conclusion *c) {
  if (incident->entry < 0) {
    char steps[64];
    put(c->text, "Nothing that was looked at in %s is infinite or NaN.", steps_text(r, incident, steps));
    return;
  }
  const mix_numerics_entry *entry = &r->entries[incident->entry];
  if (incident->forward)
    explain_forward(r, incident, entry, c);
  else if (entry->scaled_loss)
    explain_scaled_loss(r, incident, c);
  else
    explain_backward(r, incident, entry, c);
}

/* ---- underflow ---- */

static int64_t nonzero(const mix_numerics_statistics *s) {
  return s->elements - s->zeros - s->infinities - s->nans;
}

/* True if all gradients are zero here, while the preceding ones in the backward pass are tiny but not
 * zero. */
static bool vanished(const mix_numerics *r, int index) {
  const mix_numerics_entry *entry = &r->entries[index];
  if (!entry->applied.statistics.elements || nonzero(&entry->applied.statistics)) return false;
  for (int i = index + 1; i < r->entry_count; i++) {
    const mix_numerics_entry *above = &r->entries[i];
    if (!above->has_gradient || above->kind == MIX_NUMERICS_WEIGHT) continue;
    double largest = above->applied.statistics.largest;
    return largest > 0 && largest < 0x1p-14;
  }
  return false;
}

static const mix_numerics_entry *worst_underflow(const mix_numerics *r, double *share) {
  const mix_numerics_entry *worst = NULL;
  *share = 0;
  for (int i = 0; i < r->entry_count; i++) {
    const mix_numerics_entry *entry = &r->entries[i];
    if (!in_float16(entry) || !entry->has_gradient || entry->kind == MIX_NUMERICS_INTERMEDIATE) continue;
    int64_t count = nonzero(&entry->applied.statistics);
    double own = vanished(r, i) ? 1
                 : count        ? (double)entry->applied.statistics.subnormals / (double)count
                                : 0;
    /* Of several vanished gradients the last is where it began. */
    if (own > *share || (own == 1 && own == *share)) *share = own, worst = entry;
  }
  return worst;
}

/* The power of two by which the scale can grow while the largest gradient stays the margin below overflow.
 * Uses float16 gradients, or all dtypes if there are none. */
static double scale_headroom(const mix_numerics *r) {
  double largest = 0, any = 0;
  for (int i = 0; i < r->entry_count; i++) {
    double own = r->entries[i].applied.statistics.largest;
    if (own > any) any = own;
    if (in_float16(&r->entries[i]) && own > largest) largest = own;
  }
  if (largest == 0) largest = any;
  return largest > 0 ? exp2(floor(MAX_EXPONENT - MARGIN - log2(largest))) : 1;
}

static bool find_underflow(const mix_numerics *r, mix_numerics_conclusion *c) {
  double share, factor = scale_headroom(r), scale = r->applied_scale > 0 ? r->applied_scale : r->scale;
  const mix_numerics_entry *worst = worst_underflow(r, &share);
  if (!worst || share < UNDERFLOW_SHARE) return false;
  c->status = "underflow";
  c->layer = worst->layer;
  if (share == 1 && !nonzero(&worst->applied.statistics))
    put(c->text,
        "Layer %s: the gradient of its %s underflowed float16: "
        "it is zero everywhere, while what flows into it is not.",
        worst->layer, worst->tensor);
  else
    put(c->text,
        "Layer %s: %.0f%% of the nonzero gradient values of its %s are subnormal in float16 at loss scale "
        "%g; more have become zero.",
        worst->layer, 100 * share, worst->tensor, scale);
  if (factor >= 4 && !r->scaled)
    advise(c, "loss_scaling", NULL, factor,
           "scale the loss, dynamically or by %g: the largest gradient leaves room for it", factor);
  else if (factor >= 4)
    advise(c, "larger_scale", NULL, scale * factor,
           "a larger loss scale: %g leaves the largest gradient a quarter of float16's range%s",
           scale * factor,
           r->dynamic
               ? " (a dynamic scale grows there by itself; start from it, or let it grow after fewer steps)"
               : "");
  else {
    advise(
        c, "float32_override", worst->layer, 0,
        "let %s compute in float32: .dtype = \"float32\"; the largest gradients leave no room for a larger "
        "scale",
        worst->layer);
    advise(c, "bfloat16", NULL, 0, "train in bfloat16, which has float32's range: policy mixed_bfloat16");
  }
  return true;
}

/* ---- overflow that is near ---- */

/* The largest forward value of float16. Between the operations of a layer large values may be harmless, as
 * the mask before a softmax. */
static const mix_numerics_entry *largest_forward(const mix_numerics *r) {
  const mix_numerics_entry *top = NULL;
  for (int i = 0; i < r->entry_count; i++) {
    const mix_numerics_entry *entry = &r->entries[i];
    if (!in_float16(entry) || entry->kind == MIX_NUMERICS_INTERMEDIATE || entry->scaled_loss) continue;
    if (!top || entry->forward.statistics.largest > top->forward.statistics.largest) top = entry;
  }
  return top;
}

static void report_near_overflow(const mix_numerics *r, mix_numerics_conclusion *c) {
  const double limit = 65504;
  const mix_numerics_entry *top = largest_forward(r);
  if (!top || top->forward.statistics.largest * NEAR < limit) return;
  put(c->text,
      " The forward pass comes near overflow: the largest value of %s/%s, %.4g, is a factor of %.2g below "
      "float16's limit.",
      top->layer, top->tensor, top->forward.statistics.largest, limit / top->forward.statistics.largest);
  if (!c->layer) c->layer = top->layer;
  advise_range(r, c, top, top->layer);
}

/* ---- the verdict ---- */

static const mix_numerics_incident *last_known(const mix_numerics *r) {
  for (int i = r->incident_count - 1; i >= 0; i--)
    if (r->incidents[i].entry >= 0) return &r->incidents[i];
  return r->incident_count ? &r->incidents[r->incident_count - 1] : NULL;
}

/* The first incident that a smaller scale cannot fix: the step was applied anyway, or it was in the forward
 * pass. */
static const mix_numerics_incident *first_serious(const mix_numerics *r) {
  for (int i = 0; i < r->incident_count; i++)
    if (r->incidents[i].applied || r->incidents[i].forward) return &r->incidents[i];
  return NULL;
}

static void conclude_stall(const mix_numerics *r, mix_numerics_conclusion *c) {
  put(c->text, "The loss scale has stalled: %lld steps in a row were skipped, the last at scale %g. ",
      (long long)r->skipped_in_row, r->scale);
  const mix_numerics_incident *last = last_known(r);
  if (last) explain(r, last, c);
  c->status = "stalled";
}

static void conclude_skipped(const mix_numerics *r, mix_numerics_conclusion *c) {
  bool settled = r->skipped_in_row == 0 && r->applied_scale > 0;
  c->status = settled ? "settled" : "searching";
  const mix_numerics_incident *last = last_known(r);
  put(c->text, "%lld of %lld steps were skipped; %s ", (long long)r->skipped, (long long)r->steps,
      settled ? "the loss scale has found its level."
              : "the loss scale is falling still: give it more steps.");
  if (last) explain(r, last, c);
  double first = r->incidents[0].loss_scale;
  if (settled && r->incidents[0].step == 1 && first > 2 * r->applied_scale)
    advise(c, "smaller_scale", NULL, r->applied_scale,
           "start from loss scale %g: the steps skipped before it was found come with every run",
           r->applied_scale);
}

static void conclude_healthy(const mix_numerics *r, mix_numerics_conclusion *c) {
  double largest = 0;
  const mix_numerics_entry *top = NULL;
  for (int i = 0; i < r->entry_count; i++) {
    const mix_numerics_entry *entry = &r->entries[i];
    if (in_float16(entry) && entry->applied.statistics.largest > largest)
      largest = entry->applied.statistics.largest, top = entry;
  }
  c->status = "healthy";
  put(c->text, "Nothing overflowed and no step was skipped.");
  if (top)
    put(c->text, " The largest gradient in float16, %.3g (%s/%s), is a factor of 2^%.0f below infinity.",
        largest, top->layer, top->tensor, floor(MAX_EXPONENT - log2(largest)));
  double share;
  const mix_numerics_entry *worst = worst_underflow(r, &share);
  if (worst && share >= NOTABLE_SHARE && !r->scaled && scale_headroom(r) >= 4)
    advise(
        c, "loss_scaling", NULL, scale_headroom(r),
        "scale the loss, dynamically or by %g: %.0f%% of the nonzero gradient values of %s/%s are subnormal "
        "in float16 without",
        scale_headroom(r), 100 * share, worst->layer, worst->tensor);
}

const mix_numerics_conclusion *mix_numerics_conclude(const mix_numerics *r) {
  mix_numerics_conclusion *c = (mix_numerics_conclusion *)&r->conclusion; /* lazily cached */
  if (r->concluded == r->steps) return c;
  *c = (mix_numerics_conclusion){.status = "no steps"};
  ((mix_numerics *)r)->concluded = r->steps;
  const mix_numerics_incident *serious = first_serious(r);
  if (!r->steps)
    put(c->text, "No step has been seen.");
  else if (r->stalled && r->skipped_in_row)
    conclude_stall(r, c);
  else if (serious) {
    c->status = "overflow";
    if (r->skipped)
      put(c->text, "%lld of %lld steps were skipped. ", (long long)r->skipped, (long long)r->steps);
    explain(r, serious, c);
  } else {
    if (r->skipped)
      conclude_skipped(r, c);
    else if (!find_underflow(r, c))
      conclude_healthy(r, c);
    report_near_overflow(r, c);
  }
  return c;
}
