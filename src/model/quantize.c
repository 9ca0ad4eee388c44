/* mix_model_quantize: which layers of a model get another mode (Keras's Model.quantize). */
#include "base/alloc.h"
#include "base/error.h"
#include "model/model.h"
#include "nn/policy/quantization.h"
#include <regex.h>
#include <stdio.h>
#include <string.h>

#define CALL "model_quantize"

enum { DEFAULT_HISTORY = 1024 };

/* ---- filters ---- */

typedef struct filters {
  const mix_quantize_options *options;
  regex_t *expressions;
  int count;
  bool *found; /* by expression: a layer that has it */
} filters;

static void release_filters(filters *f) {
  for (int i = 0; i < f->count; i++) regfree(&f->expressions[i]);
  mix_free(f->expressions);
  mix_free(f->found);
}

static bool add_filter(filters *f, const char *text) {
  char reason[128] = "it is NULL";
  const int problem = text ? regcomp(&f->expressions[f->count], text, REG_EXTENDED | REG_NOSUB) : REG_BADPAT;
  if (!problem) return ++f->count;
  if (text) regerror(problem, &f->expressions[f->count], reason, sizeof reason);
  return mix_fail_value(CALL ": the filter \"%.100s\" is no regular expression: %s", text ? text : "",
                        reason);
}

static bool make_filters(filters *f, const mix_quantize_options *o) {
  *f = (filters){.options = o};
  if (o->filter_count < 0 || (o->filter_count && !o->filters))
    return mix_fail_value(CALL ": filter_count is %d%s; expected 0 or more, and their texts", o->filter_count,
                          o->filters ? "" : " of filters NULL");
  if (o->chooses && (o->filter || o->filter_count))
    return mix_fail_value(CALL ": both chooses and filters are given; give one");
  f->expressions = mix_calloc((size_t)o->filter_count + 1, sizeof *f->expressions);
  f->found = mix_calloc((size_t)o->filter_count + 1, sizeof *f->found);
  bool good = f->expressions && f->found && (!o->filter || add_filter(f, o->filter));
  for (int i = 0; i < o->filter_count && good; i++) good = add_filter(f, o->filters[i]);
  return good;
}

static bool passes(const filters *f, const mix_layer *layer) {
  if (f->options->chooses) return f->options->chooses(f->options->context, layer);
  bool found = !f->count;
  for (int i = 0; i < f->count; i++)
    if (!regexec(&f->expressions[i], layer->name, 0, NULL, 0)) found = f->found[i] = true;
  return found;
}

/* A slip in an expression would otherwise leave a model as it was without a word. */
static void warn_of_unused(const filters *f, const mix_model *model) {
  for (int i = 0; i < f->count; i++) {
    const mix_quantize_options *o = f->options;
    const char *text = o->filter ? i ? o->filters[i - 1] : o->filter : o->filters[i];
    if (!f->found[i])
      mix_log_message(MIX_LOG_WARNING,
                      CALL
                      ": the filter \"%.100s\" is found in no layer's name of '%s'; layers inside others "
                      "are found by their own names",
                      text, model->layer->name);
  }
}

/* ---- layers ---- */

/* Appends the layers without inner layers, each once. */
static void collect_leaves(mix_layer *layer, mix_list *leaves) {
  const int count = mix_list_count(layer->layers);
  for (int i = 0; i < count; i++) collect_leaves(mix_list_items(layer->layers)[i], leaves);
  for (int i = 0; i < mix_list_count(leaves); i++)
    if (mix_list_items(leaves)[i] == layer) return;
  if (!count) mix_list_append(leaves, layer);
}

