/* Incremental decoding: logits are those of the whole window, in parts of any size; caches that go back and
 * change places; which models can be decoded. Generation: test_generate.c. */
/* Holds docs/NUMERICS.md: Incremental decoding. */
#include "model/decode_support.h"

static const char *const generations[] = {"tf_keras", "keras3"};

/* The logits, whose softmax is the model's output. */
static mix_tensor *log_probabilities(mix_tensor *logits) {
  return mix_log_softmax(mix_cast(logits, MIX_FLOAT64));
}
static mix_tensor *whole(mix_model *model, mix_tensor *tokens) {
  return mix_log(mix_cast(mix_model_call(model, tokens), MIX_FLOAT64));
}

/* float64 leaves ten digits between roundings, which are about 1e-14, and a wrong mask or position. */
static void logits_of_the_whole_window(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++)
    for (int fixed = 0; fixed < 2; fixed++) {
      mix_set_semantics(generations[g]);
      mix_set_seed(5);
      mix_model *model = transformer("float64", fixed ? WINDOW : MIX_UNKNOWN);
      mix_tensor *tokens = some_tokens(3, WINDOW), *expected = whole(model, tokens);
      mix_decode_state *decode = mix_decode_state_new(model, .batch = 3, .window = fixed ? 0 : WINDOW);
      assert_all_near(log_probabilities(decoded(decode, tokens)), expected, 1e-10);
    }
}

/* ---- one layer of attention, within the bound ---- */

enum { HEADS = 2, PER_HEAD = 4, BATCH = 2 };

/* Multiples of a quarter from -1/2 to 1/2: sums of them and of their products are exact in 16 bits. */
static void set_quarters(mix_variable *variable, int seed) {
  double numbers[512];
  const int64_t count = mix_shape_size(mix_variable_shape(variable));
  assert_true(count <= 512);
  for (int64_t i = 0; i < count; i++) numbers[i] = ((i * 7 + seed * 5 + i / 3) % 5 - 2) / 4.;
  mix_variable_assign(variable, mix_tensor_from_doubles(numbers, mix_variable_true_dtype(variable),
                                                        mix_variable_shape(variable)));
  assert_no_error();
}

/* Projections and scores have the same bits in both forms here, so what differs is what the section lists,
 * from the sum of exponentials on: V bounds |value|, n counts keys and those of the window that are not
 * filled. */
static double bound_of(mix_model *model, double e) {
  const double u = 0x1p-24, n = 2 * WINDOW, d = PER_HEAD, v = FEATURES * 0.5 * 0.5 + 0.5;
  const double head = v * (2 * (n + 8) * u + 2 * e + 2 * n * u + 3 * e) * (1 + 0x1p-4);
  double *kernel =
      numbers_of(mix_variable_true_value(variable_at(model, "attention/attention_output/kernel")));
  double columns[FEATURES] = {0}, largest = 0;
  for (int i = 0; i < HEADS * PER_HEAD * FEATURES; i++) columns[i % FEATURES] += fabs(kernel[i]);
  for (int i = 0; i < FEATURES; i++) largest = fmax(largest, columns[i] * (1 + e));
  free(kernel);
  return largest * (head + v * (2 * HEADS * d * u + 2 * e));
}

typedef struct attention_row {
  const char *generation, *policy;
  double rounding;
  double dropout; /* not zero: scores are in the storage dtype, in Keras 3 too */
  int64_t window, groups;
} attention_row;

