/* Set-up shared by the sub-commands: process-wide options, data, model, compilation. */
#include "cli/cli.h"
#include "model/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"

#include <string.h>

int cli_verbose(const cli_options *options) {
  return options->verbose < 0 ? 0 : options->verbose == 0 ? MIX_SILENT : (int)options->verbose;
}

/* Splits --metrics into names separated by commas. A name's arguments follow a colon and are separated by
 * commas too. Cuts `text`, which the names point into. False if a name is empty or there are too many. */
static bool name_metrics(char *text, mix_compile_options *compile) {
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

/* Reports a pending error as one of the option. */
static int check_option(const char *option) {
  if (mix_error() == MIX_OK) return CLI_OK;
  fprintf(stderr, "mixtape: --%s: %s: %s\n", option, mix_status_name(mix_error()), mix_error_message());
  const int code = cli_option_code();
  mix_error_clear();
  return code;
}

/* Checks that a metric's name does not clash with other members of the logs or with the `count` metrics
 * before it. */
static int check_name(const mix_metric *metric, const char *const *before, int count) {
  static const char *const reserved[] = {"loss", "step", "applied", "iterations", "loss_scale", "good_steps"};
  for (int i = 0; metric && i < count; i++)
    if (!strcmp(mix_metric_name(metric), before[i])) {
      fprintf(stderr,
              "mixtape: --metrics: two metrics are called '%s'; leave one out, or name it, as in "
              "auc:name=another\n",
              before[i]);
      return CLI_USAGE;
    }
  for (size_t i = 0; metric && i < sizeof reserved / sizeof *reserved; i++)
    if (!strcmp(mix_metric_name(metric), reserved[i])) {
      fprintf(stderr,
              "mixtape: --metrics: a metric cannot be called '%s', which the logs have already; "
              "give another name\n",
              reserved[i]);
      return CLI_USAGE;
    }
  return CLI_OK;
}

static int try_metrics(const cli_options *options) {
  mix_compile_options compile = {.size = sizeof compile};
  char *text = mix_strdup(options->metrics);
  int code = CLI_OK;
  if (!text) {
    code = check_option("metrics");
  } else if (!name_metrics(text, &compile)) {
    fprintf(stderr, "mixtape: --metrics: '%s' given; expected names with commas between, at most %d\n",
            options->metrics, MIX_MODEL_MAX);
    code = CLI_USAGE;
  }
  const char *names[MIX_MODEL_MAX];
  for (int i = 0; i < MIX_MODEL_MAX && compile.metrics[i] && !code; i++) {
    mix_clear_names(); /* compilation does not number them either */
    mix_metric *metric = mix_metric_from_text(compile.metrics[i], NULL);
    bool missing = mix_error() == MIX_TYPE_ERROR && !strchr(compile.metrics[i], ':');
    code = check_option("metrics");
    if (code && missing)
      fprintf(stderr, "mixtape: --metrics: arguments are given as in %s:key=value,key=value\n",
              compile.metrics[i]);
    if (!code) code = check_name(metric, names, i);
    if (!code) names[i] = mix_metric_name(metric);
  }
  mix_free(text);
  return code;
}

static int try_names(const cli_options *options) {
  int code = CLI_OK;
  MIX_SCOPE {
    mix_optimizer_from_text(options->optimizer, NULL);
    code = check_option("optimizer");
    if (!code) {
      mix_loss_new(options->loss);
      code = check_option("loss");
    }
    if (!code) code = try_metrics(options);
    mix_clear_names(); /* frees the names used here: the model's metric must be "auc", not "auc_1" */
  }
  mix_clear_names(); /* frees the names used here: metrics must be "auc", not "auc_1" */
  return code;
}

void cli_try_environment(void) {
  mix_device();
  mix_threads();
  mix_accumulate();
  mix_float32_precision_name();
  mix_memory_name();
}

int cli_setup(const cli_options *options) {
  mix_set_semantics(options->semantics);
  if (options->accumulate) mix_set_accumulate(options->accumulate);
  if (options->device) mix_set_device(options->device);
  if (options->threads) mix_set_threads((int)options->threads);
  cli_try_environment();
  if (options->has_seed) mix_set_seed(options->seed);
  mix_set_global_policy(options->policy);
  if (options->graph_rewrite && !strcmp(options->graph_rewrite, "bfloat16") &&
      options->loss_scale.kind >= CLI_SCALE_FIXED) {
    fprintf(stderr,
            "mixtape: --graph-rewrite bfloat16 scales no loss, for its numbers reach as far as float32's; "
            "leave --loss-scale out\n");
    return CLI_USAGE;
  }
  if (options->graph_rewrite && !strncmp(options->policy, "mixed_", 6)) {
    fprintf(stderr, "mixtape: --graph-rewrite and the mixed policy %s exclude each other; leave one out\n",
            options->policy);
    return CLI_USAGE;
  }
  return mix_error() == MIX_OK ? try_names(options) : cli_fail();
}

/* Training needs training data. Evaluation and prediction use test data, or training data if there is
 * none. */
static bool load_npz(const char *path, int command, cli_data *data) {
  mix_npz *npz = mix_npz_open(path);
  if (!npz) return false;
  if (command != CLI_TRAIN) data->x_test = mix_npz_get(npz, "x_test");
  if (!data->x_test) data->x_train = mix_npz_require(npz, "x_train");
  if (command == CLI_TRAIN) data->x_test = mix_npz_get(npz, "x_test");
  if (command != CLI_PREDICT && data->x_train) data->y_train = mix_npz_require(npz, "y_train");
  if (command != CLI_PREDICT && data->x_test) data->y_test = mix_npz_require(npz, "y_test");
  data->source = path;
  return mix_error() == MIX_OK;
}

/* Reshapes examples to (rows, width). */
static mix_tensor *flatten(mix_tensor *x) {
  mix_shape shape = mix_tensor_shape(x);
  return !x || shape.rank == 0 || shape.rank == 2
             ? x
             : mix_reshape(x, MIX_SHAPE(shape.dims[0], shape.rank == 1 ? 1 : -1));
}

/* Reshapes labels of one column to a vector. */
static mix_tensor *labels(mix_tensor *y) {
  mix_shape shape = mix_tensor_shape(y);
  return y && shape.rank == 2 && shape.dims[1] == 1 ? mix_reshape(y, MIX_SHAPE(-1)) : y;
}

/* Checked first, for test data too, so that a bad test set does not fail after training. */
static bool check_pair(const cli_data *data, mix_tensor *x, mix_tensor *y, const char *part) {
  if (!x || mix_failed()) return !mix_failed();
  const mix_shape rows = mix_tensor_shape(x), labels = mix_tensor_shape(y);
  if (!rows.rank || !mix_shape_size(rows))
    mix_fail(MIX_VALUE_ERROR, "%s: x_%s holds no examples; expected (rows, ...)", data->source, part);
  else if (y && (!labels.rank || labels.dims[0] != rows.dims[0]))
    mix_fail(MIX_VALUE_ERROR, "%s: x_%s has %lld rows, y_%s %lld; they must agree", data->source, part,
             (long long)rows.dims[0], part, (long long)(labels.rank ? labels.dims[0] : 0));
  return !mix_failed();
}

bool cli_load_data(const cli_options *options, int command, cli_data *data) {
  *data = (cli_data){0};
  bool mnist = !strcmp(options->data, "mnist");
  if (mnist || !strcmp(options->data, "digits")) {
    mix_images images = mnist ? mix_mnist_load(.bytes = true) : mix_digits_load(.bytes = true);
    *data = (cli_data){images.x_train, images.y_train, images.x_test, images.y_test, images.source, 0};
  } else if (!load_npz(options->data, command, data)) {
    return false;
  }
  if (mix_error() != MIX_OK) return false;
  if (!check_pair(data, data->x_train, data->y_train, "train") ||
      !check_pair(data, data->x_test, data->y_test, "test"))
    return false;
  mix_tensor **arrays[] = {&data->x_train, &data->x_test};
  for (int i = 0; i < 2; i++) *arrays[i] = flatten(*arrays[i]);
  data->y_train = labels(data->y_train);
  data->y_test = labels(data->y_test);
  mix_shape shape = mix_tensor_shape(data->x_train ? data->x_train : data->x_test);
  data->width = shape.rank == 2 ? shape.dims[1] : 1;
  mix_shape test = data->x_train && data->x_test ? mix_tensor_shape(data->x_test) : shape;
  if ((test.rank == 2 ? test.dims[1] : 1) != data->width) {
    mix_fail(MIX_VALUE_ERROR, "%s: x_test has %lld values an example, x_train %lld; they must agree",
             data->source, (long long)(test.rank == 2 ? test.dims[1] : 1), (long long)data->width);
    return false;
  }
  fprintf(stderr, "data: %s\n", data->source);
  return mix_error() == MIX_OK;
}

static bool computes_in_16_bits(void) {
  mix_dtype dtype = mix_policy_compute_dtype(mix_global_policy());
  return dtype == MIX_FLOAT16 || dtype == MIX_BFLOAT16;
}

mix_model *cli_make_model(const cli_options *options, int64_t width) {
  int64_t units = options->units ? options->units : !strcmp(mix_device(), "cuda") ? 4096 : 64;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(width), .name = "digits");
  mix_tensor *x = mix_call(mix_dense(.units = units, .activation = "relu", .name = "dense_1"), inputs);
  x = mix_call(mix_dense(.units = units, .activation = "relu", .name = "dense_2"), x);
  x = mix_call(mix_dense(.units = 10, .name = "dense_logits"), x);
  /* The softmax of 16-bit logits can overflow and underflow, so the last layer is float32. */
  mix_layer *softmax = computes_in_16_bits()
                           ? mix_activation("softmax", .dtype = "float32", .name = "predictions")
                           : mix_activation("softmax", .name = "predictions");
  mix_model *model = mix_model_new(inputs, mix_call(softmax, x));
  if (model && options->init_weights) mix_model_load_weights(model, options->init_weights);
  return mix_error() == MIX_OK ? model : NULL;
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
static mix_optimizer *with_factor(const char *optimizer, double factor) {
  const char *arguments = strchr(optimizer, ':');
  mix_text text = {.grows = true};
  mix_text_put(&text, "%s%sloss_scale_factor=%.17g", optimizer,
               !arguments     ? ":"
               : arguments[1] ? ","
                              : "",
               factor);
  mix_optimizer *result = text.failed ? NULL : mix_optimizer_from_text(text.text, NULL);
  mix_free(text.text);
  return result;
}

/* The optimizer of --optimizer with --loss-scale. */
static mix_optimizer *make_optimizer(const cli_options *options, const mix_model *model) {
  const cli_loss_scale *scale = &options->loss_scale;
  mix_optimizer *optimizer = mix_optimizer_from_text(options->optimizer, NULL);
  if (optimizer && options->graph_rewrite) return enable_rewrite(options, optimizer);
  if (!optimizer || scale->kind == CLI_SCALE_NONE) return optimizer;
  bool experimental = !strcmp(options->semantics, "experimental"),
       keras3 = !strcmp(options->semantics, "keras3");
  if (scale->kind == CLI_SCALE_AUTO) return mix_optimizer_for_policy(optimizer, mix_model_policy(model));
  if (scale->kind == CLI_SCALE_FIXED) {
    if (experimental)
      return mix_loss_scale_optimizer(optimizer, .loss_scale = mix_fixed_loss_scale(scale->scale));
    if (!keras3) return mix_loss_scale_optimizer(optimizer, .fixed = true, .initial_scale = scale->scale);
    return with_factor(options->optimizer, scale->scale);
  }
  if (experimental)
    return mix_loss_scale_optimizer(
        optimizer, .loss_scale = mix_dynamic_loss_scale(.initial_loss_scale = scale->scale,
                                                        .increment_period = scale->growth_steps));
  return mix_loss_scale_optimizer(optimizer, .initial_scale = scale->scale,
                                  .dynamic_growth_steps = scale->growth_steps);
}

mix_status cli_compile(const cli_options *options, mix_model *model) {
  mix_optimizer *optimizer = make_optimizer(options, model);
  /* --loss-scale is already applied */
  model->keeps_optimizer = options->loss_scale.kind != CLI_SCALE_AUTO || options->graph_rewrite;
  mix_compile_options compile = {.size = sizeof compile,
                                 .loss = options->loss,
                                 .optimizer = optimizer,
                                 .image_bytes = true,
                                 .jit_compile = options->jit_compile};
  char *metrics = mix_strdup(options->metrics);
  if (metrics && name_metrics(metrics, &compile)) mix_model_compile_with(model, &compile);
  mix_free(metrics);
  return mix_error();
}
