/* The arguments of metrics: rows that give checks, copies, text, and configs both ways. */
#include "nn/metrics/metric.h"
#include "base/alloc.h"
#include "base/error.h"
#include <math.h>
#include <stdio.h>

/* ---- the normalizer: a tensor, which Keras's configs hold as null ---- */

static json_t *write_tensor(const mix_field *field) { return json_null(); }
static const mix_value_kind tensor_kind = {"a tensor, which no text can say", sizeof(void *),
                                           mix_retain_field, mix_release_field, write_tensor};

/* ---- rows ---- */

#define FIELD(member) MIX_FIELD(mix_metric_options, member)
#define FLAGGED(member)                                                                                      \
  { FIELD(member), &mix_field_flagged, .optional = true, .other = MIX_ARGUMENT(has_##member) }
/* Numbers without a default are infinite if they are not given. */
static const mix_field_row common[] = {{FIELD(name), &mix_field_text}, {FIELD(dtype), &mix_field_text}, {0}};
static const mix_field_row rows[] = {
    {FIELD(threshold), &mix_field_number, .number = INFINITY},
    {FIELD(k), &mix_field_integer, .number = 5, .range = MIX_POSITIVE},
    {FIELD(from_logits), &mix_field_boolean},
    {FIELD(label_smoothing), &mix_field_number},
    {FIELD(thresholds), &mix_field_numbers, .optional = true},
    {FIELD(top_k), &mix_field_integer, .optional = true, .range = MIX_POSITIVE},
    FLAGGED(class_id),
    {FIELD(num_thresholds), &mix_field_integer, .number = 200, .range = MIX_POSITIVE},
    {FIELD(curve), &mix_field_text, .text = "ROC"},
    {FIELD(summation_method), &mix_field_text, .text = "interpolation"},
    {FIELD(multi_label), &mix_field_boolean},
    {FIELD(num_labels), &mix_field_integer, .optional = true, .range = MIX_POSITIVE},
    {FIELD(label_weights), &mix_field_numbers, .optional = true},
    {FIELD(specificity), &mix_field_number, .number = INFINITY},
    {FIELD(sensitivity), &mix_field_number, .number = INFINITY},
    {FIELD(recall), &mix_field_number, .number = INFINITY},
    {FIELD(precision), &mix_field_number, .number = INFINITY},
    {FIELD(average), &mix_field_text, .optional = true},
    {FIELD(beta), &mix_field_number, .number = 1, .range = MIX_POSITIVE},
    {FIELD(class_aggregation), &mix_field_text, .text = "uniform_average", .optional = true},
    {FIELD(num_regressors), &mix_field_integer},
    {FIELD(num_classes), &mix_field_integer, .optional = true, .range = MIX_POSITIVE},
    {FIELD(target_class_ids), &mix_field_numbers, .optional = true},
    FLAGGED(ignore_class),
    {FIELD(axis), &mix_field_axis},
    {"sparse_y_true", MIX_ARGUMENT(not_sparse_y_true), &mix_field_negated},
    {"sparse_y_pred", MIX_ARGUMENT(not_sparse_y_pred), &mix_field_negated},
    {FIELD(sparse_y_pred), &mix_field_boolean},
    {FIELD(shape), &mix_field_sizes, .optional = true},
    {FIELD(normalizer), &tensor_kind},
    {0}};

mix_fields mix_metric_fields(const char *call, const size_t *known, const mix_semantics *rules) {
  static const size_t none[] = {0};
  return (mix_fields){common, rows, call, rules, .refusal = MIX_TYPE_ERROR, .in_use = known ? known : none};
}

static bool takes(const size_t *known, size_t argument) {
  while (known && *known && *known != argument) known++;
  return known && *known;
}

bool mix_metric_take_arguments(mix_metric *metric, const mix_metric_options *given, const size_t *known) {
  mix_metric_options *o = &metric->options;
  char call[80];
  snprintf(call, sizeof call, "metric %.60s", given->metric ? given->metric : metric->class.name);
  for (const mix_field_row *row = rows; row->name; row++)
    if (mix_field_given(row, given) && !takes(known, row->offset))
      return mix_fail_type("%s: got an unexpected argument '%s'", call, row->name);
  mix_fields fields = mix_metric_fields(call, known, metric->semantics);
  *o = *given;
  o->metric = mix_intern(o->metric); /* the caller's strings may go out of scope */
  /* The threshold of F-scores is None if it is not given. */
  if (o->threshold == 0 && !takes(known, MIX_ARGUMENT(average))) o->threshold = 0.5;
  if (!mix_failed() && mix_fields_resolve(&fields, o)) return true;
  *o = (mix_metric_options){0};
  return false;
}