/* Can it be quantized now? False without an error: it stays as it is. */
static bool check_layer(const mix_layer *layer, const mix_quantization *to) {
  const char *mode = mix_layer_quantization_mode(layer);
  if (!layer->kind || !layer->kind->quantize ||
      !mix_quantization_has_layer(to->config.mode, layer->class.name)) {
    if (layer->is_model) return false;
    mix_log_message(MIX_LOG_WARNING, CALL ": layer '%s', of the class %s, has no mode %s; it stays as it is",
                    layer->name, mix_layer_keras_name(layer), to->config.mode);
    return false;
  }
  if (mix_policy_is_map(layer->policy))
    return mix_fail_value(
        CALL ": layer '%s' has the policy '%s', a map; put a policy such as 'float8_from_float32' "
             "into the map, or quantize a model without one",
        layer->name, layer->policy->name);
  if (mode)
    return mix_fail_value(CALL ": layer '%s' is already quantized, with the policy '%s'; expected a model "
                               "that is not, or filters that leave this layer out",
                          layer->name, layer->policy->name);
  if (!layer->built)
    return mix_fail_value(CALL ": layer '%s' has no weights yet; build it, or call the model, before",
                          layer->name);
  if (layer->lora && !strcmp(to->config.mode, "float8"))
    return mix_fail_unsupported(CALL ": layer '%s' has LoRA, which Keras does not combine with float8; merge "
                                     "it before, or leave the layer out",
                                layer->name);
  if (!strcmp(to->config.mode, "int8") && layer->compute == MIX_FLOAT16)
    return mix_fail_value(CALL ": layer '%s' computes in float16, for which int8 is too coarse; expected a "
                               "policy such as 'mixed_bfloat16'",
                          layer->name);
  return !layer->kind->check_quantization || layer->kind->check_quantization(layer, to);
}

/* The layer that has the leaf in it and one of its weights too, as SpectralNormalization has; NULL: none. */
static const mix_layer *holder_of_weight(const mix_layer *outer, const mix_layer *leaf) {
  const mix_layer *found = NULL;
  for (int i = 0; i < mix_list_count(outer->layers) && !found; i++) {
    const mix_layer *inner = mix_list_items(outer->layers)[i];
    for (int w = 0; inner == leaf && leaf->weights && w < mix_list_count(leaf->weights) && !found; w++)
      for (int k = 0; outer->weights && k < mix_list_count(outer->weights); k++)
        if (mix_list_items(outer->weights)[k] == mix_list_items(leaf->weights)[w]) found = outer;
    if (!found) found = holder_of_weight(inner, leaf);
  }
  return found;
}

/* Integers take the place of a weight that nobody else may change. */
static bool is_alone(const mix_model *model, const mix_layer *leaf, const mix_quantization *to) {
  const mix_layer *holder = strcmp(to->config.mode, "float8") ? holder_of_weight(model->layer, leaf) : NULL;
  return !holder ||
         mix_fail_unsupported(CALL ": layer '%s' around '%s' changes its weights, which %s cannot keep; "
                                   "expected filters that leave '%s' out",
                              holder->name, leaf->name, to->config.mode, leaf->name);
}

/* The leaves that pass and can be quantized: all are checked before the first changes. */
static mix_list *choose_layers(mix_model *model, const filters *f, const mix_quantization *to) {
  mix_list *leaves = mix_list_new(0, NULL), *chosen = mix_list_new(0, NULL);
  if (!leaves || !chosen) return NULL;
  collect_leaves(model->layer, leaves);
  for (int i = 0; i < mix_list_count(leaves) && !mix_failed(); i++) {
    mix_layer *layer = mix_list_items(leaves)[i];
    if (passes(f, layer) && check_layer(layer, to) && is_alone(model, layer, to))
      mix_list_append(chosen, layer);
  }
  if (!mix_failed()) warn_of_unused(f, model);
  return mix_failed() ? NULL : chosen;
}

/* ---- the call ---- */

static double number_or(double given, double otherwise) {
  return given == 0 ? otherwise : given == MIX_ZERO ? 0 : given;
}

/* A range or an epsilon of the caller's own. */
static void set_quantizer(int low, int high, double epsilon, mix_abs_max *quantizer) {
  if (!low && !high && epsilon == 0) return;
  quantizer->given = true;
  if (low || high) quantizer->low = low, quantizer->high = high;
  quantizer->epsilon = number_or(epsilon, quantizer->epsilon);
}

static bool has_integer_options(const mix_quantize_options *o) {
  return o->block_size || o->weights_only || o->quantize_inputs || o->weight_low || o->weight_high ||
         o->input_low || o->input_high || o->weight_epsilon != 0 || o->input_epsilon != 0;
}

