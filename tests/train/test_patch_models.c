/* Twenty steps of a Vision Transformer by patches, an FNet and an MLP-Mixer, read from their configs, beside
 * the losses of Keras 3.15 on TensorFlow 2.21 (tests/oracle/patch_models.py). */
/* Holds docs/NUMERICS.md: Against real Keras. */
#include "model/support.h"

#include "support/records.h"

enum { STEPS = 20, EXAMPLES = 8, CLASSES = 4 };

typedef struct recorded {
  const char *name, *policy;
  double losses[STEPS];
} recorded;
static const recorded runs[] = {
#include "train/recorded/patch_models.inc"
};

/* What the recording computes too, in double. */
static mix_tensor *numbers_of(mix_shape shape, double scale) {
  const int64_t count = mix_shape_size(shape);
  double *values = malloc(sizeof *values * (size_t)count);
  for (int64_t i = 0; i < count; i++)
    values[i] = (fmod(0.618033988749895 * (double)(i + 1) * (double)(i % 7 + 1), 1) * 2 - 1) * scale;
  mix_tensor *x = mix_tensor_from_doubles(values, MIX_FLOAT32, shape);
  free(values);
  return x;
}

static mix_model *model_of(const recorded *r) {
  char file[128];
  snprintf(file, sizeof file, "train/recorded/%s-%s.json", r->name, r->policy);
  json_t *config = load_records(file, 0);
  char *text = json_dumps(config, 0);
  mix_model *model = mix_model_from_json(text);
  if (!model) fail_msg("%s: %s", file, mix_error_message());
  free(text);
  json_decref(config);
  return model;
}

/* Vectors stay what their layers make them. */
static void set_weights(mix_model *model) {
  mix_list *weights = mix_model_weights(model), *values = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(weights); i++) {
    mix_variable *variable = mix_list_get(weights, i);
    const mix_shape shape = mix_variable_shape(variable);
    double fan = 1;
    for (int d = 0; d + 1 < shape.rank; d++) fan *= (double)shape.dims[d];
    mix_list_append(values,
                    shape.rank < 2 ? mix_variable_true_value(variable) : numbers_of(shape, 1 / sqrt(fan)));
  }
  if (mix_model_set_weights(model, values) != MIX_OK) fail_msg("%s", mix_error_message());
}

/* The bounds are those of docs/NUMERICS.md, of the first loss; they do not grow with the steps. */
static void run_one(const recorded *r) {
  mix_set_semantics("keras3");
  mix_model *model = model_of(r);
  const bool words = !strcmp(r->name, "fnet"), half = strcmp(r->policy, "float32");
  set_weights(model);
  mix_tensor *x = words ? NULL : numbers_of(MIX_SHAPE(EXAMPLES, 16, 16, 3), 1);
  int32_t ids[EXAMPLES * 12], labels[EXAMPLES];
  for (int i = 0; i < EXAMPLES * 12; i++) ids[i] = i * 7 % 20;
  for (int i = 0; i < EXAMPLES; i++) labels[i] = i * 3 % CLASSES;
  if (words) x = mix_tensor_from(ids, MIX_INT32, MIX_SHAPE(EXAMPLES, 12));
  mix_tensor *y = mix_tensor_from(labels, MIX_INT32, MIX_SHAPE(EXAMPLES));
  mix_optimizer *optimizer = mix_adam(.learning_rate = 0.002);
  if (half) optimizer = mix_loss_scale_optimizer(optimizer, .initial_scale = 1024);
  mix_model_compile(model, .optimizer = optimizer,
                    .loss_object = mix_sparse_categorical_crossentropy(.from_logits = true));
  const double bound = half ? 2e-3 : 1e-5;
  for (int i = 0; i < STEPS; i++)
    MIX_SCOPE {
      const mix_logs *logs = mix_model_train_on_batch(model, x, y);
      if (!logs) fail_msg("%s %s: %s", r->name, r->policy, mix_error_message());
      const double loss = mix_logs_get(logs, "loss"), off = fabs(loss - r->losses[i]);
      if (!(off <= bound * r->losses[0]))
        fail_msg("%s %s: loss %d is %.9g; Keras has %.9g", r->name, r->policy, i + 1, loss, r->losses[i]);
    }
}

static void twenty_losses_are_those_of_keras(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
    MIX_SCOPE { run_one(&runs[i]); }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(twenty_losses_are_those_of_keras)};
  return cmocka_run_group_tests_name("models of patches", tests, NULL, NULL);
}
