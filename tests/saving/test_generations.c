/* Models saved for another generation: the file is one of that generation, predicts the same, and trains on
 * with the same slots; what it lacks is named. What real Keras makes of them: tests/oracle/converted.py. */
#include "saving/recorded_files.h"

#include "base/json.h"
#include "formats/file.h"
#include "optim/optimizer.h"
#include "saving/keras_file.h"
#include "saving/read_weights.h"
#include "saving/weight_tree.h"
#include "support/expect.h"

static const char *const generations[] = {"tf_keras", "keras3"};
static const char *const files_of[] = {"model.keras", "model.h5"};

static char warned[2000];
static void note(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level != MIX_LOG_WARNING || strstr(message, "may run slowly")) return;
  const size_t used = strlen(warned);
  snprintf(warned + used, sizeof warned - used, "%s\n", message);
}

static mix_tensor *spread(mix_shape shape, double scale) {
  const int64_t count = mix_shape_size(shape);
  float *values = malloc((size_t)count * sizeof *values);
  for (int64_t i = 0; i < count; i++) values[i] = (float)(scale * (double)(i % 7 - 3));
  mix_tensor *tensor = mix_tensor_from(values, F32, shape);
  free(values);
  return tensor;
}

/* Layers whose weights and names differ between the generations, one of them frozen. No bias of keys: its
 * gradient is zero but for rounding, which Adam would magnify. */
static mix_model *varied(void) {
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4, 3));
  mix_tensor *y = mix_call(mix_bidirectional(mix_gru(.units = 2, .return_sequences = true)), x);
  y = mix_call(mix_batch_normalization(), mix_call(mix_leaky_relu_layer(.negative_slope = 0.25), y));
  mix_tensor *z = mix_call(mix_multi_head_attention(.num_heads = 2, .key_dim = 2, .no_bias = true), y,
                           .arguments = mix_list_of(y));
  z = mix_call(mix_dense(3, "relu", .not_trainable = true), mix_call(mix_add_layer(), mix_list_of(y, z)));
  z = mix_call(mix_dense(2), mix_call(mix_flatten(), z));
  return mix_model_new(x, mix_call(mix_activation("linear", .dtype = "float32"), z));
}

static void train(mix_model *model, int steps) {
  for (int i = 0; i < steps; i++)
    mix_model_train_on_batch(model, spread(MIX_SHAPE(5, 4, 3), 0.25), spread(MIX_SHAPE(5, 2), 0.5));
  assert_no_error();
}

static mix_tensor *predicted(mix_model *model) {
  return mix_list_get(mix_model_predict(model, spread(MIX_SHAPE(5, 4, 3), 0.25)), 0);
}

static void assert_within(mix_tensor *a, mix_tensor *b, double bound) {
  assert_no_error();
  assert_true(mix_shape_equal(mix_tensor_shape(a), mix_tensor_shape(b)));
  for (int64_t i = 0; i < mix_shape_size(mix_tensor_shape(a)); i++)
    if (!(fabs(at(a, i) - at(b, i)) <= bound)) fail_msg("%.9g is not near %.9g", at(a, i), at(b, i));
}

static mix_model *loaded(const char *name) {
  mix_model *model = mix_model_load(in_folder(name));
  if (!model) fail_msg("%s: %s", name, mix_error_message());
  return model;
}

/* Every slot, by the place of its weight; the layers are listed in the same order in both. */
static void assert_same_slots(mix_model *a, mix_model *b) {
  const mix_optimizer *x = mix_optimizer_plain(mix_model_optimizer(a)),
                      *y = mix_optimizer_plain(mix_model_optimizer(b));
  int compared = 0;
  assert_string_equal(x->class->name, y->class->name);
  assert_int_equal(x->count, y->count);
  assert_true(mix_optimizer_iterations((mix_optimizer *)x) == mix_optimizer_iterations((mix_optimizer *)y));
  for (int i = 0; i < x->count; i++) {
    const int from = mix_optimizer_index(x, mix_list_get(mix_model_trainable_variables(a), i), i);
    const int to = mix_optimizer_index(y, mix_list_get(mix_model_trainable_variables(b), i), i);
    assert_true(from >= 0 && to >= 0);
    for (int s = 0; s < MIX_MAX_SLOTS; s++) {
      if (!x->slots[s] || !y->slots[s]) continue;
      assert_within(mix_variable_true_value(x->slots[s][from]), mix_variable_true_value(y->slots[s][to]), 0);
      compared++;
    }
  }
  assert_true(compared > 0);
}

