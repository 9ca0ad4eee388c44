/* Models that Keras saved: what the file chooses, and what options say instead. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/error.h"
#include "model/model.h"
#include "optim/optimizer.h"

#include <string.h>

bool cli_is_model_file(const cli_options *options) { return !cli_is_named_model(options->model); }

mix_model *cli_load_model(cli_options *options, cli_compilation compilation) {
  const mix_semantics *semantics = options->semantics ? mix_semantics_named(options->semantics) : NULL;
  const bool no_loss = compilation != CLI_COMPILED;
  mix_policy *map = options->policy_map ? cli_read_policy_map(options->policy_map) : NULL;
  mix_model *model =
      mix_model_load(options->model, .semantics = semantics, .policy = options->policy, .policy_map = map,
                     .float32_layers = options->float32_layers, .no_compile = compilation == CLI_NOT_COMPILED,
                     .no_loss = no_loss || options->loss, .no_metrics = no_loss || options->metrics,
                     .no_optimizer = options->optimizer);
  if (!(model = cli_begin_weights(options, model))) return NULL;
  mix_layer *main_layer = mix_model_main_layer(model);
  options->semantics = mix_semantics_name(model->semantics);
  if (!options->policy)
    options->policy = mix_policy_name(main_layer ? main_layer->policy : mix_model_policy(model));
  if (options->graph_rewrite && options->policy && !strncmp(options->policy, "mixed_", 6))
    return mix_fail_value(
        "%s computes under %s already; the graph rewrite is for float32 models: train it without the rewrite",
        options->model, options->policy);
  mix_set_semantics(options->semantics);
  return mix_failed() ? NULL : model;
}

static bool says_nothing(const cli_options *options) {
  return !options->loss && !options->optimizer && !options->optimizer_state && !options->metrics &&
         !options->graph_rewrite && !options->jit_compile && !options->loss_scale;
}

static bool has_loss(const mix_model *model) {
  for (int i = 0; model->state && i < model->state->output_count; i++)
    if (model->state->losses[i]) return true;
  return false;
}

/* A new optimizer of the same config, because an optimizer can be wrapped only once. */
static mix_optimizer *copy_optimizer(const mix_optimizer *optimizer) {
  json_t *object = mix_optimizer_to_json(mix_optimizer_plain(optimizer));
  mix_optimizer *copy = object ? mix_optimizer_from_json(object, optimizer->semantics) : NULL;
  json_decref(object);
  return copy;
}

static bool copies_optimizer(const cli_options *options, const mix_model *model) {
  return (cli_scales(options) || options->optimizer_state) && !options->optimizer && model->state;
}

/* Without options the file's optimizer stays, in the wrapper that compile made for it. */
static mix_optimizer *choose_optimizer(const cli_options *options, const mix_model *model) {
  mix_optimizer *base = NULL;
  if (options->optimizer || !model->state)
    base = mix_optimizer_from_text(options->optimizer ? options->optimizer : "rmsprop", model->semantics);
  else if (copies_optimizer(options, model))
    base = copy_optimizer(model->state->optimizer);
  else
    return model->state->optimizer;
  if (!cli_keep_state(options, base)) return NULL;
  return cli_scales(options) ? cli_scaled(options, model, base) : base;
}

/* A copied optimizer gets the state that the file has. */
static mix_status read_state(const cli_options *options, mix_model *model) {
  mix_optimizer *plain = mix_optimizer_plain(model->state->optimizer);
  if (mix_optimizer_build(plain, mix_model_trainable_variables(model))) return mix_error();
  mix_model_load_weights(model, options->model);
  if (options->init_weights) cli_load_weights(options, model);
  return mix_error();
}

mix_status cli_compile_file(const cli_options *options, mix_model *model) {
  if (!options->loss && !has_loss(model))
    return mix_fail_status(MIX_VALUE_ERROR,
                           "%s was saved without a loss, and none is given; expected --loss NAME",
                           options->model);
  if (says_nothing(options)) return MIX_OK;
  mix_compile_options compile = {.size = sizeof compile};
  if (model->state) compile = model->state->given;
  compile.optimizer = choose_optimizer(options, model);
  const bool copied = copies_optimizer(options, model) && !cli_adds_lora(options);
  if (options->jit_compile) compile.jit_compile = true;
  if (options->loss) {
    compile.loss = options->loss;
    compile.loss_object = NULL, compile.loss_objects = NULL;
    memset(compile.losses, 0, sizeof compile.losses);
  }
  char *metrics = options->metrics ? mix_strdup(options->metrics) : NULL;
  if (metrics) {
    compile.metric_objects = NULL;
    memset(compile.metrics, 0, sizeof compile.metrics);
    cli_name_metrics(metrics, &compile);
  }
  if (!mix_failed()) cli_compile_scaled(options, model, &compile);
  mix_free(metrics);
  return copied && !mix_failed() ? read_state(options, model) : mix_error();
}
