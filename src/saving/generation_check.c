/* What another generation of Keras lacks, or computes by another rule, of a model that is saved for it. */
#include "base/error.h"
#include "nn/layers/builtin.h"
#include "nn/policy/loss_scale.h"
#include "optim/optimizer.h"
#include "saving/model_json.h"
#include "saving/write_weights.h"
#include <string.h>

typedef struct check {
  const mix_semantics *from, *to;
  const char *call;
  bool refused; /* by check_masks */
} check;

static bool differs(const mix_semantics *a, const mix_semantics *b, size_t rule) {
  return *((const bool *)a + rule) != *((const bool *)b + rule);
}

/* ---- layers: errors ---- */

static bool has_class(const check *c, const mix_layer *layer) {
  const mix_layer_kind *kind = layer->kind;
  if (!kind || !(c->to->layer_names_keras3 ? kind->tf_keras_only : kind->keras3_only)) return true;
  return mix_fail_unsupported(
      "%s: %s has no class %s, so that it cannot load the layer '%s'; save for %s, or put layers "
      "in its place that both have",
      c->call, c->to->name, kind->class.name, layer->name, c->from->name);
}

static bool has_policy(const check *c, const mix_layer *layer) {
  if (!layer->policy->map || c->to->policy_maps) return true;
  return mix_fail_unsupported(
      "%s: %s has no policies by layer, and the layer '%s' has the map '%s'; save for %s, or give the layer "
      "the policy '%s'",
      c->call, c->to->name, layer->name, layer->policy->name, c->from->name,
      mix_layer_own_policy(layer)->name);
}

static bool has_options(const check *c, const mix_layer *layer) {
  const char *option = mix_layer_lost_option(layer, c->to);
  if (option)
    mix_fail_unsupported(
        "%s: %s has no option %s of %s, which the layer '%s' sets; save for %s, or leave it out", c->call,
        c->to->name, option, layer->class.name, layer->name, c->from->name);
  return !mix_failed();
}

/* The one activation that both have under one name and compute otherwise. */
static bool has_activations(const check *c, const mix_layer *layer, const json_t *config) {
  const char *key;
  json_t *value;
  if (!differs(c->from, c->to, MIX_RULE(hard_sigmoid_relu6))) return true;
  json_object_foreach((json_t *)config, key, value) {
    const char *name = json_string_value(value);
    if (name && !strcmp(name, "hard_sigmoid") && strstr(key, "activation"))
      return mix_fail_unsupported(
          "%s: %s computes hard_sigmoid, the %s of the layer '%s', by another formula than %s, so "
          "that the file would predict other numbers; save for %s",
          c->call, c->to->name, key, layer->name, c->from->name, c->from->name);
  }
  return true;
}

/* They count from the end of other shapes. */
static bool has_axes(const check *c, const mix_layer *layer, const json_t *config) {
  const json_t *axes = json_object_get(config, "attention_axes");
  bool negative = json_is_integer(axes) && json_integer_value(axes) < 0;
  for (size_t i = 0; i < json_array_size(axes); i++)
    negative |= json_integer_value(json_array_get(axes, i)) < 0;
  if (!negative || !differs(c->from, c->to, MIX_RULE(attention_axes_of_inputs))) return true;
  return mix_fail_unsupported(
      "%s: %s counts the negative attention_axes of the layer '%s' from another end than %s; give "
      "axes from 0 on",
      c->call, c->to->name, layer->name, c->from->name);
}

static bool has_numbers(const check *c, mix_layer *layer) {
  json_t *config = mix_layer_config_json(layer);
  const bool good = config && has_activations(c, layer, config) && has_axes(c, layer, config);
  json_decref(config);
  return good;
}

/* ---- masks ---- */

static const struct {
  const mix_layer_kind *kind;
  size_t rule;
} masked_rules[] = {{&mix_add_layer_kind, MIX_RULE(merge_keeps_any)},
                    {&mix_subtract_layer_kind, MIX_RULE(merge_keeps_any)},
                    {&mix_multiply_layer_kind, MIX_RULE(merge_keeps_any)},
                    {&mix_average_kind, MIX_RULE(merge_keeps_any)},
                    {&mix_maximum_layer_kind, MIX_RULE(merge_keeps_any)},
                    {&mix_minimum_layer_kind, MIX_RULE(merge_keeps_any)},
                    {&mix_concatenate_kind, MIX_RULE(merge_keeps_any)},
                    {&mix_rescaling_kind, MIX_RULE(preprocessing_passes_masks)},
                    {&mix_normalization_kind, MIX_RULE(preprocessing_passes_masks)},
                    {&mix_multi_head_attention_kind, MIX_RULE(attention_masks_carried)},
                    {&mix_attention_kind, MIX_RULE(attention_masks_carried)},
                    {&mix_additive_attention_kind, MIX_RULE(attention_masks_carried)}};