static mix_optimizer *optimizer_number(int i) {
  return i == 0   ? mix_adam(.learning_rate = 0.25, .amsgrad = true)
         : i == 1 ? mix_sgd(.learning_rate = 0.125, .momentum = 0.5)
         : i == 2 ? mix_rmsprop(.momentum = 0.5, .centered = true)
         : i == 3 ? mix_adamw(.weight_decay = 0.125, .use_ema = true)
                  : mix_adagrad(.schedule = mix_exponential_decay(0.5, 10, 0.5, false));
}
enum { OPTIMIZERS = 5 };

static void check_other(mix_model *model, const char *other, const char *name) {
  assert_int_equal(mix_model_save(model, in_folder(name), .semantics = mix_semantics_named(other)), MIX_OK);
  mix_model *made = loaded(name);
  assert_string_equal(made->semantics->name, other);
  assert_within(predicted(model), predicted(made), 1e-6); /* sums in another order */
  assert_same_slots(model, made);
  /* and back: every bit */
  mix_model_save(made, in_folder("back.keras"), .semantics = model->semantics);
  mix_model *back = loaded("back.keras");
  assert_within(predicted(model), predicted(back), 0);
  assert_same_slots(model, back);
  /* both train on alike */
  train(back, 1);
  train(made, 1);
  const double a = at(mix_variable_value(mix_optimizer_plain(mix_model_optimizer(back))->iterations), 0);
  assert_true(a == at(mix_variable_value(mix_optimizer_plain(mix_model_optimizer(made))->iterations), 0));
  mix_list *x = mix_model_trainable_variables(back), *y = mix_model_trainable_variables(made);
  for (int i = 0; i < mix_list_count(x); i++) /* gradients are sums in another order */
    assert_within(mix_variable_true_value(mix_list_get(x, i)), mix_variable_true_value(mix_list_get(y, i)),
                  1e-4);
}

static void both_directions(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++)
    for (int o = 0; o < OPTIMIZERS; o++)
      for (int f = 0; f < 2; f++)
        MIX_SCOPE {
          mix_set_semantics(generations[g]);
          mix_model *model = varied();
          mix_model_compile(model, .loss = "mse", .optimizer = optimizer_number(o), .metrics = {"mae"});
          train(model, 2);
          check_other(model, generations[!g], files_of[f]);
        }
}

/* Keras 3 keeps a loss scale, and tf_keras does not. */
static void loss_scales(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++)
    MIX_SCOPE {
      mix_set_semantics(generations[g]);
      mix_set_global_policy("mixed_float16");
      mix_model *model = varied();
      mix_model_compile(model, .loss = "mse", .optimizer = mix_adam(), .no_auto_scale_loss = false);
      train(model, 2);
      mix_variable *scale =
          mix_loss_scale_variable(mix_optimizer_loss_scale_object(mix_model_optimizer(model)));
      mix_variable_assign(scale, mix_scalar(512, F32));
      mix_set_global_policy("float32");
      warned[0] = 0;
      mix_set_log_callback(note, NULL);
      mix_model_save(model, in_folder("model.keras"), .semantics = mix_semantics_named(generations[!g]));
      mix_set_log_callback(NULL, NULL);
      mix_model *made = loaded("model.keras");
      assert_same_slots(model, made);
      assert_within(predicted(model), predicted(made), 2e-2); /* of float16 */
      const double now = at(mix_optimizer_loss_scale(mix_model_optimizer(made)), 0);
      assert_true(now == (g == 0 ? 512 : 32768));
      assert_int_equal(strstr(warned, "the loss scale 512 is left out: files of tf_keras") != NULL, g == 1);
    }
}

/* ---- what is in the files ---- */

static bool has_path(const char *name, const char *path) {
  mix_keras_file file;
  assert_true(mix_keras_file_open(&file, in_folder(name), true));
  const bool found = mix_hdf5_has(&file.hdf5, path);
  mix_keras_file_close(&file);
  return found;
}

