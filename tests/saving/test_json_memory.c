/* Configs when memory runs out: each allocation, of the library, of jansson and of libc, fails in turn. What
 * reports success is whole, and what fails says that memory ran out. */
#include "support/skip.h"
#include "base/alloc.h"
#include "model/support.h"
#include "saving/model_json.h"
#include "support/every_allocation.h"
#include "train/callback.h"

/* Layers of every form of config: calls with masks and states, layers in layers, lists, objects, shapes. */
static mix_model *functional(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(4, 6), .name = "in");
  mix_tensor *x = mix_call(mix_masking(.mask_value = -1, .name = "masking"), inputs);
  x = mix_call(mix_bidirectional(mix_lstm(3, .return_sequences = true, .name = "lstm"), .name = "both"), x);
  x = mix_call(mix_conv1d(5, 2, .padding = "same", .name = "conv"), x);
  x = mix_call(mix_batch_normalization(.name = "norm"), x);
  mix_tensor *y =
      mix_call(mix_dense(.units = 2, .activation = "relu", .name = "dense"), x, .training = MIX_TRUE);
  mix_tensor *z = mix_call(
      mix_discretization(.bin_boundaries = (const double[]){0, 1}, .boundary_count = 2, .name = "bins"),
      inputs);
  (void)z;
  mix_tensor *outputs[] = {mix_call(mix_flatten(.name = "flat"), y),
                           mix_call(mix_flatten(.name = "flat2"), x)};
  mix_model *model = mix_model_new(inputs, mix_list_of(outputs[0], outputs[1]));
  mix_model_compile(model, .optimizer = mix_adam(.learning_rate = 0.5),
                    .loss_objects = mix_list_of(mix_loss_new("mse"), mix_loss_new("mae")),
                    .loss_weights = {2, 3}, .metrics = {"mae", "mse"}, .weighted_metrics = {"mae"});
  return model;
}
static mix_model *sequential(void) {
  mix_model *model =
      mix_sequential(mix_list_of(mix_dense(.units = 2, .name = "a"), mix_activation("softmax", .name = "b")));
  mix_model_call(model, mix_fill(MIX_SHAPE(2, 3), 1, F32));
  mix_model_compile(model, .loss = "categorical_crossentropy", .metrics = {"accuracy"});
  return model;
}

/* The text, which the caller frees; NULL with the error recorded. */
static char *text_of(json_t *json) {
  char *text = json ? mix_json_python_text(json) : NULL;
  json_decref(json);
  return text;
}
static char *to_json(mix_model *model) {
  const char *text = mix_model_to_json(model);
  return text ? mix_strdup(text) : NULL;
}
static char *archive(mix_model *model) { return text_of(mix_model_archive_json(model)); }
static char *legacy(mix_model *model) {
  json_t *object = mix_model_archive_json(model);
  char *text = object ? text_of(mix_legacy_model_json(object)) : NULL;
  json_decref(object);
  return text;
}
static char *legacy_training(mix_model *model) {
  json_t *compiled = mix_compile_config_json(model);
  char *text = compiled ? text_of(mix_legacy_training_json(compiled, model->semantics)) : NULL;
  json_decref(compiled);
  return text;
}
static char *graph_text(mix_model *model) { return mix_graph_text(model); }

static void whole_or_refused(char *(*write)(mix_model *), mix_model *model, const char *what) {
  char *whole = write(model);
  assert_no_error();
  assert_non_null(whole);
  bool reached = true;
  for (int64_t after = 0; reached; after++) {
    char *text = NULL;
    MIX_SCOPE {
      allocations_left = after;
      text = write(model);
      reached = allocations_left < 0;
      allocations_left = -1;
    }
    size_t same = 0;
    while (text && text[same] && text[same] == whole[same]) same++;
    if (text && (text[same] || whole[same] || mix_error()))
      fail_msg("%s, allocation %d: success with %.100s instead of %.100s", what, (int)after, text + same,
               whole + same);
    if (!text && mix_error() != MIX_MEMORY_ERROR)
      fail_msg("%s, allocation %d: %s: %s", what, (int)after, mix_status_name(mix_error()),
               mix_error_message());
    mix_error_clear();
    mix_free(text);
  }
  mix_free(whole);
}

static void configs_are_whole_or_refused(void **state) {
  (void)state;
  if (!REACHES_EVERY_ALLOCATION) SKIP("the sanitizer has an allocator of its own");
  static const struct {
    const char *name;
    char *(*write)(mix_model *);
  } ways[] = {{"to_json", to_json},
              {"archive", archive},
              {"legacy", legacy},
              {"legacy_training", legacy_training},
              {"graph", graph_text}};
  static const char *const generations[] = {"tf_keras", "keras3"};
  for (int g = 0; g < 2; g++)
    for (int kind = 0; kind < 2; kind++)
      MIX_SCOPE {
        mix_set_semantics(generations[g]);
        mix_model *model = kind ? functional() : sequential();
        assert_no_error();
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
          char what[100];
          snprintf(what, sizeof what, "%s of a %s model of %s", ways[w].name,
                   kind ? "functional" : "sequential", generations[g]);
          whole_or_refused(ways[w].write, model, what);
        }
      }
  mix_set_semantics("tf_keras");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(configs_are_whole_or_refused)};
  return cmocka_run_group_tests_name("saving/json_memory", tests, NULL, NULL);
}
