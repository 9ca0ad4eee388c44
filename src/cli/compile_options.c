/* What --metrics, --loss-scale and --graph-rewrite say to compile. */
#include "base/error.h"
#include "cli/cli.h"

#include "model/model.h"
#include "optim/optimizer.h"

#include <string.h>

/* Names are separated by commas. A name's arguments follow a colon and are separated by commas too. */
bool cli_name_metrics(char *text, mix_compile_options *compile) {
  int count = 0;
  for (char *next = text; next;) {
    char *item = next;
    if ((next = strchr(item, ','))) *next++ = 0;
    char *last = count ? strchr(compile->metrics[count - 1], ':') : NULL;
    if (last && item[strcspn(item, "=:")] == '=') {
      item[-1] = ','; /* another argument of the previous metric */
      continue;
    }
    if (!*item || count == MIX_MODEL_MAX) return false;
    compile->metrics[count++] = item;
  }
  return true;
}

bool cli_keep_state(const cli_options *options, mix_optimizer *optimizer) {
  return optimizer &&
         (!options->optimizer_state || mix_optimizer_set_state(optimizer, options->optimizer_state, 0));
}

bool cli_scales(const cli_options *options) { return options->loss_scale || options->graph_rewrite; }

/* --graph-rewrite float16 scales the loss as --loss-scale says; bfloat16 needs no scaling. */
mix_optimizer *cli_scaled(const cli_options *options, const mix_model *model, mix_optimizer *optimizer) {
  if (!optimizer) return NULL;
  const char *text = options->loss_scale, *rewrite = options->graph_rewrite;
  mix_loss_scale *scale = text ? mix_loss_scale_from_text(text, optimizer->semantics) : NULL;
  const bool none = text && !scale;
  if (mix_failed()) return NULL;
  if (rewrite && (none || !strcmp(rewrite, "bfloat16")))
    return mix_set_graph_rewrite(rewrite) == MIX_OK ? optimizer : NULL;
  if (rewrite) return mix_enable_mixed_precision_graph_rewrite(optimizer, .loss_scale = scale);
  if (none) return optimizer;
  if (!scale) return mix_optimizer_for_policy(optimizer, mix_model_policy(model));
  if (mix_loss_scale_is_dynamic(scale) || !optimizer->semantics->wrapper_fixed_refused)
    return mix_optimizer_scale(optimizer, scale);
  /* keras3 */
  optimizer->options.common.loss_scale_factor = mix_loss_scale_initial(scale);
  return optimizer;
}

mix_status cli_compile_scaled(const cli_options *options, mix_model *model,
                              const mix_compile_options *compile) {
  return cli_scales(options) ? mix_model_compile_unwrapped(model, compile)
                             : mix_model_compile_with(model, compile);
}

mix_status cli_compile_again(mix_model *model) {
  mix_compile_options compile = model->state->given;
  json_t *object = mix_optimizer_to_json(model->state->optimizer),
         *config = json_incref(model->state->config);
  compile.optimizer = object ? mix_optimizer_from_json(object, model->semantics) : NULL;
  json_decref(object);
  const mix_optimizer_common *kept = &mix_optimizer_plain(model->state->optimizer)->options.common;
  if (compile.optimizer)
    mix_optimizer_set_state(mix_optimizer_plain(compile.optimizer), kept->state, kept->state_seed);
  if (compile.optimizer && mix_model_compile_with(model, &compile) == MIX_OK) {
    json_decref(model->state->config);
    model->state->config = json_incref(config);
  }
  json_decref(config);
  return mix_error();
}