static void the_form_is_that_of_the_other(void **state) {
  (void)state;
  static const char *const modules[] = {"tf_keras.src.engine.functional", "keras.src.models.functional"};
  static const char *const versions[] = {"2.21.0", "3.15.1"};
  for (int g = 0; g < 2; g++)
    MIX_SCOPE {
      mix_keras_file file;
      mix_set_semantics(generations[!g]);
      mix_model *model = varied();
      mix_model_compile(model, .loss = "mse", .optimizer = mix_adam());
      train(model, 1);
      mix_model_save(model, in_folder("model.keras"), .semantics = mix_semantics_named(generations[g]));
      assert_no_error();
      assert_true(mix_keras_file_open(&file, in_folder("model.keras"), true));
      assert_string_equal(json_string_value(json_object_get(file.model, "module")), modules[g]);
      assert_string_equal(json_string_value(json_object_get(file.model, "keras_version")), versions[g]);
      mix_keras_file_close(&file);
      /* names of attention's projections, and the learning rate in the state */
      assert_int_equal(has_path("model.keras", "layers/multi_head_attention/query_dense"), g == 1);
      assert_int_equal(has_path("model.keras", "layers/multi_head_attention/_query_dense"), g == 0);
      mix_list *own = mix_optimizer_saved_variables(mix_model_optimizer(model));
      char last[64], behind[64];
      const int count = mix_list_count(own) + (g == 1 ? 1 : -1);
      snprintf(last, sizeof last, "optimizer/vars/%d", count - 1);
      snprintf(behind, sizeof behind, "optimizer/vars/%d", count);
      assert_true(has_path("model.keras", last) && !has_path("model.keras", behind));
      /* the default stays the model's own generation */
      mix_model_save(model, in_folder("own.keras"));
      assert_string_equal(loaded("own.keras")->semantics->name, generations[!g]);
    }
}

/* Lines NAME SHAPE of the optimizer's variables, in the order in which Keras assigns them. */
static void list_h5_state(const char *path, char *lines, size_t size) {
  mix_keras_file file;
  mix_texts names;
  char shape[80];
  assert_true(mix_keras_file_open(&file, path, true));
  assert_true(mix_read_texts(&file, "optimizer_weights", "weight_names", &names));
  for (int i = 0; i < names.count; i++) {
    mix_tensor *tensor = mix_hdf5_tensor(&file.hdf5, mix_join_path("optimizer_weights", names.items[i]));
    assert_no_error();
    mix_shape_text(mix_tensor_shape(tensor), shape, sizeof shape);
    const size_t used = strlen(lines);
    snprintf(lines + used, size - used, "%s %s\n", names.items[i], shape);
  }
  mix_texts_free(&names);
  mix_keras_file_close(&file);
}

