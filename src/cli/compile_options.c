/* What --metrics, --loss-scale and --graph-rewrite say to compile. */
#include "base/json.h"
#include "cli/cli.h"

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

/* --graph-rewrite float16 scales the loss as --loss-scale says; bfloat16 needs no scaling. */
static mix_optimizer *enable_rewrite(const cli_options *options, mix_optimizer *optimizer) {
  const cli_loss_scale *scale = &options->loss_scale;
  if (!strcmp(options->graph_rewrite, "bfloat16") || scale->kind == CLI_SCALE_NONE)
    return mix_set_graph_rewrite(options->graph_rewrite) == MIX_OK ? optimizer : NULL;
  if (scale->kind == CLI_SCALE_FIXED)
    return mix_enable_mixed_precision_graph_rewrite(optimizer, .fixed_loss_scale = scale->scale);
  if (scale->kind == CLI_SCALE_AUTO) return mix_enable_mixed_precision_graph_rewrite(optimizer);
  return mix_enable_mixed_precision_graph_rewrite(
      optimizer, .loss_scale = mix_dynamic_loss_scale(.initial_loss_scale = scale->scale,
                                                      .increment_period = scale->growth_steps));
}

/* Keras 3 has no fixed loss-scale wrapper: every optimizer takes a loss_scale_factor. */
static mix_optimizer *with_factor(mix_optimizer *optimizer, double factor) {
  json_t *object = mix_optimizer_to_json(optimizer);
  mix_json_set(json_object_get(object, "config"), "loss_scale_factor", json_real(factor));
  mix_optimizer *result = mix_optimizer_from_json(object, optimizer->semantics);
  json_decref(object);
  return result;
}

mix_optimizer *cli_scaled(const cli_options *options, const mix_model *model, mix_optimizer *optimizer) {
  const cli_loss_scale *scale = &options->loss_scale;
  if (optimizer && options->graph_rewrite) return enable_rewrite(options, optimizer);
  if (!optimizer || scale->kind == CLI_SCALE_NONE) return optimizer;
  bool experimental = !strcmp(options->semantics, "experimental"),
       keras3 = !strcmp(options->semantics, "keras3");
  if (scale->kind == CLI_SCALE_AUTO) return mix_optimizer_for_policy(optimizer, mix_model_policy(model));
  if (scale->kind == CLI_SCALE_FIXED) {
    if (experimental)
      return mix_loss_scale_optimizer(optimizer, .loss_scale = mix_fixed_loss_scale(scale->scale));
    if (!keras3) return mix_loss_scale_optimizer(optimizer, .fixed = true, .initial_scale = scale->scale);
    return with_factor(optimizer, scale->scale);
  }
  if (experimental)
    return mix_loss_scale_optimizer(
        optimizer, .loss_scale = mix_dynamic_loss_scale(.initial_loss_scale = scale->scale,
                                                        .increment_period = scale->growth_steps));
  return mix_loss_scale_optimizer(optimizer, .initial_scale = scale->scale,
                                  .dynamic_growth_steps = scale->growth_steps);
}