/* The options of int8 and int4. */
static bool resolve_integers(const mix_quantize_options *o, mix_quantization_config *config) {
  mix_quantization_config int8;
  mix_quantization_config_default("int8", &int8);
  const bool int4 = !strcmp(config->mode, "int4"), inputs = o->input_low || o->input_high || o->input_epsilon;
  if (o->weights_only && (o->quantize_inputs || inputs))
    return mix_fail_value(CALL ": both weights_only and options of the inputs are given; give one");
  if (!int4 && o->block_size)
    return mix_fail_value(CALL ": block_size is %lld in the mode \"int8\", which has no blocks; expected 0",
                          (long long)o->block_size);
  if (o->block_size) config->block_size = o->block_size;
  if (o->quantize_inputs || inputs) config->inputs = int8.inputs;
  if (o->weights_only) config->inputs.given = false;
  set_quantizer(o->weight_low, o->weight_high, o->weight_epsilon, &config->weights);
  if (config->inputs.given) set_quantizer(o->input_low, o->input_high, o->input_epsilon, &config->inputs);
  return mix_quantization_config_check(config, CALL);
}

/* The name of the policy's mode, which has int4's blocks. */
static void name_mode(mix_quantization *to) {
  to->mode = to->config.mode;
  if (strcmp(to->mode, "int4")) return;
  snprintf(to->text, sizeof to->text, "int4/%lld", (long long)to->config.block_size);
  to->mode = to->text;
}

static bool resolve(const mix_model *model, const mix_quantize_options *o, mix_quantization *to) {
  *to = (mix_quantization){.amax_history_length =
                               o->amax_history_length ? o->amax_history_length : DEFAULT_HISTORY};
  if (!o->mode) return mix_fail_value(CALL ": no mode; expected \"int8\", \"int4\" or \"float8\"");
  const bool calibrated = !strcmp(o->mode, "gptq") || !strcmp(o->mode, "awq");
  if (!calibrated && (!mix_quantization_known(o->mode) || strchr(o->mode, '/')))
    return mix_fail_value(CALL ": the mode \"%.60s\" is none of int8, float8, int4, gptq and awq", o->mode);
  if (calibrated || !mix_quantization_config_default(o->mode, &to->config))
    return mix_fail_unsupported(
        CALL ": the mode \"%.60s\" is not supported; expected \"int8\", \"int4\" or \"float8\"", o->mode);
  if (to->amax_history_length < 1 || to->amax_history_length > INT32_MAX)
    return mix_fail_value(CALL ": amax_history_length is %lld; expected 1 or more, up to 2147483647",
                          (long long)o->amax_history_length);
  if (!strcmp(o->mode, "float8") && has_integer_options(o))
    return mix_fail_value(CALL ": options of int8 and int4 are given in the mode \"float8\"; expected none");
  if (strcmp(o->mode, "float8") && !resolve_integers(o, &to->config)) return false;
  name_mode(to);
  if (!model->semantics->policy_quantized)
    return mix_fail_value(CALL ": '%s' is a model of %s, which has no quantization; expected one of keras3, "
                               "which `mixtape convert --semantics keras3` makes of it",
                          model->layer->name, model->semantics->name);
  return mix_model_weights_ready(model, CALL);
}

/* Functions of the model are captured again: the epoch of captures moves with each layer. */
static bool quantize(mix_model *model, const mix_quantize_options *o) {
  mix_quantization to;
  filters f = {0};
  const bool good = resolve(model, o, &to) && make_filters(&f, o);
  mix_list *chosen = good ? choose_layers(model, &f, &to) : NULL;
  release_filters(&f);
  for (int i = 0; chosen && i < mix_list_count(chosen) && !mix_failed(); i++)
    mix_layer_quantize(mix_list_items(chosen)[i], &to);
  if (chosen) mix_predictors_drop(model);
  return !mix_failed();
}

mix_status mix_model_quantize_with(mix_model *model, const mix_quantize_options *given) {
  if (!mix_model_given(model, CALL)) return mix_error();
  mix_quantize_options o = {0};
  if (!mix_options_copy(&o, sizeof o, given, CALL)) return mix_error();
  MIX_MODEL_USE(model, MIX_CHANGES_MODEL, CALL) {
    MIX_SCOPE { quantize(model, &o); }
  }
  return mix_error();
}