/* tf_keras reads them by place. An optimizer in a LossScaleOptimizer has no name before the slots'. */
static void optimizers_in_hdf5(void **state) {
  (void)state;
  static const char *const cases[] = {"scaled", "schedule", "nadam", "conv", "nested"};
  static const char *const prefixes[] = {"", "SGD/", "Nadam/", "SGD/", "Adam/"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    MIX_SCOPE {
      char ours[4000] = "", theirs[4000] = "", plain[4000] = "";
      mix_model *model = mix_model_load(extract("keras3", cases[i], ".keras"));
      mix_model_save(model, in_folder("model.h5"), .semantics = mix_semantics_named("tf_keras"));
      list_h5_state(in_folder("model.h5"), ours, sizeof ours);
      list_h5_state(extract("tf_keras", cases[i], ".h5"), theirs, sizeof theirs);
      for (char *line = theirs, *end; (end = strchr(line, '\n')); line = end + 1) {
        const size_t prefix = strlen(prefixes[i]);
        if (!strncmp(line, prefixes[i], prefix)) line += prefix;
        strncat(plain, line, (size_t)(end + 1 - line));
      }
      assert_string_equal(ours, plain);
    }
}

/* That of a LossScaleOptimizer in tf_keras, and any in Keras 3. The file has it all the same. */
static void state_that_keras_does_not_read(void **state) {
  (void)state;
  static const char anew[] = "tf_keras begins the state of the optimizer 'sgd' anew when it loads an .h5",
                    again[] = "keras3 does not train on from an .h5 before it is compiled again";
  static const struct {
    const char *from, *name, *file, *says;
  } cases[] = {{"keras3", "scaled", "model.h5", anew},        {"keras3", "scaled", "model.keras", NULL},
               {"keras3", "schedule", "model.h5", NULL},      {"tf_keras", "schedule", "model.h5", again},
               {"tf_keras", "old_scaled", "model.h5", again}, {"tf_keras", "schedule", "model.keras", NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    MIX_SCOPE {
      const mix_semantics *other = mix_semantics_named(generations[!strcmp(cases[i].from, "tf_keras")]);
      mix_model *model = mix_model_load(extract(cases[i].from, cases[i].name, ".keras"));
      warned[0] = 0;
      mix_set_log_callback(note, NULL);
      mix_model_save(model, in_folder(cases[i].file), .semantics = other);
      mix_set_log_callback(NULL, NULL);
      assert_no_error();
      if (cases[i].says && !strstr(warned, cases[i].says)) fail_msg("not said: %s", cases[i].says);
      if (!cases[i].says) assert_null(strstr(warned, ".h5"));
      assert_same_slots(model, loaded(cases[i].file));
    }
}

static void semantics_that_are_none(void **state) {
  (void)state;
  mix_model *model = varied();
  const void *name = "keras3"; /* without mix_semantics_named */
  assert_int_equal(mix_model_save(model, in_folder("never.keras"), .semantics = name), MIX_TYPE_ERROR);
  expect_error(MIX_TYPE_ERROR, "semantics: got a pointer to something else");
  assert_false(mix_file_exists(in_folder("never.keras")));
}

/* tf_keras has them among the inputs, where Keras 3 does not find them. */
static void initial_states(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++)
    MIX_SCOPE {
      mix_set_semantics(generations[g]);
      mix_tensor *x = mix_input(.shape = MIX_SHAPE(4, 3)), *s = mix_input(.shape = MIX_SHAPE(2));
      mix_tensor *y = mix_call(mix_gru(.units = 2), x, .initial_state = mix_list_of(s));
      mix_model *model = mix_model_new(mix_list_of(x, s), y);
      mix_model_save(model, in_folder("model.keras"), .semantics = mix_semantics_named(generations[!g]));
      mix_model *made = loaded("model.keras");
      mix_list *data = mix_list_of(spread(MIX_SHAPE(5, 4, 3), 0.25), spread(MIX_SHAPE(5, 2), 0.5));
      assert_within(mix_list_get(mix_model_predict(model, data), 0),
                    mix_list_get(mix_model_predict(made, data), 0), 1e-6);
      mix_keras_file file;
      assert_true(mix_keras_file_open(&file, in_folder("model.keras"), true));
      char *text = mix_json_text(file.model);
      if (g == 0) assert_non_null(strstr(text, "\"initial_state\":"));
      mix_free(text);
      mix_keras_file_close(&file);
    }
}

static void the_experimental_generation(void **state) {
  (void)state;
  mix_set_semantics("experimental");
  mix_model *model = varied();
  mix_model_compile(model, .loss = "mse", .optimizer = mix_adam());
  train(model, 2);
  mix_model_save(model, in_folder("model.keras"), .semantics = mix_semantics_named("keras3"));
  mix_model *made = loaded("model.keras");
  assert_string_equal(made->semantics->name, "keras3");
  assert_same_slots(model, made);
  assert_within(predicted(model), predicted(made), 1e-6);
  /* files of experimental are those of tf_keras */
  mix_model_save(made, in_folder("model.keras"), .semantics = mix_semantics_named("experimental"));
  assert_string_equal(loaded("model.keras")->semantics->name, "tf_keras");
}

/* Known to the call that loads it alone. */
static void a_class_of_the_users(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++) {
    mix_model *model = mix_model_load(extract(generations[g], "custom", ".keras"), .custom_layers = classes);
    mix_model_save(model, in_folder("model.keras"), .semantics = mix_semantics_named(generations[!g]));
    assert_no_error();
    mix_model *made = mix_model_load(in_folder("model.keras"), .custom_layers = classes);
    mix_npz *npz = mix_npz_open(extract(generations[g], "custom", ".npz"));
    mix_list *x = arrays(npz, "x");
    assert_within(mix_list_get(mix_model_predict(model, x), 0), mix_list_get(mix_model_predict(made, x), 0),
                  1e-6);
  }
}

/* Under the rules of another generation than the file's (--semantics of train): with its slots too. */
static void loaded_as_the_other(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++)
    for (int f = 0; f < 2; f++)
      MIX_SCOPE {
        mix_set_semantics(generations[g]);
        mix_model *model = varied();
        mix_model_compile(model, .loss = "mse", .optimizer = mix_adam());
        train(model, 2);
        mix_model_save(model, in_folder(files_of[f]));
        mix_model *made =
            mix_model_load(in_folder(files_of[f]), .semantics = mix_semantics_named(generations[!g]));
        assert_no_error();
        assert_string_equal(made->semantics->name, generations[!g]);
        assert_within(predicted(model), predicted(made), 1e-6);
        assert_same_slots(model, made);
      }
}

