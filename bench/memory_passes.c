/* Table passes: bytes that the plan of a layer, loss or metric moves, over the bytes of its operand, beside
 * the minimum for an operand larger than every cache. Nothing is timed: the numbers come from the plan. */
#include "tables.h"

#include "base/processor.h"
#include <stdlib.h>
#include <string.h>

enum { MIN_ROWS = 4096, MAX_ROWS = 65536, WIDTH = 512, Y_IN_AND_OUT = 2 };

/* Whole images, twice the largest cache if that is at most 128 MiB. */
static int64_t operand_rows(void) {
  const int64_t rows = 2 * mix_cpu_cache(3) / (WIDTH * (int64_t)sizeof(float)) / 256 * 256;
  return rows < MIN_ROWS ? MIN_ROWS : rows > MAX_ROWS ? MAX_ROWS : rows;
}

typedef struct subject {
  mix_layer *layer;
  mix_loss *loss;
  mix_metric *metric;
  bool backward;
} subject;

/* Arguments: x and, backward, the gradient of y. Results: y, or the gradients of x and the weights. */
static mix_list *layer_body(void *context, mix_list *arguments) {
  subject *s = context;
  mix_tensor *x = mix_list_get(arguments, 0);
  if (!s->backward) return mix_list_of(mix_call(s->layer, x, .training = MIX_TRUE));
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *y = mix_call(s->layer, x, .training = MIX_TRUE);
  mix_tape_end(tape);
  mix_list *sources = mix_layer_trainable_weights(s->layer);
  if (!y || !sources || mix_list_append(sources, x) != MIX_OK) return NULL;
  return mix_tape_gradient_from(tape, mix_list_of(y), mix_list_of(mix_list_get(arguments, 1)), sources);
}

/* Arguments: labels, predictions. Results: the loss and the gradient of the predictions. */
static mix_list *loss_body(void *context, mix_list *arguments) {
  subject *s = context;
  mix_tensor *p = mix_list_get(arguments, 1);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, p);
  mix_tensor *loss = mix_loss_call(s->loss, mix_list_get(arguments, 0), p);
  mix_tape_end(tape);
  mix_list *gradients = loss ? mix_tape_gradient(tape, loss, mix_list_of(p)) : NULL;
  return gradients ? mix_list_of(loss, mix_list_get(gradients, 0)) : NULL;
}

static mix_list *metric_body(void *context, mix_list *arguments) {
  subject *s = context;
  mix_metric_update(s->metric, mix_list_get(arguments, 0), mix_list_get(arguments, 1));
  return NULL;
}

static mix_tensor *uniform(uint64_t seed, mix_shape shape) {
  mix_generator *generator = mix_generator_new(seed);
  mix_tensor *x = mix_random_uniform(generator, shape, MIX_FLOAT32);
  return mix_evaluate(1, &x) == MIX_OK ? x : NULL;
}

static mix_tensor *operand(uint64_t seed, bool classes) {
  if (classes) { /* labels of a sparse loss */
    int64_t *labels = malloc(sizeof *labels * (size_t)operand_rows());
    for (int64_t i = 0; labels && i < operand_rows(); i++) labels[i] = i * 7 % WIDTH;
    mix_tensor *y = labels ? mix_tensor_from(labels, MIX_INT64, MIX_SHAPE(operand_rows())) : NULL;
    free(labels);
    return y;
  }
  return uniform(seed, MIX_SHAPE(operand_rows(), WIDTH));
}

/* The last argument is the operand. */
static bool measure(const bench_settings *settings, json_t *rows, const char *name, const char *what,
                    double min, mix_function_body body, subject *s, mix_list *arguments) {
  mix_function *function = mix_function_new(body, s, .name = "passes");
  mix_plan_report report;
  char shape[64];
  if (!mix_function_call(function, arguments) ||
      mix_function_report(function, &report, sizeof report) != MIX_OK)
    return false;
  mix_shape_text(mix_tensor_shape(mix_list_get(arguments, mix_list_count(arguments) - 1)), shape,
                 sizeof shape);
  const int steps = bench_passes_over(function, shape);
  const double passes = (double)report.moved_bytes / ((double)operand_rows() * WIDTH * sizeof(float));
  json_array_append_new(rows, json_pack("{s:s, s:s, s:f, s:f, s:i}", "name", name, "what", what, "passes",
                                        passes, "least", min, "steps", steps));
  if (settings->text) printf("%-36s %-20s %8.2f %8.2f %6d\n", name, what, passes, min, steps);
  return true;
}

