/* The numerics report as an object, and its accessors. */
#include "train/numerics/numerics.h"

#include "base/alloc.h"
#include "base/error.h"
#include "ops/magnitudes.h"

bool mix_numerics_finite(const mix_numerics_statistics *s) { return !s->infinities && !s->nans; }

bool mix_numerics_given(const mix_numerics *report, const char *call) {
  if (mix_failed()) return false;
  if (!mix_is(report, &mix_numerics_class)) mix_fail_type("%s: expected a numerics report", call);
  return !mix_failed();
}

void mix_numerics_clear(mix_numerics *r) {
  if (r->watch) r->end_watch(r);
  for (int i = 0; i < r->entry_count; i++) {
    mix_free(r->entries[i].forward.bins);
    mix_free(r->entries[i].gradient.bins);
    mix_free(r->entries[i].applied.bins);
  }
  for (int i = 0; i < r->layout_count; i++) mix_free(r->layouts[i].slots);
  mix_free(r->entries);
  mix_free(r->layouts);
  mix_free(r->incidents);
  mix_free(r->points);
  mix_free(r->table);
  mix_free(r->json);
  mix_object object = r->object;
  *r = (mix_numerics){
      .object = object, .every = 1, .stall_limit = 20, .intermediates = true, .concluded = -1, .stride = 1};
}

static void numerics_finalize(void *object) { mix_numerics_clear(object); }
const mix_class mix_numerics_class = {.name = "numerics report", .finalize = numerics_finalize};

mix_numerics *mix_numerics_new(void) {
  if (mix_failed()) return NULL;
  mix_numerics *report = mix_object_new(sizeof *report, &mix_numerics_class);
  if (!report) return NULL;
  mix_numerics_clear(report);
  return mix_scoped(report);
}

int64_t mix_numerics_steps(const mix_numerics *report) {
  return mix_is(report, &mix_numerics_class) ? report->steps : 0;
}
int64_t mix_numerics_watched(const mix_numerics *report) {
  return mix_is(report, &mix_numerics_class) ? report->watched : 0;
}
int64_t mix_numerics_skipped(const mix_numerics *report) {
  return mix_is(report, &mix_numerics_class) ? report->skipped : 0;
}
int mix_numerics_row_count(const mix_numerics *report) {
  return mix_is(report, &mix_numerics_class) ? report->entry_count : 0;
}
int mix_numerics_event_count(const mix_numerics *report) {
  return mix_is(report, &mix_numerics_class) ? report->incident_count : 0;
}

static bool index_given(const mix_numerics *report, int index, int count, const char *call) {
  if (!mix_numerics_given(report, call)) return false;
  if (index < 0 || index >= count) mix_fail_value("%s: index %d of %d", call, index, count);
  return !mix_failed();
}

mix_status mix_numerics_get_row(const mix_numerics *report, int index, mix_numerics_row *row,
                                size_t row_size) {
  if (!index_given(report, index, mix_numerics_row_count(report), "numerics_get_row")) return mix_error();
  const mix_numerics_entry *entry = &report->entries[index];
  mix_numerics_row full = {.layer = entry->layer,
                           .tensor = entry->tensor,
                           .op = entry->op,
                           .kind = entry->kind,
                           .dtype = entry->dtype,
                           .shape = entry->shape,
                           .forward = entry->forward.statistics,
                           .gradient = entry->gradient.statistics,
                           .has_gradient = entry->has_gradient};
  return mix_struct_fill(row, row_size, &full, sizeof full, "numerics_get_row");
}

int64_t mix_numerics_histogram(const mix_numerics *report, int row, bool gradient, int exponent) {
  if (!index_given(report, row, mix_numerics_row_count(report), "numerics_histogram")) return 0;
  const mix_numerics_entry *entry = &report->entries[row];
  if (exponent < mix_magnitude_lowest(entry->dtype) || exponent > mix_magnitude_highest(entry->dtype))
    return 0;
  return (gradient ? &entry->gradient : &entry->forward)->bins[exponent - mix_magnitude_lowest(entry->dtype)];
}

mix_status mix_numerics_get_event(const mix_numerics *report, int index, mix_numerics_event *event,
                                  size_t event_size) {
  if (!index_given(report, index, mix_numerics_event_count(report), "numerics_get_event")) return mix_error();
  const mix_numerics_incident *incident = &report->incidents[index];
  const mix_numerics_entry *entry = incident->entry >= 0 ? &report->entries[incident->entry] : NULL;
  bool forward = incident->forward || (entry && entry->scaled_loss);
  mix_numerics_event full = {.step = incident->step,
                             .applied = incident->applied,
                             .forward = incident->forward,
                             .layer = !entry    ? NULL
                                      : forward ? entry->layer
                                                : entry->blamed,
                             .tensor = entry ? entry->tensor : NULL,
                             .tensor_layer = entry ? entry->layer : NULL,
                             .op = entry ? entry->op : NULL,
                             .nan = incident->nan,
                             .loss_scale = incident->loss_scale};
  return mix_struct_fill(event, event_size, &full, sizeof full, "numerics_get_event");
}

const char *mix_numerics_status(const mix_numerics *report) {
  return mix_is(report, &mix_numerics_class) ? mix_numerics_conclude(report)->status : "no steps";
}
const char *mix_numerics_layer(const mix_numerics *report) {
  return mix_is(report, &mix_numerics_class) ? mix_numerics_conclude(report)->layer : NULL;
}
const char *mix_numerics_verdict(const mix_numerics *report) {
  return mix_is(report, &mix_numerics_class) ? mix_numerics_conclude(report)->text : "";
}
int mix_numerics_advice_count(const mix_numerics *report) {
  return mix_is(report, &mix_numerics_class) ? mix_numerics_conclude(report)->advice_count : 0;
}

mix_status mix_numerics_get_advice(const mix_numerics *report, int index, mix_numerics_advice *advice,
                                   size_t advice_size) {
  if (!index_given(report, index, mix_numerics_advice_count(report), "numerics_get_advice"))
    return mix_error();
  const struct mix_numerics_advice_item *item = &mix_numerics_conclude(report)->advice[index];
  mix_numerics_advice full = {
      .kind = item->kind, .layer = item->layer, .loss_scale = item->loss_scale, .text = item->text};
  return mix_struct_fill(advice, advice_size, &full, sizeof full, "numerics_get_advice");
}