/* ---- what the other lacks ---- */

static void check_refused(const char *from, mix_layer *layer, const char *what) {
  const mix_semantics *other = mix_semantics_named(generations[!strcmp(from, "tf_keras")]);
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4, 3));
  mix_model *model = mix_model_new(x, mix_call(layer, x));
  assert_no_error();
  assert_int_equal(mix_model_save(model, in_folder("never.keras"), .semantics = other), MIX_UNSUPPORTED);
  expect_error(MIX_UNSUPPORTED, what);
  assert_false(mix_file_exists(in_folder("never.keras")));
  assert_int_equal(mix_model_save(model, in_folder("own.keras")), MIX_OK);
}

static void layers_and_options_that_are_missing(void **state) {
  (void)state;
  mix_set_semantics("tf_keras");
  check_refused("tf_keras", mix_thresholded_relu(.name = "above"),
                "keras3 has no class ThresholdedReLU, so that it cannot load the layer 'above'");
  check_refused("tf_keras", mix_dense(2, "hard_sigmoid", .name = "gate"),
                "keras3 computes hard_sigmoid, the activation of the layer 'gate', by another formula");
  check_refused("tf_keras", mix_gru(.units = 2, .recurrent_activation = "hard_sigmoid", .name = "g"),
                "the recurrent_activation of the layer 'g'");
  check_refused("tf_keras", mix_simple_rnn(.units = 2, .time_major = true, .name = "turned"),
                "keras3 has no option time_major of SimpleRNN, which the layer 'turned' sets");
  mix_set_semantics("keras3");
  check_refused("keras3", mix_rms_normalization(.name = "root"),
                "tf_keras has no class RMSNormalization, so that it cannot load the layer 'root'");
  check_refused("keras3", mix_batch_normalization(.renorm = true, .name = "bn"),
                "tf_keras has no option renorm of BatchNormalization, which the layer 'bn' sets");
  check_refused("keras3", mix_time_distributed(mix_dense(2, "hard_sigmoid", .name = "inner")),
                "the activation of the layer 'inner'");
}

/* A wrapped one too; without the optimizer the model is saved. */
static void optimizers_that_are_missing(void **state) {
  (void)state;
  static const char *const expected[] = {
      "model_save: tf_keras has no optimizer Lamb, so that it cannot load the model with 'l'; save for "
      "keras3, or without the optimizer",
      "tf_keras has no option gradient_accumulation_steps of Adam, which the optimizer 'a' sets",
      "tf_keras has no option loss_scale_factor of SGD, which the optimizer 's' sets"};
  mix_set_semantics("keras3");
  for (int o = 0; o < 3; o++)
    for (int wrapped = 0; wrapped < (o < 2 ? 2 : 1); wrapped++)
      MIX_SCOPE {
        mix_model *model = varied();
        mix_optimizer *optimizer = o == 0   ? mix_lamb(.name = "l")
                                   : o == 1 ? mix_adam(.name = "a", .gradient_accumulation_steps = 2)
                                            : mix_sgd(.name = "s", .loss_scale_factor = 2);
        if (wrapped) optimizer = mix_loss_scale_optimizer(optimizer);
        mix_model_compile(model, .loss = "mse", .optimizer = optimizer);
        assert_no_error();
        const mix_semantics *other = mix_semantics_named("tf_keras");
        assert_int_equal(mix_model_save(model, in_folder("never.keras"), .semantics = other),
                         MIX_UNSUPPORTED);
        expect_error(MIX_UNSUPPORTED, expected[o]);
        assert_false(mix_file_exists(in_folder("never.keras")));
        assert_int_equal(
            mix_model_save(model, in_folder("m.keras"), .semantics = other, .no_optimizer = true), MIX_OK);
      }
}

/* Two masks are joined by any and by all of them; one is the same by both. */
static void masks_that_are_joined(void **state) {
  (void)state;
  mix_set_semantics("tf_keras");
  for (int same = 0; same < 2; same++) {
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(4, 3)), *a = mix_call(mix_masking(.mask_value = 1), x);
    mix_tensor *b = same ? mix_call(mix_dropout(0.5), a) : mix_call(mix_masking(.mask_value = 2), x);
    mix_tensor *y = mix_call(mix_add_layer(.name = "joined"), mix_list_of(a, b));
    mix_model *model = mix_model_new(x, mix_call(mix_gru(.units = 2), y));
    const mix_semantics *other = mix_semantics_named("keras3");
    assert_int_equal(mix_model_save(model, in_folder("m.keras"), .semantics = other),
                     same ? MIX_OK : MIX_UNSUPPORTED);
    if (!same) expect_error(MIX_UNSUPPORTED, "the layer 'joined' has a mask, which keras3 passes on by");
  }
}

