/* Muon: the momentum of a matrix, brought near the closest orthogonal matrix by a Newton-Schulz iteration
 * (Jordan and others: Muon, 2024; the scale by the larger dimension: Liu and others, 2025). Other variables
 * are left to Adam. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/pattern.h"
#include "ops/with_number.h"
#include "optim/optimizer.h"
#include <math.h>
#include <string.h>
#include <strings.h>

enum { MOMENTUM, VELOCITY };

/* ---- lists of texts ---- */

static size_t count_texts(const char *const *texts) {
  size_t count = 0;
  while (texts && texts[count]) count++;
  return count;
}

static bool copy_texts(const mix_field *field) {
  const char *const **texts = field->value;
  const size_t count = count_texts(*texts);
  const char **copy = count ? mix_calloc(count + 1, sizeof *copy) : NULL;
  for (size_t i = 0; copy && i < count; i++) copy[i] = mix_intern((*texts)[i]);
  *texts = (const char *const *)copy;
  return !mix_failed();
}

static void free_texts(const mix_field *field) {
  const char ***texts = field->value;
  mix_free(*texts);
}

static json_t *write_texts(const mix_field *field) {
  const char *const *texts = *(const char *const **)field->value;
  json_t *list = json_array();
  for (; texts && *texts; texts++) mix_json_append(list, json_string(*texts));
  return list;
}

static bool read_texts(const mix_field *field, const json_t *value) {
  if (json_is_null(value)) return true;
  if (!json_is_array(value)) return mix_field_mistyped(field, value);
  const size_t count = json_array_size(value);
  const char **texts = mix_scoped_memory((count + 1) * sizeof *texts);
  for (size_t i = 0; texts && i < count; i++) {
    texts[i] = json_string_value(json_array_get(value, i));
    if (!texts[i]) return mix_field_mistyped(field, json_array_get(value, i));
  }
  *(const char *const **)field->value = (const char *const *)texts;
  return texts != NULL;
}

/* "fc1;out" */
static json_t *parse_texts(const char *text) {
  json_t *list = json_array();
  while (*text) {
    const size_t length = strcspn(text, ";");
    if (length) mix_json_append(list, json_stringn(text, length));
    text += length + (text[length] == ';');
  }
  return list;
}

static const mix_value_kind texts_kind = {.expected = "a list of texts",
                                          .size = sizeof(const char *const *),
                                          .resolve = copy_texts,
                                          .release = free_texts,
                                          .write = write_texts,
                                          .read = read_texts,
                                          .parse = parse_texts,
                                          .text_expected = "texts with ; between"};

/* ---- whose variable is it? ---- */

static bool is_excluded(const mix_optimizer *optimizer, const char *name) {
  const char *const *expressions = optimizer->options.muon.exclude_layers;
  bool found = false;
  for (; expressions && *expressions && !found; expressions++)
    found = mix_pattern_is_in(*expressions, name, "muon: exclude_layers");
  return found;
}

static bool names_embedding(const char *name) {
  static const char word[] = "embedding";
  for (; *name; name++)
    if (!strncasecmp(name, word, sizeof word - 1)) return true;
  return false;
}

static bool is_adams(const mix_optimizer *optimizer, const mix_variable *variable) {
  if (variable->shape.rank != 2) return true;
  if (!optimizer->options.muon.include_embeddings && names_embedding(variable->name)) return true;
  return is_excluded(optimizer, variable->name);
}

/* Adam's variables alone have a velocity. */
static bool slot_shape(const mix_optimizer *optimizer, const mix_variable *variable, int slot,
                       mix_shape *shape) {
  *shape = variable->shape;
  return slot == MOMENTUM || is_adams(optimizer, variable);
}

static double weight_decay(const mix_optimizer *optimizer, const mix_variable *variable) {
  return is_adams(optimizer, variable) ? optimizer->options.muon.adam_weight_decay
                                       : optimizer->options.common.weight_decay;
}

static bool check(const mix_optimizer *optimizer) {
  (void)is_excluded(optimizer, "");
  return !mix_failed();
}

/* ---- the rules ---- */

/* Orthogonal as the iteration's fixed number of steps makes it: about U V' of the singular value
 * decomposition. */
static mix_tensor *orthogonalize(const mix_muon_options *options, mix_tensor *x) {
  const mix_shape shape = mix_tensor_shape(x);
  const bool tall = shape.dims[0] > shape.dims[1];
  if (tall) x = mix_transpose(x, MIX_AXES(1, 0));
  mix_tensor *norm = mix_sqrt(mix_reduce_sum(mix_square(x), MIX_ALL_AXES, true));
  x = mix_divide(x, mix_plus(norm, 1e-7));
  for (int64_t i = 0; i < options->ns_steps; i++) {
    mix_tensor *a = mix_matmul(x, x, false, true);
    mix_tensor *b =
        mix_add(mix_times(a, options->muon_b), mix_matmul(mix_times(a, options->muon_c), a, false, false));
    x = mix_add(mix_times(x, options->muon_a), mix_matmul(b, x, false, false));
  }
  return tall ? mix_transpose(x, MIX_AXES(1, 0)) : x;
}

