/* Models that Keras saved: what the file chooses, and what options say instead. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/error.h"
#include "model/model.h"
#include "optim/optimizer.h"
#include <mixtape/saving.h>

#include <string.h>

bool cli_is_model_file(const cli_options *options) { return strcmp(options->model, "guide"); }

mix_model *cli_load_model(cli_options *options, bool compile) {
  const mix_semantics *semantics = options->semantics ? mix_semantics_named(options->semantics) : NULL;
  mix_model *model = mix_model_load(options->model, .semantics = semantics, .no_compile = !compile,
                                    .policy = options->policy);
  if (model && options->init_weights) mix_model_load_weights(model, options->init_weights);
  if (mix_failed()) return NULL;
  mix_layer *main_layer = mix_model_main_layer(model);
  options->semantics = mix_semantics_name(model->semantics);
  if (!options->policy)
    options->policy = mix_policy_name(main_layer ? main_layer->policy : mix_model_policy(model));
  mix_set_semantics(options->semantics);
  return mix_failed() ? NULL : model;
}

static bool says_nothing(const cli_options *options) {
  return !options->loss && !options->optimizer && !options->metrics && !options->graph_rewrite &&
         !options->jit_compile && options->loss_scale.kind == CLI_SCALE_AUTO;
}

static bool has_loss(const mix_model *model) {
  for (int i = 0; model->state && i < model->state->output_count; i++)
    if (model->state->losses[i]) return true;
  return false;
}

/* Without its options the file's optimizer is the one that it saved, with its state. */
static mix_optimizer *choose_optimizer(const cli_options *options, const mix_model *model) {
  mix_optimizer *base = options->optimizer ? mix_optimizer_from_text(options->optimizer, model->semantics)
                        : model->state     ? model->state->given_optimizer
                                           : mix_optimizer_from_text("rmsprop", model->semantics);
  if (!base || (options->loss_scale.kind == CLI_SCALE_AUTO && !options->graph_rewrite)) return base;
  return cli_scaled(options, model, mix_optimizer_plain(base));
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
  model->keeps_optimizer = options->loss_scale.kind != CLI_SCALE_AUTO || options->graph_rewrite;
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
  if (!mix_failed()) mix_model_compile_with(model, &compile);
  mix_free(metrics);
  return mix_error();
}