/* Also behind masks that an outer model makes, or layers of a sequential one, which have no record of them.
 */
static void masks_that_reach_inner_layers(void **state) {
  (void)state;
  const mix_semantics *other = mix_semantics_named("tf_keras");
  mix_set_semantics("keras3");
  for (int masked = 0; masked < 2; masked++) {
    mix_layer *first = masked ? mix_masking(.mask_value = 1) : mix_dropout(0.5);
    mix_model *sequential =
        mix_sequential(mix_list_of(first, mix_rescaling(.scale = 2, .name = "scaled"), mix_gru(.units = 2)));
    mix_model_build(sequential, MIX_SHAPE(MIX_UNKNOWN, 4, 3));
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(4, 3)), *a = mix_input(.shape = MIX_SHAPE(4, 3)),
               *b = mix_input(.shape = MIX_SHAPE(4, 3));
    mix_model *inner =
        mix_model_new(mix_list_of(a, b), mix_call(mix_add_layer(.name = "joined"), mix_list_of(a, b)));
    mix_tensor *y = mix_call(mix_model_layer(inner), mix_list_of(mix_call(first, x), x));
    mix_model *models[] = {sequential, mix_model_new(x, mix_call(mix_gru(.units = 2), y))};
    for (int i = 0; i < 2; i++) {
      assert_no_error();
      assert_int_equal(mix_model_save(models[i], in_folder("m.keras"), .semantics = other),
                       masked ? MIX_UNSUPPORTED : MIX_OK);
      if (masked)
        expect_error(MIX_UNSUPPORTED, i ? "the layer 'joined' has a mask, which tf_keras passes on by"
                                        : "the layer 'scaled' has a mask, which tf_keras passes on by");
      assert_int_equal(mix_model_save(models[i], in_folder("m.keras")), MIX_OK);
    }
  }
}

static void rules_that_train_otherwise(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++)
    MIX_SCOPE {
      mix_set_semantics(generations[g]);
      mix_model *model = varied();
      mix_model_compile(model, .loss = "mse", .optimizer = mix_nadam(.name = "n"));
      train(model, 1);
      warned[0] = 0;
      mix_set_log_callback(note, NULL);
      mix_model_save(model, in_folder("model.keras"), .semantics = mix_semantics_named(generations[!g]));
      mix_set_log_callback(NULL, NULL);
      assert_no_error();
      char expected[200];
      snprintf(expected, sizeof expected, "the optimizer 'n' trains on by another rule in %s than in %s",
               generations[!g], generations[g]);
      assert_non_null(strstr(warned, expected));
      assert_int_equal(strstr(warned, "the momentum product of the optimizer 'n' is left out") != NULL,
                       g == 1);
      assert_same_slots(model, loaded("model.keras"));
    }
}

static int begin(void **state) { return folder_begin(state) || setup(state); }
static int end(void **state) { return teardown(state) || folder_end(state); }

int main(void) {
#define GENERATION_TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
  const struct CMUnitTest tests[] = {GENERATION_TEST(both_directions),
                                     GENERATION_TEST(loss_scales),
                                     GENERATION_TEST(the_form_is_that_of_the_other),
                                     GENERATION_TEST(optimizers_in_hdf5),
                                     GENERATION_TEST(state_that_keras_does_not_read),
                                     GENERATION_TEST(semantics_that_are_none),
                                     GENERATION_TEST(initial_states),
                                     GENERATION_TEST(the_experimental_generation),
                                     GENERATION_TEST(a_class_of_the_users),
                                     GENERATION_TEST(loaded_as_the_other),
                                     GENERATION_TEST(layers_and_options_that_are_missing),
                                     GENERATION_TEST(optimizers_that_are_missing),
                                     GENERATION_TEST(masks_that_are_joined),
                                     GENERATION_TEST(masks_that_reach_inner_layers),
                                     GENERATION_TEST(rules_that_train_otherwise)};
  return cmocka_run_group_tests_name("models for another generation", tests, NULL, NULL);
}