/* Any of them, and all of them, is then the same. */
static bool is_one_mask(const mix_list *masks) {
  for (int i = 1; masks && i < mix_list_count(masks); i++)
    if (mix_list_items(masks)[i] != mix_list_items(masks)[0]) return false;
  return true;
}

/* Layers behind it would count other steps; of attention only where a mask was given. */
static void check_rule(check *c, const mix_layer *layer, const mix_list *masks, size_t rule) {
  static const char text[] = "%s: the layer '%s' has a mask, which %s passes on by another rule than %s%s";
  if (rule == MIX_RULE(merge_keeps_any) && is_one_mask(masks)) return;
  c->refused |= rule != MIX_RULE(attention_masks_carried);
  if (rule == MIX_RULE(attention_masks_carried))
    mix_log_message(MIX_LOG_WARNING, text, c->call, layer->name, c->to->name, c->from->name,
                    ": steps that are masked may count otherwise there");
  else
    mix_fail_unsupported(
        text, c->call, layer->name, c->to->name, c->from->name,
        ", so that the file would predict other numbers; join or scale tensors before they are masked");
}

static void check_masks(void *context, const mix_layer *layer, const mix_list *masks) {
  check *c = context;
  for (size_t i = 0; i < sizeof masked_rules / sizeof *masked_rules; i++)
    if (layer->kind == masked_rules[i].kind && differs(c->from, c->to, masked_rules[i].rule))
      check_rule(c, layer, masks, masked_rules[i].rule);
}

/* Symbolic tensors that the model takes; NULL: a sequential one that was not called yet. */
static mix_list *inputs_of(const mix_layer *model) {
  if (mix_layer_is_functional(model)) {
    const mix_functional *graph = mix_layer_data((mix_layer *)model);
    return mix_list_new(graph->input_count, (void *const *)graph->inputs);
  }
  const mix_sequential_data *data = model->data;
  mix_node *node = data->shape.rank ? mix_node_placeholder(data->dtype, data->shape, true) : NULL;
  mix_tensor *tensor = node ? mix_tensor_of(node, 0) : NULL;
  mix_release(node);
  return tensor ? mix_list_of(tensor) : NULL;
}

/* Calls the model again, for inner models and sequential ones have no record of the masks that reach them.
 * Not all layers of users can be called so. */
static bool check_calls(check *c, mix_layer *model) {
  const mix_layer_observer observer = {.masked = check_masks, .context = c};
  MIX_SCOPE {
    mix_list *inputs = inputs_of(model);
    const mix_layer_observer *former = mix_layer_observer_set(&observer);
    if (inputs)
      mix_layer_call_outputs(model, inputs, mix_list_count(inputs) > 1, NULL, NULL, NULL, MIX_FALSE, NULL);
    mix_layer_observer_set(former);
  }
  if (mix_failed() && !c->refused && mix_error() != MIX_MEMORY_ERROR) mix_error_clear();
  return !mix_failed();
}

/* ---- the walk ---- */

/* `outer`: the layer around it; a Bidirectional sets an option of its layers in every generation. */
static bool check_layers(const check *c, mix_layer *layer, const mix_layer *outer) {
  const bool chosen = outer && outer->kind == &mix_bidirectional_kind;
  if (!mix_layer_is_structured(layer) && !layer->is_input &&
      !(has_class(c, layer) && has_policy(c, layer) && (chosen || has_options(c, layer)) &&
        has_numbers(c, layer)))
    return false;
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    if (!check_layers(c, mix_list_items(layer->layers)[i], layer)) return false;
  return !mix_failed();
}

/* ---- optimizers: errors ---- */

/* Of the legacy family's one option of its own, decay, reading the twin warns. */
static bool has_optimizer(const check *c, const mix_optimizer *optimizer) {
  const mix_optimizer *plain = mix_optimizer_plain(optimizer);
  const char *option = plain->rules->saved_as ? NULL : mix_optimizer_lost_option(plain, c->to);
  if (plain->class->keras3_only && !c->to->layer_names_keras3)
    mix_fail_unsupported(
        "%s: %s has no optimizer %s, so that it cannot load the model with '%s'; save for %s, or without "
        "the optimizer",
        c->call, c->to->name, plain->class->name, plain->name, c->from->name);
  else if (option)
    mix_fail_unsupported(
        "%s: %s has no option %s of %s, which the optimizer '%s' sets; save for %s, or without the "
        "optimizer",
        c->call, c->to->name, option, plain->class->name, plain->name, c->from->name);
  return !mix_failed();
}