/* m += g + m (momentum - 1); w -= lr O(g + momentum m) sqrt(max(rows, columns)) rms_rate */
static void update_matrix(mix_update *update, int index, mix_tensor *gradient) {
  mix_optimizer *optimizer = update->optimizer;
  const mix_muon_options *options = &optimizer->options.muon;
  mix_variable *variable = optimizer->trainable[index], *slot = optimizer->slots[MOMENTUM][index];
  const int64_t *dims = variable->shape.dims;
  mix_tensor *old = mix_update_get(update, slot);
  mix_tensor *momentum = mix_add(old, mix_add(gradient, mix_times(old, options->momentum - 1)));
  mix_update_set(update, slot, momentum);
  mix_tensor *direction =
      options->no_nesterov ? momentum : mix_add(gradient, mix_times(momentum, options->momentum));
  mix_tensor *step = mix_multiply(mix_update_learning_rate(update, mix_update_dtype(update, variable)),
                                  orthogonalize(options, direction));
  if (options->rms_rate != 0) {
    const double larger = (double)(dims[0] > dims[1] ? dims[0] : dims[1]);
    step = mix_times(mix_times(step, sqrt(larger)), options->rms_rate);
  }
  mix_update_set(update, variable, mix_subtract(mix_update_get(update, variable), step));
}

/* alpha = lr adam_lr_ratio sqrt(1 - beta_2^t) / (1 - beta_1^t): one scalar per dtype. */
static mix_tensor *step_size(mix_update *update, mix_dtype dtype) {
  mix_tensor **alpha = &update->shared[dtype][0];
  if (*alpha) return *alpha;
  const mix_muon_options *options = &update->optimizer->options.muon;
  mix_tensor *step = mix_update_step(update, 1, dtype), *one = mix_scalar(1, dtype);
  mix_tensor *beta_1_power = mix_power(mix_update_cast(options->adam_beta_1, dtype), step);
  mix_tensor *beta_2_power = mix_power(mix_update_cast(options->adam_beta_2, dtype), step);
  mix_tensor *rate = mix_times(mix_update_learning_rate(update, dtype), options->adam_lr_ratio);
  rate = mix_multiply(rate, mix_sqrt(mix_subtract(one, beta_2_power)));
  return *alpha = mix_divide(rate, mix_subtract(one, beta_1_power));
}

static void update_by_adam(mix_update *update, int index, mix_tensor *gradient) {
  mix_optimizer *optimizer = update->optimizer;
  const mix_muon_options *options = &optimizer->options.muon;
  mix_variable *variable = optimizer->trainable[index];
  mix_tensor *weight = mix_update_get(update, variable),
             *alpha = step_size(update, mix_update_dtype(update, variable));
  mix_tensor *momentum =
      mix_update_running_mean(update, optimizer->slots[MOMENTUM][index], options->adam_beta_1, gradient);
  mix_tensor *velocity =
      mix_update_running_mean(update, optimizer->slots[VELOCITY][index], options->adam_beta_2,
                              mix_update_gradient_square(update, gradient));
  mix_tensor *denominator =
      mix_add(mix_sqrt(velocity), mix_scalar(options->epsilon, mix_update_dtype(update, variable)));
  mix_update_set(update, variable,
                 mix_subtract(weight, mix_divide(mix_multiply(momentum, alpha), denominator)));
}

/* A matrix's step depends on all rows. */
static unsigned idle(const mix_optimizer *optimizer) { return MIX_IDLE_DENSE; }

static void update(mix_update *update, int index, mix_tensor *gradient) {
  const bool adams = update->optimizer->slots[VELOCITY] && update->optimizer->slots[VELOCITY][index];
  (adams ? update_by_adam : update_matrix)(update, index, gradient);
}

#define NUMBER(field, value)                                                                                 \
  { MIX_FIELD(mix_muon_options, field), &mix_field_number, .number = value }
const mix_optimizer_class mix_muon_class = {
    .name = "Muon",
    .lower_case_name = "muon",
    .learning_rate = 0.001,
    .weight_decay = 0.004,
    .options = {NUMBER(adam_beta_1, 0.9),
                NUMBER(adam_beta_2, 0.999),
                NUMBER(epsilon, 1e-7),
                {MIX_FIELD(mix_muon_options, exclude_layers), &texts_kind},
                NUMBER(muon_a, 3.4445),
                NUMBER(muon_b, -4.775),
                NUMBER(muon_c, 2.0315),
                NUMBER(adam_lr_ratio, 1),
                NUMBER(momentum, 0.95),
                {MIX_FIELD(mix_muon_options, ns_steps), &mix_field_integer, .number = 5,
                 .range = MIX_NOT_NEGATIVE},
                {"nesterov", offsetof(mix_muon_options, no_nesterov), &mix_field_negated},
                {"exclude_embeddings", offsetof(mix_muon_options, include_embeddings), &mix_field_negated},
                {MIX_FIELD(mix_muon_options, adam_weight_decay), &mix_field_number, .number = 0.004,
                 .optional = true},
                {MIX_FIELD(mix_muon_options, rms_rate), &mix_field_number, .number = 0.2, .optional = true,
                 .range = MIX_POSITIVE}},
    .slot_names = {{"m", "m", "momentum"}, {"v", "v", "velocity"}},
    .slot_shape = slot_shape,
    .slots_left_out = true,
    .weight_decay_of = weight_decay,
    .interleaved = 2,
    .keras3_only = true,
    .check = check,
    .idle = idle,
    .update = update,
};
#undef NUMBER

MIX_OPTIMIZER(muon, mix_muon_options)
MIX_OPTIMIZER_DEFAULTS(muon)