static void attention_within_its_bound(void **state) {
  (void)state;
  static const attention_row rows[] = {
      {"tf_keras", "float32", 0x1p-24, 0, 0, 0},       {"tf_keras", "mixed_float16", 0x1p-11, 0, 0, 0},
      {"tf_keras", "mixed_bfloat16", 0x1p-8, 0, 0, 0}, {"keras3", "float32", 0x1p-24, 0, 5, 0},
      {"keras3", "mixed_float16", 0x1p-11, 0, 0, 0},   {"keras3", "mixed_float16", 0x1p-11, 0.5, 3, 0},
      {"keras3", "mixed_bfloat16", 0x1p-8, 0, 0, 1},   {"keras3", "mixed_float16", 0x1p-11, 0, 4, 1},
  };
  const char *accumulate = mix_accumulate();
  assert_int_equal(mix_set_accumulate("exact"), MIX_OK); /* sums in float32, as the bound has them */
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    const attention_row *row = &rows[r];
    mix_set_semantics(row->generation);
    mix_set_global_policy(row->policy);
    mix_tensor *tokens = mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN), .dtype = "int32");
    mix_tensor *x = mix_call(mix_embedding(VOCABULARY, FEATURES, .name = "rows"), tokens);
    mix_layer *attention =
        row->groups ? mix_grouped_query_attention(PER_HEAD, HEADS, row->groups, .name = "attention",
                                                  .dropout = row->dropout, .sliding_window = row->window)
                    : mix_multi_head_attention(HEADS, PER_HEAD, .name = "attention", .dropout = row->dropout,
                                               .sliding_window = row->window);
    mix_model *model = mix_model_new(tokens, causal(attention, x));
    mix_set_global_policy("float32");
    assert_no_error();
    mix_list *weights = mix_model_weights(model);
    for (int i = 0; i < mix_list_count(weights); i++)
      if (!strstr(mix_variable_name(mix_list_get(weights, i)), "attention_output"))
        set_quarters(mix_list_get(weights, i), i);
    mix_tensor *fed = some_tokens(BATCH, WINDOW);
    mix_decode_state *decode = mix_decode_state_new(model, .batch = BATCH, .window = WINDOW + 3);
    mix_tensor *got = decoded(decode, fed);
    assert_int_equal(mix_tensor_dtype(got), mix_layer_compute_dtype(attention));
    assert_all_near(got, mix_model_call(model, fed), bound_of(model, row->rounding));
  }
  mix_set_accumulate(accumulate);
}

/* ---- states ---- */

static void going_back_and_changing_places(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_model *model = transformer("mixed_bfloat16", WINDOW);
  mix_tensor *tokens = some_tokens(3, 12);
  mix_decode_state *decode = mix_decode_state_new(model, .batch = 3);
  mix_tensor *first = mix_decode(decode, columns_of(tokens, 0, 8)),
             *next = mix_decode(decode, columns_of(tokens, 8, 1));
  assert_int_equal(mix_decode_position(decode), 9);
  mix_decode(decode, columns_of(tokens, 9, 2));
  assert_int_equal(mix_decode_rewind(decode, 8), MIX_OK);
  assert_all_near(mix_decode(decode, columns_of(tokens, 8, 1)), next, 0);
  const int32_t places[] = {2, 0, 0};
  mix_decode_rewind(decode, 8);
  mix_tensor *parents = mix_tensor_from(places, MIX_INT32, MIX_SHAPE(3));
  assert_int_equal(mix_decode_reorder(decode, parents), MIX_OK);
  assert_all_near(mix_decode(decode, mix_gather(columns_of(tokens, 8, 1), parents, 0)),
                  mix_gather(next, parents, 0), 0);
  mix_decode_rewind(decode, 0);
  assert_all_near(mix_decode(decode, columns_of(tokens, 0, 8)), first, 0);
  assert_int_equal(mix_decode_rewind(decode, 9), MIX_VALUE_ERROR);
  expect_error(MIX_VALUE_ERROR, "position 9; expected 0 to 8");
  assert_int_equal(mix_decode_position(decode), 8);
}

/* The bits do not depend on the number of threads, and weights are read as they are. */
static void threads_and_weights(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_model *model = transformer("mixed_float16", WINDOW);
  mix_tensor *tokens = some_tokens(2, 9), *results[3];
  mix_decode_state *decode = mix_decode_state_new(model, .batch = 2);
  const int threads = mix_threads();
  for (int i = 0; i < 3; i++) {
    mix_set_threads(i + 1);
    mix_decode_rewind(decode, 0);
    results[i] = decoded(decode, tokens);
    assert_all_near(results[i], results[0], 0);
  }
  mix_set_threads(threads);
  mix_list *weights = mix_model_weights(model);
  mix_variable *bias = mix_list_get(weights, mix_list_count(weights) - 1);
  mix_variable_assign(bias, mix_fill(mix_variable_shape(bias), 64, MIX_FLOAT32));
  mix_decode_rewind(decode, 0);
  assert_true(at(decoded(decode, tokens), 0) > 32);
}

