/* Table frozen: training steps most of whose weights are frozen, in processor time: image models of which the
 * last layer trains, and GPT-2 small with LoRA, whose frozen weights gradients pass; these weights stay
 * packed from step to step, or each step packs them. */
#include "cli/bench/comparison.h"
#include "cli/models/models.h"
#include "tables.h"
#include <mixtape/lora.h>
#include <stdlib.h>

enum { SIDE = 64, IMAGES = 16, CLASSES = 10, SEQUENCES = 2, TOKENS = 128, RANK = 8 };

typedef struct frozen_row {
  const char *name, *memory;
  mix_model *(*images)(int64_t image_size, int64_t classes); /* NULL: GPT-2 small */
} frozen_row;
static const frozen_row rows[] = {{"ResNet-50, last layer", "auto", cli_resnet50},
                                  {"MobileNetV2, last layer", "auto", cli_mobilenet_v2},
                                  {"GPT-2 small, LoRA, fast", "fast", NULL}};

typedef struct frozen_step {
  const char *disabled; /* MIXTAPE_DISABLE_PASSES */
  mix_model *model;
  void *x;
  mix_tensor *y;
  size_t workspace;
} frozen_step;

static bool run_step(void *context) {
  const frozen_step *s = context;
  bool good = false;
  setenv("MIXTAPE_DISABLE_PASSES", s->disabled, 1);
  MIX_SCOPE { good = mix_model_train_on_batch(s->model, s->x, s->y) != NULL; }
  return good;
}

static mix_model *image_model(const bench_settings *settings, const frozen_row *r) {
  mix_model *model = r->images(settings->quick ? SIDE / 2 : SIDE, CLASSES);
  mix_list *layers = mix_model_layers(model);
  for (int i = 0; i + 1 < mix_list_count(layers); i++)
    mix_layer_set_trainable(mix_list_get(layers, i), false);
  return model;
}

static mix_model *token_model(const bench_settings *settings, const char *policy) {
  mix_model *model = bench_hub_model(settings, false, policy);
  mix_model_enable_lora(model, RANK);
  return model;
}

static bool prepare(const bench_settings *settings, const frozen_row *r, const char *policy, frozen_step *s) {
  mix_set_semantics("keras3");
  mix_set_memory(r->memory);
  mix_generator *generator = mix_generator_new(1);
  if (r->images) {
    const int64_t side = settings->quick ? SIDE / 2 : SIDE;
    mix_set_global_policy(policy);
    s->x = mix_random_uniform(generator, MIX_SHAPE(IMAGES, side, side, 3), MIX_FLOAT32);
    s->y = mix_fill(MIX_SHAPE(IMAGES), 3, MIX_INT64);
    s->model = image_model(settings, r);
    mix_set_global_policy("float32");
  } else {
    const mix_shape shape = MIX_SHAPE(SEQUENCES, TOKENS);
    s->y = mix_fill(shape, 3, MIX_INT32);
    s->x = mix_dict_of("token_ids", s->y, "padding_mask", mix_fill(shape, 1, MIX_INT32));
    s->model = token_model(settings, policy);
  }
  mix_plan_report report;
  if (mix_model_compile(s->model, .optimizer = mix_adam(.learning_rate = 1e-4),
                        .loss_object = mix_sparse_categorical_crossentropy(.from_logits = !r->images)) ||
      !run_step(s) || mix_function_report(mix_model_train_function(s->model), &report, sizeof report))
    return false;
  s->workspace = report.workspace_bytes;
  return true;
}

static bool measure(const bench_settings *settings, const void *row, const char *policy, json_t *results) {
  const frozen_row *r = row;
  static frozen_step steps[2];
  static bench_candidate timed[2];
  int rounds;
  for (int i = 0; i < 2; i++) {
    steps[i] = (frozen_step){.disabled = i ? "keep_packed" : ""};
    if (!prepare(settings, r, policy, &steps[i])) return false;
    timed[i] = (bench_candidate){.run = run_step, .context = &steps[i], .processor_time = true};
  }
  if (!bench_interleave(timed, 2, settings->quick ? 0.2 : 10, &rounds)) return false;
  double quartiles[2];
  const double ratio = bench_ratio(&timed[1], &timed[0], rounds);
  bench_ratio_quartiles(&timed[1], &timed[0], rounds, quartiles);
  const size_t bytes = steps[0].workspace - steps[1].workspace;
  json_array_append_new(results,
                        json_pack("{s:s, s:s, s:f, s:f, s:f, s:i, s:I}", "model", r->name, "policy", policy,
                                  "seconds_kept", timed[0].median, "seconds_packed", timed[1].median, "speed",
                                  ratio, "rounds", rounds, "kept_bytes", (json_int_t)bytes));
  if (settings->text)
    printf("%-24s %-15s %10.2f %10.2f %8.3f (%.3f to %.3f) %10.1f\n", r->name, policy, 1e3 * timed[0].median,
           1e3 * timed[1].median, ratio, quartiles[0], quartiles[1], (double)bytes / (1 << 20));
  return true;
}

bool bench_frozen(const bench_settings *settings) {
  json_t *results = json_array();
  if (settings->text)
    printf("\nsteps with frozen weights, Adam, processor time: kept packed, packed in each step\n"
           "%-24s %-15s %10s %10s %8s %18s %10s\n",
           "model", "policy", "kept ms", "packed ms", "speed", "", "MiB");
  const bool good =
      bench_time_by_policy(settings, rows, sizeof *rows, sizeof rows / sizeof *rows, measure, results);
  unsetenv("MIXTAPE_DISABLE_PASSES");
  mix_set_memory("auto");
  json_object_set_new(settings->json, "frozen", results);
  return good;
}