/* Minima, where a row fits the cache and a matrix does not. Normalised by rows: x is read and y written;
 * backward x and dy are read and dx written. By columns: x is read once more for its moments, and backward x
 * and dy once more for two sums. Forward and backward give gradients alone: y is not computed. */
static bool layers(const bench_settings *settings, json_t *rows) {
  const mix_shape matrix = MIX_SHAPE(operand_rows(), WIDTH),
                  images = MIX_SHAPE(operand_rows() / 256, 16, 16, WIDTH);
  const struct {
    const char *name;
    mix_layer *layer;
    mix_shape shape;
    double forward, backward;
  } list[] = {{"BatchNormalization", mix_batch_normalization(), matrix, 3, 5},
              {"LayerNormalization", mix_layer_normalization(), matrix, 2, 3},
              {"GroupNormalization", mix_group_normalization(.groups = 32), matrix, 2, 3},
              {"GroupNormalization of images", mix_group_normalization(.groups = 32), images, 2, 3},
              {"RMSNormalization", mix_rms_normalization(), matrix, 2, 3},
              {"UnitNormalization", mix_unit_normalization(), matrix, 2, 3}};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    subject s = {.layer = list[i].layer};
    mix_tensor *x = uniform(1, list[i].shape), *dy = uniform(2, list[i].shape);
    if (!s.layer || mix_layer_build(s.layer, list[i].shape) != MIX_OK ||
        !measure(settings, rows, list[i].name, "forward", list[i].forward, layer_body, &s, mix_list_of(x)))
      return false;
    s.backward = true;
    if (!measure(settings, rows, list[i].name, "forward and backward",
                 list[i].forward + list[i].backward - Y_IN_AND_OUT, layer_body, &s, mix_list_of(x, dy)))
      return false;
  }
  return true;
}

/* Minimum: predictions and labels are read and the gradient is written, once. */
static bool losses(const bench_settings *settings, json_t *rows) {
  static const char *const names[] = {"mean_squared_error",
                                      "mean_absolute_error",
                                      "huber",
                                      "log_cosh",
                                      "cosine_similarity",
                                      "hinge",
                                      "kl_divergence",
                                      "poisson",
                                      "binary_crossentropy",
                                      "binary_focal_crossentropy",
                                      "categorical_crossentropy",
                                      "categorical_focal_crossentropy",
                                      "sparse_categorical_crossentropy"};
  mix_tensor *p = operand(3, false);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    bool sparse = !strncmp(names[i], "sparse", 6);
    subject s = {.loss = mix_loss_new(names[i], .from_logits =
                                                    strstr(names[i], "cross") && !strstr(names[i], "focal"))};
    if (!measure(settings, rows, names[i], "loss and gradient", sparse ? 2 : 3, loss_body, &s,
                 mix_list_of(operand(4, sparse), p)))
      return false;
  }
  return true;
}

/* Minimum: predictions and labels are read once. */
static bool metrics(const bench_settings *settings, json_t *rows) {
  static const char *const names[] = {"accuracy",
                                      "binary_accuracy",
                                      "categorical_accuracy",
                                      "top_k_categorical_accuracy",
                                      "mean_squared_error",
                                      "root_mean_squared_error",
                                      "precision",
                                      "recall",
                                      "true_positives",
                                      "f1_score",
                                      "r2_score",
                                      "auc",
                                      "sparse_categorical_accuracy"};
  mix_tensor *p = operand(5, false);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    bool sparse = !strncmp(names[i], "sparse", 6);
    subject s = {.metric = mix_metric_new(names[i])};
    if (!measure(settings, rows, names[i], "update", sparse ? 1 : 2, metric_body, &s,
                 mix_list_of(operand(6, sparse), p)))
      return false;
  }
  return true;
}

bool bench_memory_passes(const bench_settings *settings) {
  json_t *rows = json_array();
  json_object_set_new(settings->json, "passes", rows);
  if (settings->text)
    printf(
        "\npasses over an operand (%lld, %d) float32: bytes that the plan moves over its bytes; least: where "
        "only rows fit a cache\n"
        "%-36s %-20s %8s %8s %6s\n",
        (long long)operand_rows(), WIDTH, "layer, loss or metric", "what", "passes", "least", "steps");
  bool good = true;
  MIX_SCOPE { good = layers(settings, rows); }
  if (good)
    MIX_SCOPE { good = losses(settings, rows); }
  if (good)
    MIX_SCOPE { good = metrics(settings, rows); }
  return good;
}