static int calls;
static mix_list *counting_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  calls++;
  return mix_list_of(mix_call_input(args, 0));
}
static const mix_layer_class counting_class = {
    .size = sizeof(mix_layer_class), .name = "Counting", .call = counting_call, .decodes = true};

/* At all positions the same plan; a change of the layers makes a new one. */
static void one_plan_for_all_positions(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_tensor *tokens = mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN), .dtype = "int32");
  mix_tensor *x =
      mix_call(mix_layer_new(&counting_class), mix_call(mix_embedding(VOCABULARY, FEATURES), tokens));
  x = causal(mix_multi_head_attention(2, 4), x);
  mix_model *model = mix_model_new(tokens, mix_call(mix_dense(VOCABULARY, .name = "logits"), x));
  mix_decode_state *decode = mix_decode_state_new(model, .window = WINDOW);
  assert_no_error();
  calls = 0;
  for (int i = 0; i < 10; i++) mix_decode(decode, some_tokens(1, 1));
  assert_no_error();
  assert_int_equal(calls, 1);
  mix_decode(decode, some_tokens(1, 4));
  assert_int_equal(calls, 2);
  mix_model_enable_lora(model, 2, .filter = "logits");
  mix_decode(decode, some_tokens(1, 1));
  assert_no_error();
  assert_int_equal(calls, 3);
}

/* Rows that a mask leaves out are no keys, and attention that is called twice has two caches. */
static void masks_and_shared_layers(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_set_global_policy("float64");
    mix_tensor *tokens = mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN), .dtype = "int32");
    mix_tensor *x = mix_call(mix_embedding(VOCABULARY, FEATURES, .mask_zero = true), tokens);
    mix_layer *attention = mix_multi_head_attention(2, 4);
    x = causal(attention, mix_call(mix_layer_normalization(), causal(attention, x)));
    mix_model *model = mix_model_new(tokens, x);
    mix_set_global_policy("float32");
    const int32_t fed[] = {3, 5, 0, 0, 2, 7, 1, 1, 2, 0, 4, 6, 8, 9};
    const bool seen[] = {true, true, false, false, true, true, true,
                         true, true, false, true,  true, true, true};
    mix_tensor *own = mix_tensor_from(fed, MIX_INT32, MIX_SHAPE(2, 7)),
               *mask = mix_expand_dims(mix_tensor_from(seen, MIX_BOOL, MIX_SHAPE(2, 7)), -1);
    mix_tensor *got = decoded(mix_decode_state_new(model, .batch = 2, .window = 8), own),
               *expected = mix_model_call(model, own);
    assert_no_error();
    assert_all_near(mix_select(mask, got, mix_scalar_like(got, 0)),
                    mix_select(mask, expected, mix_scalar_like(got, 0)), 1e-10);
  }
}

/* A second input takes the positions, in any order of the two. */
static void positions_as_an_input(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  for (int before = 0; before < 2; before++) {
    mix_set_global_policy("float64");
    mix_tensor *tokens = mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN), .dtype = "int32", .name = "tokens"),
               *places = mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN), .dtype = "int32", .name = "places");
    mix_tensor *x = sum_of(mix_call(mix_embedding(VOCABULARY, FEATURES), tokens),
                           mix_call(mix_embedding(WINDOW, FEATURES), places));
    x = causal(mix_multi_head_attention(2, 4), x);
    mix_model *model = mix_model_new(before ? mix_list_of(places, tokens) : mix_list_of(tokens, places), x);
    mix_set_global_policy("float32");
    mix_tensor *fed = some_tokens(2, 6), *range = mix_range(0, 6, 1, MIX_INT32);
    range = mix_broadcast_to(range, MIX_SHAPE(2, 6));
    mix_decode_state *decode = mix_decode_state_new(model, .batch = 2, .window = 6, .positions = "places");
    assert_all_near(decoded(decode, fed),
                    mix_model_call(model, before ? mix_list_of(range, fed) : mix_list_of(fed, range)), 1e-10);
    expect_refused(mix_decode_state_new(model, .window = 6), MIX_VALUE_ERROR, "2 inputs and 1 outputs");
    expect_refused(mix_decode_state_new(model, .window = 6, .positions = "place"), MIX_VALUE_ERROR,
                   "no input 'place'");
  }
}

/* ---- layers that take each position by itself ---- */

