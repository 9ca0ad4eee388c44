/* Options that exclude or require each other, and sizes that do not fit. */
#include "cli/options.h"

#include <string.h>

enum { MAX_SIDE = 4096, MAX_CLASSES = 1 << 20 };

bool cli_take_dtype(const char *command, cli_options *options) {
  static const char *const policies[][2] = {
      {"fp32", "float32"}, {"fp16", "mixed_float16"}, {"bf16", "mixed_bfloat16"}};
  if (!options->dtype) return true;
  for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
    if (strcmp(policies[i][0], options->dtype)) continue;
    if (options->policy && strcmp(options->policy, policies[i][1])) {
      fprintf(stderr, "mixtape %s: --dtype %s is short for --policy %s, and --policy is %s; give one\n",
              command, options->dtype, policies[i][1], options->policy);
      return false;
    }
    options->policy = policies[i][1];
  }
  return true;
}

/* Options of the guide's model or of the Transformer beside another. */
static bool belongs(const char *command, const cli_options *options) {
  const bool guide = cli_is_guide(options), tokens = cli_is_token_model(options->model);
  const char *of_guide = !strcmp(options->loop, "custom") ? "--loop custom"
                         : options->units && !tokens      ? "--units"
                                                          : NULL;
  const char *of_tokens = options->layers        ? "--layers"
                          : options->heads       ? "--heads"
                          : options->filter_size ? "--filter-size"
                          : options->length      ? "--length"
                                                 : NULL;
  const char *extra = of_guide && !guide ? of_guide : of_tokens && !tokens ? of_tokens : NULL;
  if (extra)
    fprintf(stderr, "mixtape %s: %s belongs to --model %s, and the model is %s\n", command, extra,
            extra == of_guide ? "guide" : "transformer", options->model);
  return !extra;
}

/* Sizes that a model or its data have already. */
static bool sizes_fit(const char *command, const cli_options *options) {
  const bool named = !cli_is_guide(options) && !cli_is_model_file(options),
             synthetic = options->data && !strcmp(options->data, "synthetic");
  if (named && !cli_named_model_fits(options, command)) return false;
  if (!named && !options->data && (options->image_size || options->classes))
    fprintf(stderr, "mixtape %s: --%s belongs to a model by name, and the model is %s\n", command,
            options->image_size ? "image-size" : "classes", options->model);
  else if (!named && options->image_size && !synthetic)
    fprintf(stderr, "mixtape %s: --image-size belongs to --data synthetic, and the data are %s\n", command,
            options->data);
  else if (options->classes && !synthetic && cli_is_model_file(options))
    fprintf(stderr, "mixtape %s: --classes belongs to --data synthetic, and %s has its own\n", command,
            options->model);
  else if (options->image_size > MAX_SIDE)
    fprintf(stderr, "mixtape %s: --image-size: '%lld' given; expected a side of at most %d\n", command,
            (long long)options->image_size, MAX_SIDE);
  else if (options->classes > MAX_CLASSES)
    fprintf(stderr, "mixtape %s: --classes: '%lld' given; expected at most %d\n", command,
            (long long)options->classes, MAX_CLASSES);
  else
    return true;
  return false;
}

bool cli_options_agree(const char *command, const cli_options *options) {
  if (!belongs(command, options) || !sizes_fit(command, options) ||
      !cli_lora_options_agree(command, options) || !cli_table_options_agree(command, options))
    return false;
  if (!options->checkpoint && (options->resume || options->checkpoint_freq)) {
    fprintf(stderr, "mixtape %s: %s needs --checkpoint DIR, the folder of the checkpoints\n", command,
            options->resume ? "--resume" : "--checkpoint-freq");
    return false;
  }
  if (cli_shards(options) && !cli_is_distributed(options)) {
    fprintf(stderr, "mixtape %s: --shard optimizer divides it among ranks; it needs --distribute mpi\n",
            command);
    return false;
  }
  if (options->weight_map && !options->init_weights) {
    fprintf(stderr,
            "mixtape %s: --weight-map needs --init-weights FILE.safetensors, the file that it is for\n",
            command);
    return false;
  }
  if (options->remat && !strcmp(command, "bench") && cli_is_guide(options)) {
    fprintf(stderr, "mixtape bench: --remat belongs to --model NAME or FILE; the guide's table has none\n");
    return false;
  }
  if (!cli_shards_agree(command, options->save, options->max_shard_size)) return false;
  if (strcmp(options->loop, "custom")) return true;
  const char *extra = options->class_weight                  ? "--class-weight"
                      : options->callback_count              ? "--callback"
                      : options->tensorboard                 ? "--tensorboard"
                      : strcmp(options->metrics, "accuracy") ? "--metrics"
                                                             : NULL;
  if (extra)
    fprintf(stderr,
            "mixtape %s: %s belongs to --loop fit; the custom loop weighs no classes, measures accuracy and "
            "calls no callbacks\n",
            command, extra);
  return !extra;
}