/* ---- optimizers: warnings ---- */

static const struct {
  const mix_optimizer_class *class;
  size_t rule;
  const char *what;
} optimizer_rules[] = {{&mix_rmsprop_class, MIX_RULE(rmsprop_epsilon_outside), "where epsilon is added"},
                       {&mix_adagrad_class, MIX_RULE(adagrad_epsilon_outside), "where epsilon is added"},
                       {&mix_adamax_class, MIX_RULE(adamax_bias_outside), "where epsilon is added"},
                       {&mix_nadam_class, MIX_RULE(nadam_product_per_variable), "how its momentum grows"}};

static void warn_of_rules(const check *c, const mix_optimizer *optimizer) {
  const mix_optimizer *plain = mix_optimizer_plain(optimizer);
  const bool legacy = plain->rules->saved_as && c->to->config_says_not_legacy; /* it stays so */
  for (size_t i = 0; !legacy && i < sizeof optimizer_rules / sizeof *optimizer_rules; i++)
    if (plain->class == optimizer_rules[i].class && differs(plain->rules, c->to, optimizer_rules[i].rule))
      mix_log_message(MIX_LOG_WARNING,
                      "%s: the optimizer '%s' trains on by another rule in %s than in %s: %s", c->call,
                      plain->name, c->to->name, c->from->name, optimizer_rules[i].what);
}

static void warn_of_loss_scale(const check *c, mix_loss_scale *scale) {
  double now = scale->initial;
  if (!scale->dynamic || c->to->wrapper_state_in_variables || !c->from->wrapper_state_in_variables) return;
  MIX_SCOPE { now = mix_tensor_item(mix_variable_true_value(scale->scale)); }
  if (now != scale->initial)
    mix_log_message(
        MIX_LOG_WARNING,
        "%s: the loss scale %g is left out: files of %s do not keep it, and training begins there "
        "with %g again",
        c->call, now, c->to->name, scale->initial);
}

static void warn_of_state(const check *c, const mix_optimizer *optimizer) {
  const mix_optimizer *plain = mix_optimizer_plain(optimizer);
  if (plain->built && plain->product && !c->to->nadam_product_saved)
    mix_log_message(MIX_LOG_WARNING,
                    "%s: the momentum product of the optimizer '%s' is left out: files of %s do not keep it",
                    c->call, plain->name, c->to->name);
  if (optimizer->loss_scale) warn_of_loss_scale(c, optimizer->loss_scale);
}

bool mix_check_generation(mix_model *model, const mix_semantics *semantics, bool compiled, const char *call) {
  check c = {model->semantics, semantics, call};
  if (!check_layers(&c, model->layer, NULL) || !check_calls(&c, model->layer)) return false;
  const mix_optimizer *optimizer = compiled ? model->state->optimizer : NULL;
  if (!optimizer || !has_optimizer(&c, optimizer)) return !mix_failed();
  warn_of_rules(&c, optimizer);
  warn_of_state(&c, optimizer);
  return !mix_failed();
}

/* ---- what that Keras does not read of a file ---- */

void mix_warn_of_lost_state(const mix_model *model, const char *path, const char *call) {
  const mix_optimizer *optimizer = model->state ? model->state->optimizer : NULL;
  if (!optimizer || mix_file_kind_of(path) != MIX_FILE_LEGACY) return;
  const mix_optimizer *plain = mix_optimizer_plain(optimizer);
  const mix_semantics *rules = model->semantics;
  if (plain->built && rules->h5_optimizer_unbuilt)
    mix_log_message(
        MIX_LOG_WARNING,
        "%s: %s does not train on from an .h5 before it is compiled again, without the state of the "
        "optimizer '%s'; a .keras keeps it",
        call, rules->name, plain->name);
  else if (plain->built && plain != optimizer && rules->wrapper_h5_state_lost && !plain->rules->saved_as)
    mix_log_message(MIX_LOG_WARNING,
                    "%s: %s begins the state of the optimizer '%s' anew when it loads an .h5 with a "
                    "LossScaleOptimizer; a .keras keeps it",
                    call, rules->name, plain->name);
}