typedef mix_tensor *(*make)(mix_tensor *x);
static mix_tensor *each_by_dense(mix_tensor *x) {
  return mix_call(mix_time_distributed(mix_dense(FEATURES, "tanh")), x);
}
/* The inner layers mix what they have of one position: its features as a sequence of two. */
static mix_tensor *each_by_sequence(mix_tensor *x) {
  mix_tensor *pairs = mix_input(.shape = MIX_SHAPE(2, FEATURES / 2));
  mix_tensor *y = causal(mix_multi_head_attention(2, 2), pairs);
  mix_model *model = mix_model_new(pairs, mix_call(mix_lstm(FEATURES), y));
  x = mix_call(mix_time_distributed(mix_reshape_layer(MIX_SHAPE(2, FEATURES / 2))), x);
  return mix_call(mix_time_distributed(mix_model_layer(model)), x);
}
static mix_tensor *without_channels(mix_tensor *x) { return mix_call(mix_spatial_dropout1d(0.5), x); }
static mix_tensor *cubed(void *context, const mix_call_args *args) {
  (void)context;
  mix_tensor *x = mix_call_input(args, 0);
  return mix_multiply(mix_square(x), x);
}
static mix_tensor *by_function(mix_tensor *x) {
  return mix_call(mix_lambda(.function = cubed, .decodes = true), x);
}
static mix_tensor *by_operations(mix_tensor *x) {
  static const char *const configs[] = {
      "{\"class_name\": \"Arcsinh\", \"config\": {}}",
      "{\"class_name\": \"Threshold\", \"config\": {\"threshold\": 0.01, \"default_value\": -1}}",
      "{\"class_name\": \"NanToNum\", \"config\": {\"nan\": 0}}"};
  for (int i = 0; i < 3; i++) x = mix_call(mix_layer_deserialize(configs[i], NULL), x);
  return x;
}

static void positions_by_themselves(void **state) {
  (void)state;
  static const make rows[] = {each_by_dense, each_by_sequence, without_channels, by_function, by_operations};
  for (int g = 0; g < 2; g++)
    for (int i = 0; i < (g ? 5 : 4); i++) {
      mix_set_semantics(generations[g]);
      mix_set_seed(7);
      mix_set_global_policy("float64");
      mix_tensor *tokens = mix_input(.shape = MIX_SHAPE(WINDOW), .dtype = "int32");
      mix_tensor *x = mix_call(mix_embedding(VOCABULARY, FEATURES), tokens);
      x = causal(mix_multi_head_attention(2, 4), rows[i](x));
      mix_model *model = mix_model_new(tokens, x);
      mix_set_global_policy("float32");
      assert_no_error();
      mix_tensor *fed = some_tokens(2, WINDOW);
      assert_all_near(decoded(mix_decode_state_new(model, .batch = 2), fed), mix_model_call(model, fed),
                      1e-10);
    }
}

/* ---- models from files ---- */

/* An attention layer inside a model inside a model, and a Sequential model; from a Keras file. */
static void models_of_files(void **state) {
  (void)state;

  const char *path = in_folder("gpt.keras");
  mix_set_semantics("keras3");
  mix_set_global_policy("float64");
  mix_tensor *inner = mix_input(.shape = MIX_SHAPE(MIX_UNKNOWN, FEATURES));
  mix_tensor *y = mix_call(mix_rms_normalization(), inner);
  mix_model *block =
      mix_model_new(inner, sum_of(inner, causal(mix_grouped_query_attention(4, 2, 1, .use_gate = true), y)));
  mix_tensor *tokens = mix_input(.shape = MIX_SHAPE(WINDOW), .dtype = "int32");
  mix_tensor *x = mix_call(mix_embedding(VOCABULARY, FEATURES), tokens);
  x = mix_call(mix_model_layer(block), mix_call(mix_activation("swish"), x));
  x = mix_call(mix_einsum_dense("abc,cd->abd", .output_shape = MIX_SHAPE(MIX_UNKNOWN, VOCABULARY)), x);
  mix_model *model = mix_model_new(tokens, x);
  mix_set_global_policy("float32");
  assert_int_equal(mix_model_save(model, path), MIX_OK);
  mix_model *loaded = mix_model_load(path);
  assert_no_error();
  mix_tensor *fed = some_tokens(1, 9);
  assert_all_near(decoded(mix_decode_state_new(loaded), fed), mix_model_call(model, fed), 1e-10);
  mix_model *plain = mix_sequential(mix_list_of(mix_embedding(VOCABULARY, FEATURES), mix_dense(VOCABULARY)));
  mix_model_call(plain, fed);
  assert_all_near(decoded(mix_decode_state_new(plain, .window = 9), fed), mix_model_call(plain, fed), 1e-5);
}

