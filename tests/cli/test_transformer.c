/* --model transformer: its parameters, what a place of the decoder sees, its positions, and the program with
 * it. */
#include "cli/program.h"

#include "cli/models/models.h"

static int64_t count_parameters(mix_model *model) {
  int64_t count = 0;
  if (!model) fail_msg("%s", mix_error_message());
  mix_list *variables = mix_model_trainable_variables(model);
  for (int i = 0; i < mix_list_count(variables); i++)
    count += mix_shape_size(mix_variable_shape(mix_list_get(variables, i)));
  return count;
}

/* Projections have no bias, feed-forward networks have; norms scale and shift. */
static int64_t parameters_of(const cli_transformer_sizes *s) {
  const int64_t u = s->units, attention = 4 * u * u, norm = 2 * u,
                filter = 2 * u * s->filter_size + s->filter_size + u;
  return s->vocabulary * u + s->layers * (3 * attention + 2 * filter + 5 * norm) + 2 * norm;
}

static void parameters_are_those_of_the_official_model(void **state) {
  (void)state;
  static const cli_transformer_sizes sizes[] = {{33708, 6, 512, 8, 2048}, {11, 2, 12, 3, 7}};
  for (int i = 0; i < 2; i++)
    MIX_SCOPE { assert_int_equal(count_parameters(cli_transformer(&sizes[i])), parameters_of(&sizes[i])); }
  assert_int_equal(parameters_of(&sizes[0]), 61362176);
}

static void the_last_activation_is_float32(void **state) {
  (void)state;
  static const char *const policies[] = {"mixed_float16", "mixed_bfloat16"};
  for (int p = 0; p < 2; p++)
    MIX_SCOPE {
      mix_set_global_policy(policies[p]);
      mix_model *model = cli_transformer(&(cli_transformer_sizes){11, 1, 8, 2, 16});
      assert_non_null(model);
      static const char *const wide[] = {"predictions", "encoder_0_self_attention_norm", "decoder_norm"};
      for (int i = 0; i < 3; i++)
        assert_string_equal(mix_policy_name(mix_layer_policy(mix_model_get_layer(model, wide[i]))),
                            "float32");
      mix_layer *attention = mix_model_get_layer(model, "decoder_0_attention");
      assert_string_equal(mix_policy_name(mix_layer_policy(attention)), policies[p]);
    }
  mix_set_global_policy("float32");
}

/* ---- what a place sees ---- */

enum { PLACES = 5, TOKENS = 11, VALUES = 2 * PLACES * TOKENS };

static void predict(mix_model *model, const int32_t *inputs, int64_t length, const int32_t *targets,
                    double *y) {
  mix_tensor *x = mix_tensor_from(inputs, MIX_INT32, MIX_SHAPE(2, length)),
             *t = mix_tensor_from(targets, MIX_INT32, MIX_SHAPE(2, PLACES));
  if (mix_tensor_read(mix_model_call(model, mix_list_of(x, t)), MIX_FLOAT64, y, VALUES))
    fail_msg("%s", mix_error_message());
}

static const int32_t inputs[] = {3, 7, 1, 9, 4, 2, 2, 8, 0, 0},
                     targets[2 * PLACES] = {5, 6, 1, 10, 2, 9, 3, 3, 7, 1};

/* A target is seen at the positions after it, in its own sequence: the masks leave exact zeros of the others.
 */
static void targets_are_seen_after_their_place(void **state) {
  (void)state;
  static double before[VALUES], after[VALUES];
  MIX_SCOPE {
    mix_set_seed(3);
    mix_model *model = cli_transformer(&(cli_transformer_sizes){TOKENS, 2, 8, 2, 16});
    predict(model, inputs, 5, targets, before);
    for (int place = 0; place < PLACES; place++) {
      int32_t changed[2 * PLACES];
      memcpy(changed, targets, sizeof changed);
      changed[place] = changed[place] % 10 + 1;
      predict(model, inputs, 5, changed, after);
      for (int i = 0; i < VALUES; i++) {
        const int at = i / TOKENS;
        const bool seen = at < PLACES && at > place, differs = before[i] != after[i];
        if (differs && !seen) fail_msg("place %d sees the target %d", at, place);
      }
      const size_t next = (size_t)(place + 1) * TOKENS;
      if (place + 1 < PLACES) assert_memory_not_equal(before + next, after + next, TOKENS * sizeof *before);
    }
  }
}

