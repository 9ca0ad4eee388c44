/* Optimizer state in bfloat16 in Keras's files: exact, read by runs of the other dtype, without what Keras
 * has not. */
/* Holds docs/NUMERICS.md: State in bfloat16. */
#include "model/support.h"
#include "support/folder.h"

#include "optim/optimizer.h"
#include <mixtape/saving.h>

static mix_model *model_with(const char *policy, const char *generation, const char *optimizer) {
  mix_set_semantics(generation);
  mix_set_global_policy(policy);
  mix_clear_names();
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(6));
  mix_tensor *x = mix_call(mix_dense(.units = 5, .activation = "relu"), inputs);
  x = mix_call(mix_dense(.units = 3), x);
  mix_model *model = mix_model_new(inputs, mix_call(mix_activation("softmax", .dtype = "float32"), x));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_optimizer_from_text(optimizer, NULL));
  assert_no_error();
  return model;
}

static void train(mix_model *model) {
  examples e = examples_of(20, 6, 3);
  mix_model_fit(model, e.x, e.y, .batch_size = 5, .verbose = MIX_SILENT);
  assert_no_error();
}

/* Slot `i` as float32. */
static int64_t slot(mix_model *model, int which, int i, float *values, mix_dtype dtype) {
  const mix_optimizer *optimizer = mix_optimizer_plain(mix_model_optimizer(model));
  mix_variable *variable = optimizer->slots[which][i];
  const int64_t count = mix_shape_size(variable->shape);
  assert_true(count <= 64);
  assert_int_equal(variable->dtype, dtype);
  assert_int_equal(mix_tensor_read(mix_variable_true_value(variable), MIX_FLOAT32, values, count), MIX_OK);
  return count;
}

static void assert_same_slots(mix_model *a, mix_dtype of_a, mix_model *b, mix_dtype of_b) {
  float from[64], to[64];
  for (int which = 0; which < 2; which++)
    for (int i = 0; i < 4; i++) {
      const int64_t count = slot(a, which, i, from, of_a);
      assert_int_equal(slot(b, which, i, to, of_b), count);
      assert_memory_equal(from, to, (size_t)count * sizeof *from);
    }
}

static void files_keep_slots_exactly(void **state) {
  (void)state;
  static const char *const states[] = {"bfloat16", "bfloat16-stochastic", "bfloat16-kahan"};
  static const char *const generations[] = {"keras3", "tf_keras"};
  static const char *const names[] = {"model.keras", "model.h5"};
  for (int g = 0; g < 2; g++)
    for (int s = 0; s < 3; s++)
      for (int f = 0; f < 2; f++)
        MIX_SCOPE {
          char text[64];
          const char *policy = s == 2 ? "bfloat16" : "mixed_bfloat16", *path = in_folder(names[f]);
          snprintf(text, sizeof text, "adam:state=%s", states[s]);
          mix_model *model = model_with(policy, generations[g], text);
          train(model);
          assert_int_equal(mix_model_save(model, path), MIX_OK);
          const mix_dtype others = s == 2 ? MIX_BFLOAT16 : MIX_FLOAT32;
          mix_model *loaded = mix_model_load(path);
          assert_no_error();
          assert_same_slots(model, MIX_BFLOAT16, loaded, others);
          /* and back from float32's file */
          const char *again = in_folder(f ? "again.h5" : "again.keras");
          assert_int_equal(mix_model_save(loaded, again), MIX_OK);
          mix_model *back = model_with(policy, generations[g], text);
          mix_optimizer_build(mix_optimizer_plain(mix_model_optimizer(back)),
                              mix_model_trainable_variables(back));
          assert_int_equal(mix_model_load_weights(back, again), MIX_OK);
          assert_no_error();
          if (!f) assert_same_slots(model, MIX_BFLOAT16, back, MIX_BFLOAT16);
        }
}

/* A file's float32 slots are rounded to nearest. */
static void slots_in_float32_are_rounded(void **state) {
  (void)state;
  const char *path = in_folder("wide.keras");
  mix_model *wide = model_with("mixed_bfloat16", "keras3", "adam"),
            *narrow = model_with("mixed_bfloat16", "keras3", "adam:state=bfloat16");
  train(wide);
  assert_int_equal(mix_model_save(wide, path), MIX_OK);
  mix_optimizer_build(mix_model_optimizer(narrow), mix_model_trainable_variables(narrow));
  assert_int_equal(mix_model_load_weights(narrow, path), MIX_OK);
  float exact[64], rounded[64];
  bool differs = false;
  for (int i = 0; i < 4; i++) {
    const int64_t count = slot(wide, 1, i, exact, MIX_FLOAT32);
    slot(narrow, 1, i, rounded, MIX_BFLOAT16);
    for (int64_t k = 0; k < count; k++) {
      float nearest;
      mix_tensor *x = mix_cast(mix_tensor_from(&exact[k], MIX_FLOAT32, (mix_shape){.rank = 0}), MIX_BFLOAT16);
      mix_tensor_read(x, MIX_FLOAT32, &nearest, 1);
      assert_true(rounded[k] == nearest);
      differs = differs || exact[k] != nearest;
    }
  }
  assert_true(differs);
}

static int begin(void **state) { return folder_begin(state) || setup(state); }
static int end(void **state) { return teardown(state) || folder_end(state); }
#define FOLDER_TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {FOLDER_TEST(files_keep_slots_exactly),
                                     FOLDER_TEST(slots_in_float32_are_rounded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