/* ---- what is refused ---- */

static mix_tensor *bidirectional(mix_tensor *x) {
  return mix_call(mix_multi_head_attention(2, 4, .name = "both"), x, .arguments = mix_list_of(x));
}
static mix_tensor *scored(mix_tensor *x) {
  return mix_list_get(mix_call_outputs(mix_multi_head_attention(2, 4, .name = "scored"), x,
                                       .arguments = mix_list_of(x), .use_causal_mask = true,
                                       .return_attention_scores = true),
                      0);
}
static mix_tensor *masked(mix_tensor *x) {
  return mix_call(mix_multi_head_attention(2, 4, .name = "masked"), x, .arguments = mix_list_of(x),
                  .use_causal_mask = true, .attention_mask = mix_fill(MIX_SHAPE(1, 1, 1), 1, MIX_BOOL));
}
static mix_tensor *convolved(mix_tensor *x) {
  return mix_call(mix_conv1d(FEATURES, 3, .padding = "causal", .name = "convolved"), x);
}
static mix_tensor *recurrent(mix_tensor *x) {
  return mix_call(mix_lstm(FEATURES, .return_sequences = true, .name = "recurrent"), x);
}
static mix_tensor *normalized(mix_tensor *x) {
  return mix_call(mix_layer_normalization(.axis = MIX_AXES(1, 2), .name = "normalized"), x);
}
static mix_tensor *dense_attention(mix_tensor *x) {
  return mix_call(mix_attention(.name = "dense"), mix_list_of(x, x), .use_causal_mask = true);
}
static mix_tensor *over_positions(mix_tensor *x) {
  return mix_call(
      mix_einsum_dense("abc,bd->adc", .output_shape = MIX_SHAPE(WINDOW, FEATURES), .name = "over"), x);
}
static mix_tensor *pooled(mix_tensor *x) {
  return mix_call(mix_global_average_pooling1d(.name = "pooled"), x);
}
static mix_tensor *permuted(mix_tensor *x) {
  return mix_call(mix_reshape_layer(MIX_SHAPE(WINDOW, FEATURES), .name = "reshaped"), x);
}
static mix_tensor *doubled(mix_tensor *x) {
  return mix_call(mix_concatenate(.axis = 1, .name = "doubled"), mix_list_of(x, x));
}
static mix_tensor *by_any_function(mix_tensor *x) {
  return mix_call(mix_lambda(.function = cubed, .name = "cubed"), x);
}
static mix_tensor *each_by_any_function(mix_tensor *x) {
  return mix_call(mix_time_distributed(mix_lambda(.function = cubed), .name = "each"), x);
}
static const mix_layer_class silent = {
    .size = sizeof(mix_layer_class), .name = "Silent", .call = counting_call};
static mix_tensor *of_a_user(mix_tensor *x) { return mix_call(mix_layer_new(&silent, .name = "mine"), x); }