/* Token 0 behind the inputs is not attended to: two or four of them are the same. Sums over more keys, of
 * which the others are zeros, differ in the order of their terms: a few of 2^-24 for probabilities below 1,
 * through two layers. */
static void token_0_fills_up(void **state) {
  (void)state;
  static double before[VALUES], after[VALUES];
  const int32_t longer[] = {3, 7, 1, 9, 4, 0, 0, 2, 2, 8, 0, 0, 0, 0};
  MIX_SCOPE {
    mix_set_seed(4);
    mix_model *model = cli_transformer(&(cli_transformer_sizes){TOKENS, 2, 8, 2, 16});
    predict(model, inputs, 5, targets, before);
    predict(model, longer, 7, targets, after);
    for (int i = 0; i < VALUES; i++) assert_true(fabs(before[i] - after[i]) <= 16 * 0x1p-24);
    /* nor does a filled up target count: the loss of the first sequence alone */
    int32_t one[2 * PLACES] = {5, 6, 1, 10, 2};
    predict(model, inputs, 5, one, after);
    double expected = 0;
    for (int place = 0; place < PLACES; place++) expected -= log(after[place * TOKENS + one[place]]) / PLACES;
    mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_sgd());
    mix_tensor *x = mix_tensor_from(inputs, MIX_INT32, MIX_SHAPE(2, 5)),
               *y = mix_tensor_from(one, MIX_INT32, MIX_SHAPE(2, PLACES));
    mix_logs *logs = mix_model_evaluate(model, mix_list_of(x, y), y, .verbose = MIX_SILENT);
    if (!logs) fail_msg("%s", mix_error_message());
    /* tf_keras's mean is over the positions that count; a few roundings each */
    assert_true(fabs(mix_logs_get(logs, "loss") - expected) <= 16 * 0x1p-24 * expected);
  }
}

/* Of the official models: sines, then cosines, of wave lengths in a geometric series from 2 pi to 20,000 pi;
 * a float32 sine of an angle of at most 6. */
static void positions_are_sines_and_cosines(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model = cli_transformer(&(cli_transformer_sizes){TOKENS, 1, 8, 2, 16});
    mix_tensor *zeros = mix_fill(MIX_SHAPE(1, 7, 8), 0, MIX_FLOAT32);
    double y[7][8];
    mix_tensor_read(mix_call(mix_model_get_layer(model, "encoder_positions"), zeros), MIX_FLOAT64, y[0], 56);
    assert_int_equal(mix_error(), MIX_OK);
    for (int place = 0; place < 7; place++)
      for (int unit = 0; unit < 8; unit++) {
        const double angle = place * pow(10000, -(unit % 4) / 3.);
        assert_true(fabs(y[place][unit] - (unit < 4 ? sin(angle) : cos(angle))) < 1e-6);
      }
  }
}

/* ---- the program ---- */

#define SMALL                                                                                                \
  "--model", "transformer", "--layers", "1", "--units", "16", "--heads", "2", "--classes", "40", "--length", \
      "6", "--batch-size", "8"

static void it_trains_under_each_policy(void **state) {
  (void)state;
  static const char *const dtypes[] = {"fp32", "fp16", "bf16"};
  for (int d = 0; d < 3; d++) {
    assert_code(run_program("train", SMALL, "--dtype", dtypes[d], "--epochs", "12", "--optimizer",
                            "adam:learning_rate=0.01", "--json"),
                0);
    assert_has(program_err, "data: synthetic");
    json_t *object = printed_object(), *losses = json_object_get(json_object_get(object, "history"), "loss");
    assert_int_equal(json_array_size(losses), 12);
    const double first = number_in(json_array_get(losses, 0)), last = number_in(json_array_get(losses, 11));
    assert_true(first > 3 && first < 8); /* log(40) is 3.7 */
    assert_true(last < 0.8 * first);     /* 192 random tokens are learnt by heart */
    json_decref(object);
  }
}

static void other_commands_take_it(void **state) {
  (void)state;
  assert_code(run_program("summary", "--model", "transformer", "--layers", "1", "--classes", "100"), 0);
  assert_has(program_out, "decoder_0_attention (Multi"); /* cut to its column */
  assert_code(run_program("train", SMALL, "--steps", "2", "--save", in_folder("t.keras")), 0);
  assert_code(run_program("evaluate", "--model", in_folder("t.keras"), "--data", "synthetic"), 0);
  assert_null(strstr(program_out, "loss: 0.0\n")); /* of tokens that count */
  assert_code(run_program("train", SMALL, "--steps", "2", "--save", in_folder("t.npz")), 0);
  assert_code(run_program("evaluate", SMALL, "--init-weights", in_folder("t.npz")), 0);
  assert_code(run_program("predict", SMALL, "--output", in_folder("y.npz")), 0);
  assert_code(run_program("predict", SMALL), 2);
  assert_has(program_err,
             "the model's outputs are no classes of examples but scores of classes at each position");
  assert_has(program_err, "--output FILE.npz writes them, and examples/12_transformer.c decodes");
  assert_code(run_program("numerics", SMALL, "--steps", "3", "--dtype", "fp16"), 0);
  assert_has(program_out, "encoder_positions/output");
  static const char *const explain[] = {"amp", "explain", SMALL, NULL};
  assert_code(run_program_to(in_folder("explained.txt"), explain), 0);
  assert_code(run_program("bench", SMALL, "--quick", "--json"), 0);
  json_t *object = printed_object();
  assert_int_equal(json_array_size(json_object_get(json_object_get(object, "model_steps"), "policies")), 3);
  json_decref(object);
  assert_code(run_program("bench", "--model", "transformer", "--layers", "1", "--advise"), 0);
  assert_has(program_out, "decoder_0_ffn_filter");
}

static void bad_options_are_reported(void **state) {
  (void)state;
  assert_code(run_program("train", "--model", "transformer", "--heads", "3"), 2);
  assert_has(program_err, "--units 512: expected an even multiple of the heads, of which there are 3");
  assert_code(run_program("train", "--model", "transformer", "--units", "3", "--heads", "3"), 2);
  assert_code(run_program("train", "--model", "transformer", "--units", "100000"), 2);
  assert_code(run_program("train", "--model", "transformer", "--layers", "1000"), 2);
  assert_code(run_program("train", "--model", "transformer", "--classes", "1"), 2);
  assert_has(program_err, "at least 2 tokens");
  assert_code(run_program("train", "--model", "transformer", "--image-size", "32"), 2);
  assert_has(program_err, "--image-size belongs to models of images");
  assert_code(run_program("train", "--model", "transformer", "--loop", "custom"), 2);
  assert_has(program_err, "--loop custom belongs to --model guide");
  assert_code(run_program("train", "--model", "resnet56", "--layers", "3"), 2);
  assert_has(program_err, "--layers belongs to --model transformer, and the model is resnet56");
  assert_code(run_program("train", "--filter-size", "3"), 2);
  assert_code(run_program("bench", "--length", "3"), 2);
  assert_code(run_program("train", "--model", "transformer", "--data", "digits"), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parameters_are_those_of_the_official_model),
      cmocka_unit_test(the_last_activation_is_float32),
      cmocka_unit_test(targets_are_seen_after_their_place),
      cmocka_unit_test(token_0_fills_up),
      cmocka_unit_test(positions_are_sines_and_cosines),
      cmocka_unit_test(it_trains_under_each_policy),
      cmocka_unit_test(other_commands_take_it),
      cmocka_unit_test(bad_options_are_reported),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