static void models_that_are_refused(void **state) {
  (void)state;
  static const struct {
    make make;
    const char *message;
  } rows[] = {{bidirectional, "layer 'both' (MultiHeadAttention) attends to later positions"},
              {scored, "layer 'scored' (MultiHeadAttention) returns attention scores"},
              {masked, "layer 'masked' (MultiHeadAttention) is called with an attention_mask"},
              {convolved, "layer 'convolved' (Conv1D) mixes positions"},
              {recurrent, "layer 'recurrent' (LSTM) mixes positions"},
              {normalized, "layer 'normalized' (LayerNormalization) mixes positions"},
              {dense_attention, "layer 'dense' (Attention) mixes positions"},
              {over_positions, "layer 'over' (EinsumDense) mixes positions"},
              {pooled, "layer 'pooled' (GlobalAveragePooling1D) mixes positions"},
              {doubled, "layer 'doubled' (Concatenate) made a result of shape (1, 2, 8) of 1 new positions"},
              {by_any_function, "layer 'cubed' (Lambda) does not say that its function can be decoded"},
              {each_by_any_function, "layer 'each' (TimeDistributed) mixes positions"},
              {of_a_user, "layer 'mine' is of the class Silent, which does not say"}};
  mix_set_semantics("keras3");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    mix_tensor *tokens = mix_input(.shape = MIX_SHAPE(WINDOW), .dtype = "int32");
    mix_model *model =
        mix_model_new(tokens, rows[i].make(mix_call(mix_embedding(VOCABULARY, FEATURES), tokens)));
    assert_no_error();
    expect_refused(mix_decode_state_new(model), MIX_VALUE_ERROR, rows[i].message);
  }
  mix_tensor *tokens = mix_input(.shape = MIX_SHAPE(WINDOW));
  mix_model *dense = mix_model_new(tokens, mix_call(mix_dense(WINDOW, .name = "flat"), tokens));
  expect_refused(mix_decode_state_new(dense), MIX_VALUE_ERROR, "flat");
  tokens = mix_input(.shape = MIX_SHAPE(WINDOW), .dtype = "int32");
  mix_tensor *reshaped = permuted(mix_call(mix_embedding(VOCABULARY, FEATURES), tokens));
  expect_refused(mix_decode_state_new(mix_model_new(tokens, reshaped)), MIX_VALUE_ERROR, "reshaped");
  tokens = mix_input(.shape = MIX_SHAPE(WINDOW), .dtype = "int32");
  mix_model *integers = mix_model_new(tokens, mix_call(mix_activation("linear"), tokens));
  mix_decode_state_new(integers);
  assert_int_not_equal(mix_error(), MIX_OK);
  mix_error_clear();
}

/* A sum over the cache multiplies what was fed before a rewind by 0, which NaN and infinity survive. */
static void nothing_is_left_of_what_was_rewound(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_model *model = transformer("float64", WINDOW);
  mix_tensor *tokens = some_tokens(2, 6);
  mix_decode_state *decode = mix_decode_state_new(model, .batch = 2);
  mix_tensor *expected = decoded(decode, tokens);
  mix_evaluate(1, &expected);
  for (int64_t kept = 0; kept < 3; kept += 2) {
    mix_decode_rewind(decode, kept);
    mix_list *weights = mix_model_get_weights(model);
    mix_variable *table = mix_list_get(mix_model_weights(model), 0);
    mix_variable_assign(table, mix_fill(mix_variable_shape(table), NAN, MIX_FLOAT64));
    mix_tensor *bad = mix_decode(decode, columns_of(tokens, kept, 3));
    assert_true(isnan(at(mix_slice(bad, MIX_SHAPE(0, 0, 0), MIX_SHAPE(1, 1, 1)), 0)));
    mix_model_set_weights(model, weights);
    assert_int_equal(mix_decode_rewind(decode, kept), MIX_OK);
    mix_tensor *again = mix_decode(decode, columns_of(tokens, kept, 3));
    assert_all_near(again, mix_slice(expected, MIX_SHAPE(0, kept, 0), MIX_SHAPE(2, 3, VOCABULARY)), 1e-10);
  }
}

/* A plan would feed all its tokens at the position of the capture. */
static mix_list *feeds(void *context, mix_list *arguments) {
  mix_tensor *logits = mix_decode(context, mix_list_get(arguments, 0));
  return logits ? mix_list_of(logits) : NULL;
}

static void only_eager_functions_decode(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_model *model = transformer("float64", WINDOW);
  mix_tensor *tokens = some_tokens(2, 3);
  mix_decode_state *decode = mix_decode_state_new(model, .batch = 2);
  assert_null(mix_function_call(mix_function_new(feeds, decode), mix_list_of(columns_of(tokens, 0, 1))));
  expect_error(MIX_RUNTIME_ERROR, "decode: a function is being captured");
  assert_int_equal(mix_decode_position(decode), 0);
  mix_function *eager = mix_function_new(feeds, decode, .run_eagerly = true);
  mix_tensor *logits = NULL;
  for (int i = 0; i < 3; i++)
    logits = mix_list_get(mix_function_call(eager, mix_list_of(columns_of(tokens, i, 1))), 0);
  assert_int_equal(mix_decode_position(decode), 3);
  assert_all_near(log_probabilities(logits),
                  mix_slice(whole(model, tokens), MIX_SHAPE(0, 2, 0), MIX_SHAPE(2, 1, VOCABULARY)), 1e-10);
}

static void bad_calls(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_model *model = transformer("float32", MIX_UNKNOWN), *fixed = transformer("float32", WINDOW);
  expect_refused(mix_decode_state_new(NULL), MIX_TYPE_ERROR, "decode_state_new");
  expect_refused(mix_decode_state_new(model), MIX_VALUE_ERROR, "give a positive .window");
  expect_refused(mix_decode_state_new(fixed, .window = WINDOW + 1), MIX_VALUE_ERROR, "has 24 positions");
  expect_refused(mix_decode_state_new(model, .window = -1), MIX_VALUE_ERROR, "window -1");
  expect_refused(mix_decode_state_new(model, .window = 8, .batch = -2), MIX_VALUE_ERROR, "batch is -2");
  expect_refused(mix_decode_state_new(model, .window = INT64_C(1) << 31), MIX_VALUE_ERROR, "above 2^31 - 1");
  expect_refused(mix_decode_state_new(mix_sequential(mix_list_of(mix_dense(3))), .window = 3),
                 MIX_VALUE_ERROR, "decode_state_new");
  mix_decode_state *decode = mix_decode_state_new(model, .window = 5, .batch = 2);
  assert_no_error();
  expect_refused(mix_decode(NULL, some_tokens(2, 1)), MIX_TYPE_ERROR, "decode");
  expect_refused(mix_decode(decode, NULL), MIX_TYPE_ERROR, "decode");
  expect_refused(mix_decode(decode, some_tokens(3, 1)), MIX_VALUE_ERROR, "expected (2, 1 or more)");
  expect_refused(mix_decode(decode, mix_fill(MIX_SHAPE(2), 1, MIX_INT32)), MIX_VALUE_ERROR, "shape (2)");
  expect_refused(mix_decode(decode, mix_fill(MIX_SHAPE(2, 1), 1, MIX_FLOAT32)), MIX_TYPE_ERROR,
                 "float32; expected integers");
  expect_refused(mix_decode(decode, some_tokens(2, 6)), MIX_VALUE_ERROR, "the window holds 5");
  expect_refused(mix_decode_reorder(decode, mix_fill(MIX_SHAPE(3), 0, MIX_INT32)) == MIX_OK, MIX_VALUE_ERROR,
                 "parents have shape (3); expected (2)");
  assert_int_equal(mix_decode_position(decode), 0);
  assert_int_equal(mix_decode_position(NULL), -1);
  mix_tensor *good = mix_decode(decode, some_tokens(2, 4));
  assert_no_error();
  mix_tensor *next = mix_decode(decode, some_tokens(2, 1));
  mix_decode_rewind(decode, 4);
  /* A token that the table does not have, and a sequence that is not there: nothing changes. */
  mix_tensor *wrong = mix_decode(decode, mix_fill(MIX_SHAPE(2, 1), VOCABULARY, MIX_INT32));
  if (wrong) mix_synchronize();
  assert_int_not_equal(mix_error(), MIX_OK);
  mix_error_clear();
  const int32_t absent[] = {1, 2};
  if (mix_decode_reorder(decode, mix_tensor_from(absent, MIX_INT32, MIX_SHAPE(2))) == MIX_OK)
    mix_synchronize();
  assert_int_not_equal(mix_error(), MIX_OK);
  mix_error_clear();
  mix_decode_rewind(decode, 4);
  assert_all_near(mix_decode(decode, some_tokens(2, 1)), next, 0);
  assert_non_null(good);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(logits_of_the_whole_window),
      TEST(attention_within_its_bound),
      TEST(going_back_and_changing_places),
      TEST(threads_and_weights),
      TEST(one_plan_for_all_positions),
      TEST(masks_and_shared_layers),
      TEST(positions_as_an_input),
      TEST(positions_by_themselves),
      TEST(models_of_files),
      TEST(models_that_are_refused),
      TEST(nothing_is_left_of_what_was_rewound),
      TEST(only_eager_functions_decode),
      TEST(bad_calls),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
