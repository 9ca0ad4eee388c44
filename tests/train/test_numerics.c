/* The numerics report on models with numbers that can be worked out by hand, and on models in which a known
 * layer overflows, underflows or gets NaN. */
#include "support/count.h"
#include "train/numerics_support.h"
#include <unistd.h>

/* ---- counts ---- */

/* x 0 to 3, w 2, y 0: outputs 0 2 4 6. The mean of their squares has the gradient 2 (2 x) / 4 = x; the
 * gradient of w is 0 + 1 + 4 + 9. */
static void every_number_of_a_small_model(void **state) {
  (void)state;
  mix_numerics *report = mix_numerics_run(product_model(2, 0), counting(4), mix_fill(MIX_SHAPE(4, 1), 0, F32),
                                          .steps = 3, .batch_size = 4);
  assert_no_error();
  assert_int_equal(mix_numerics_steps(report), 3);
  assert_int_equal(mix_numerics_watched(report), 3);
  assert_int_equal(mix_numerics_skipped(report), 0);
  mix_numerics_row data = row_of(report, "inputs", "data", F32),
                   kernel = row_of(report, "product", "kernel", F32),
                   output = row_of(report, "product", "output", F32),
                   loss = row_of(report, "loss", "loss", F32);
  assert_statistics(data.forward, 12, 3, 1, 3);
  assert_false(data.has_gradient);
  assert_statistics(kernel.forward, 3, 0, 2, 2);
  assert_statistics(kernel.gradient, 3, 0, 14, 14);
  assert_statistics(output.forward, 12, 3, 2, 6);
  assert_statistics(output.gradient, 12, 3, 1, 3);
  assert_statistics(loss.forward, 3, 0, 14, 14); /* (0 + 4 + 16 + 36) / 4 */
  assert_int_equal(output.kind, MIX_NUMERICS_OUTPUT);
  assert_string_equal(output.op, "matmul");
  assert_int_equal(output.shape.dims[0], 4);
  for (int i = 0; i < mix_numerics_row_count(report); i++) {
    mix_numerics_row row;
    mix_numerics_get_row(report, i, &row, sizeof row);
    if (strcmp(row.tensor, "output")) continue;
    assert_int_equal(mix_numerics_histogram(report, i, false, 1), 3); /* 2, three times */
    assert_int_equal(mix_numerics_histogram(report, i, false, 2), 6); /* 4 and 6 */
    assert_int_equal(mix_numerics_histogram(report, i, false, 3), 0);
    assert_int_equal(mix_numerics_histogram(report, i, true, 0), 3);
    assert_int_equal(mix_numerics_histogram(report, i, true, 1), 6);
    assert_int_equal(mix_numerics_histogram(report, i, true, 4000), 0);
  }
  assert_string_equal(mix_numerics_status(report), "healthy");
  assert_null(mix_numerics_layer(report));
  assert_int_equal(mix_numerics_event_count(report), 0);
}

/* mixed_float16: the report sees the weight as the layer reads it, and its gradient as the layer computes it,
 * scaled. 2^-20 is subnormal in float16. The gradient of the outputs is scale * 2 (w x) / 4, that of w its
 * sum over x: 1024 * (0 + 1 + 4 + 9) / 2 * w. */
static void sixteen_bit_values_before_unscaling(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_layer *dense =
      mix_dense(.units = 1, .no_bias = true, .name = "product",
                .kernel_initializer_object = mix_initializer_new("constant", .value = 0x1p-20));
  mix_model *model = mix_model_new(inputs, mix_call(dense, inputs));
  mix_model_compile(model, .loss = "mse",
                    .optimizer = mix_loss_scale_optimizer(mix_sgd(.learning_rate = MIX_ZERO), .fixed = true,
                                                          .initial_scale = 1024));
  mix_numerics *report =
      mix_numerics_run(model, counting(4), mix_fill(MIX_SHAPE(4, 1), 0, F32), .steps = 1, .batch_size = 4);
  assert_no_error();
  mix_numerics_row kernel = row_of(report, "product", "kernel", MIX_FLOAT16),
                   input = row_of(report, "product", "input", MIX_FLOAT16),
                   scaled = row_of(report, "loss", "scaled_loss", MIX_FLOAT16);
  assert_int_equal(kernel.kind, MIX_NUMERICS_WEIGHT);
  assert_int_equal(kernel.forward.subnormals, 1);
  assert_near(kernel.forward.largest, 0x1p-20, 0);
  assert_near(kernel.gradient.largest, 7 * 0x1p-10, 0);
  assert_int_equal(kernel.gradient.subnormals, 0);
  assert_int_equal(input.kind, MIX_NUMERICS_INPUT);
  assert_near(input.forward.largest, 3, 0);
  assert_int_equal(scaled.forward.zeros, 1); /* the squares underflow, their gradients do not */
  /* Before the cast: not subnormal there. */
  assert_int_equal(row_of(report, "product", "kernel", F32).kind, MIX_NUMERICS_INTERMEDIATE);
  assert_int_equal(row_of(report, "product", "kernel", F32).forward.subnormals, 0);
}

static mix_tensor *half_of(void *context, const mix_call_args *args) {
  (void)context;
  mix_tensor *x = mix_call_input(args, 0);
  return mix_multiply(x, mix_scalar_like(x, 0.5));
}

/* A layer that is called twice has two outputs. Without intermediates there are only outputs and weights. A
 * short last batch is counted with the others. */
static void shared_layers_and_short_batches(void **state) {
  (void)state;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_layer *half = mix_lambda(.function = half_of, .name = "half");
  mix_layer *dense = mix_dense(.units = 1, .no_bias = true, .name = "dense", .kernel_initializer = "ones");
  mix_model *model = mix_model_new(inputs, mix_call(dense, mix_call(half, mix_call(half, inputs))));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = MIX_ZERO));
  mix_numerics *report = mix_numerics_run(model, counting(5), mix_fill(MIX_SHAPE(5, 1), 0, F32), .steps = 4,
                                          .batch_size = 3, .no_intermediates = true, .no_shuffle = true);
  assert_no_error();
  assert_statistics(row_of(report, "half", "output", F32).forward, 10, 2, 0.5, 2);
  assert_statistics(row_of(report, "half", "output_2", F32).forward, 10, 2, 0.25, 1);
  for (int i = 0; i < mix_numerics_row_count(report); i++) {
    mix_numerics_row row;
    mix_numerics_get_row(report, i, &row, sizeof row);
    assert_int_not_equal(row.kind, MIX_NUMERICS_INTERMEDIATE);
  }
}

/* ---- loops ---- */

static mix_model *recurrent_model(mix_layer *layer, const char *policy) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(6, 4));
  mix_model *model = mix_model_new(
      inputs, mix_call(mix_dense(.units = 1, .dtype = "float32", .name = "last"), mix_call(layer, inputs)));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 0.01));
  if (!model) fail_msg("%s: %s", policy, mix_error_message());
  return model;
}

static mix_numerics *run_recurrent(mix_model *model) {
  return mix_numerics_run(model, mix_fill(MIX_SHAPE(8, 6, 4), 0.5, F32), mix_fill(MIX_SHAPE(8, 1), 0.5, F32),
                          .steps = 2, .batch_size = 8);
}

/* The weights that a step reads have gradients, added up in float32; values of a step are those of all steps
 * together. */
static void recurrent_layers(void **state) {
  (void)state;
  static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16"};
  static const mix_dtype dtypes[] = {F32, MIX_FLOAT16, MIX_BFLOAT16};
  for (int i = 0; i < 9; i++)
    MIX_SCOPE {
      mix_clear_names();
      const char *policy = policies[i / 3];
      mix_set_global_policy(policy);
      mix_layer *layer = i % 3 == 0   ? mix_lstm(3, .name = "rnn")
                         : i % 3 == 1 ? mix_gru(3, .name = "rnn")
                                      : mix_bidirectional(mix_lstm(3, .name = "lstm"), .name = "rnn");
      mix_numerics *report = run_recurrent(recurrent_model(layer, policy));
      if (!report) fail_msg("%s: %s", policy, mix_error_message());
      int kernels = 0, steps = 0;
      for (int r = 0; r < mix_numerics_row_count(report); r++) {
        mix_numerics_row row;
        mix_numerics_get_row(report, r, &row, sizeof row);
        kernels += !strcmp(row.tensor, "recurrent_kernel") && row.has_gradient;
        steps += !strcmp(row.tensor, "tanh") && row.shape.rank == 3 && row.shape.dims[0] == 6;
      }
      assert_true(kernels >= 1 + (i % 3 == 2));
      assert_true(steps >= 1);
      const mix_numerics_statistics output = row_of(report, "rnn", "output", dtypes[i / 3]).forward;
      assert_int_equal(output.elements, 2 * 8 * 3 * (i % 3 == 2 ? 2 : 1));
      assert_true(output.largest > 0 && output.largest < 1); /* of tanh and sigmoid */
    }
  mix_set_global_policy("float32");
}

/* 3 states of up to 1 by weights of 40,000 make up to 120,000, beyond float16, before the gates make 1 of it.
 */
static void an_overflow_inside_a_step_is_seen(void **state) {
  (void)state;
  mix_clear_names();
  mix_set_global_policy("mixed_float16");
  mix_layer *layer =
      mix_lstm(3, .name = "rnn", .kernel_initializer_object = mix_initializer_new("constant", .value = 1000),
               .recurrent_initializer_object = mix_initializer_new("constant", .value = 40000));
  mix_numerics *report = run_recurrent(recurrent_model(layer, "mixed_float16"));
  assert_no_error();
  int64_t infinities = 0;
  for (int r = 0; r < mix_numerics_row_count(report); r++) {
    mix_numerics_row row;
    mix_numerics_get_row(report, r, &row, sizeof row);
    if (row.kind == MIX_NUMERICS_INTERMEDIATE && strstr(row.layer, "rnn"))
      infinities += row.forward.infinities;
  }
  assert_true(infinities > 0);
  const mix_numerics_statistics output = row_of(report, "rnn", "output", MIX_FLOAT16).forward;
  assert_int_equal(output.elements, 2 * 8 * 3);
  assert_int_equal(output.infinities, 0);
  mix_set_global_policy("float32");
}

/* ---- training is bit-identical ---- */

static unsigned char *trained_bits(const char *policy, int64_t every, size_t *size) {
  mix_set_seed(5);
  mix_clear_names();
  mix_set_global_policy(policy);
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(12));
  mix_tensor *x = mix_call(mix_dense(.units = 24, .activation = "relu"), inputs);
  x = mix_call(mix_batch_normalization(), x);
  x = mix_call(mix_dropout(.rate = 0.25), x);
  x = mix_call(mix_dense(.units = 4), x);
  mix_model *model = mix_model_new(inputs, mix_call(mix_activation("softmax", .dtype = "float32"), x));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_adam(.learning_rate = 0.01), .metrics = {"accuracy"});
  examples e = examples_of(50, 12, 4);
  mix_list *callbacks = every ? mix_list_of(mix_numerics_report(.every = every)) : NULL;
  mix_history *history = mix_model_fit(model, e.x, e.y, .batch_size = 16, .epochs = 6, .seed = 3,
                                       .verbose = MIX_SILENT, .callbacks = callbacks);
  assert_no_error();
  unsigned char *weights = bits_of(mix_model_weights(model), size);
  size_t state_size;
  unsigned char *slots = bits_of(mix_optimizer_variables(mix_model_optimizer(model)), &state_size);
  double loss = mix_logs_get(mix_history_epoch(history, 5), "loss"),
         accuracy = mix_logs_get(mix_history_epoch(history, 5), "accuracy");
  weights = realloc(weights, *size + state_size + 2 * sizeof loss);
  memcpy(weights + *size, slots, state_size);
  memcpy(weights + *size + state_size, &loss, sizeof loss);
  memcpy(weights + *size + state_size + sizeof loss, &accuracy, sizeof accuracy);
  *size += state_size + 2 * sizeof loss;
  free(slots);
  return weights;
}

/* Holds docs/NUMERICS.md: Numerics report. */
/* Weights, slots, loss and accuracy, with random layers and statistics in the model. */
static void training_is_the_same_to_the_last_bit(void **state) {
  (void)state;
  static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16", "float16", "float64"};
  for (int p = 0; p < 5; p++) {
    size_t size, watched_size;
    unsigned char *bits = trained_bits(policies[p], 0, &size);
    for (int64_t every = 1; every <= 3; every += 2) {
      unsigned char *watched = trained_bits(policies[p], every, &watched_size);
      assert_int_equal(watched_size, size);
      if (memcmp(watched, bits, size)) fail_msg("%s, every %d: training differs", policies[p], (int)every);
      free(watched);
    }
    free(bits);
  }
}

/* ---- overflow ---- */

static void the_layer_that_overflows_forward_is_named(void **state) {
  (void)state;
  mix_numerics *report =
      mix_numerics_run(overflowing_model(NULL), hundreds(), ones(), .steps = 40, .batch_size = 16);
  assert_no_error();
  assert_string_equal(mix_numerics_status(report), "stalled");
  assert_string_equal(mix_numerics_layer(report), "big");
  assert_int_equal(mix_numerics_steps(report), 17); /* 15 halvings from 2^15 to 1, and two skips there */
  assert_int_equal(mix_numerics_skipped(report), 17);
  assert_int_equal(mix_numerics_event_count(report), 17);
  for (int i = 0; i < 17; i++) {
    mix_numerics_event event = event_of(report, i);
    assert_int_equal(event.step, i + 1);
    assert_true(event.forward && !event.applied && !event.nan);
    assert_string_equal(event.layer, "big");
    assert_string_equal(event.tensor_layer, "big");
    assert_string_equal(event.op, "matmul");
    assert_near(event.loss_scale, i < 15 ? exp2(15 - i) : 1, 0);
  }
  assert_string_equal(advice_of(report, 0).kind, "float32_override");
  assert_string_equal(advice_of(report, 0).layer, "big");
  assert_non_null(strstr(mix_numerics_verdict(report), "made by matmul) in steps 1 to 17. "));
  mix_numerics_row small = row_of(report, "small", "output", MIX_FLOAT16),
                   big = row_of(report, "big", "output", MIX_FLOAT16);
  assert_int_equal(small.forward.infinities, 0);
  assert_int_equal(big.forward.infinities, big.forward.elements);
  /* the advised remedy works */
  report = mix_numerics_run(overflowing_model("float32"), hundreds(), ones(), .steps = 10, .batch_size = 16);
  assert_int_equal(mix_numerics_event_count(report), 0);
  assert_int_equal(mix_numerics_skipped(report), 0);
  assert_int_equal(row_of(report, "big", "output", F32).forward.infinities, 0);
  /* SGD has changed the weights slightly. */
  assert_near(row_of(report, "big", "output", F32).forward.smallest, 80000, 80);
}

/* "big" makes 8 x 21 x 100 = 16,800, a factor of 3.9 below 65,504; 8 x 20 x 100 is a factor of 4.1 below. */
static void a_forward_value_near_overflow_is_reported(void **state) {
  (void)state;
  mix_numerics *report = mix_numerics_run(overflowing_model(NULL), mix_fill(MIX_SHAPE(16, 8), 21, F32),
                                          ones(), .steps = 1, .batch_size = 16);
  assert_no_error();
  const char *verdict = mix_numerics_verdict(report);
  if (!strstr(verdict, "near overflow: the largest value of big/output, 1.68e+04, is a factor of 3.9 below"))
    fail_msg("%s", verdict);
  assert_string_equal(advised(report, "float32_override").layer, "big");
  assert_string_equal(mix_numerics_layer(report), "big");
  report = mix_numerics_run(overflowing_model(NULL), mix_fill(MIX_SHAPE(16, 8), 20, F32), ones(), .steps = 1,
                            .batch_size = 16);
  assert_null(strstr(mix_numerics_verdict(report), "near overflow"));
}

static void gradients_that_overflow_by_the_scale_alone(void **state) {
  (void)state;
  mix_numerics *report = scaled_run(mix_loss_scale_optimizer(mix_sgd(), .initial_scale = 0x1p26), 30);
  assert_string_equal(mix_numerics_status(report), "settled");
  assert_in_range(mix_numerics_skipped(report), 3, 20);
  for (int i = 0; i < mix_numerics_event_count(report); i++) assert_false(event_of(report, i).forward);
  mix_numerics_event first = event_of(report, 0);
  assert_int_equal(first.step, 1);
  /* scale / 32 * (p - 1), from float32, overflows its output's float16. */
  assert_string_equal(first.layer, "dense_logits");
  assert_string_equal(first.tensor_layer, "dense_logits");
  assert_string_equal(first.tensor, "output");
  mix_numerics_advice advice = advised(report, "smaller_scale");
  assert_true(advice.loss_scale < 0x1p24 && advice.loss_scale >= 1);
  for (int i = 0; i < mix_numerics_advice_count(report); i++)
    assert_string_not_equal(advice_of(report, i).kind, "float32_override");
  /* the advised scale is right from the start */
  report = scaled_run(mix_loss_scale_optimizer(mix_sgd(), .initial_scale = advice.loss_scale), 10);
  assert_true(mix_numerics_skipped(report) <= 1);
}

/* A fixed scale skips nothing: the weights become NaN, and the report names the cause. */
static void a_fixed_scale_that_is_too_large(void **state) {
  (void)state;
  mix_numerics *report =
      scaled_run(mix_loss_scale_optimizer(mix_sgd(), .fixed = true, .initial_scale = 0x1p26), 5);
  assert_string_equal(mix_numerics_status(report), "overflow");
  assert_int_equal(mix_numerics_skipped(report), 0);
  assert_string_equal(mix_numerics_layer(report), "dense_logits");
  assert_true(event_of(report, 0).applied && !event_of(report, 0).forward);
  assert_true(event_of(report, 1).forward && event_of(report, 1).nan); /* the weights are NaN */
  assert_true(advised(report, "smaller_scale").loss_scale < 0x1p26);
}

/* The scaled loss itself overflows float32. */
static void a_scaled_loss_that_overflows(void **state) {
  (void)state;
  mix_numerics *report =
      scaled_run(mix_loss_scale_optimizer(mix_sgd(), .fixed = true, .initial_scale = 0x1p127), 1);
  assert_string_equal(event_of(report, 0).tensor, "scaled_loss");
  assert_string_equal(mix_numerics_layer(report), "loss");
  advised(report, "smaller_scale");
}

/* A backward product that overflows at scale 1: gradients of 4,000 times weights of 40 over 2 units is
 * 320,000 in float16, although the forward pass is finite (inputs of 2^-10). The consumer's backward pass
 * computes the gradient, so "steep" is named, not "before". */
static void a_gradient_that_overflows_by_itself(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_tensor *x = mix_call(mix_dense(.units = 2, .name = "before", .kernel_initializer = "ones"), inputs);
  x = mix_call(mix_dense(.units = 2, .name = "steep",
                         .kernel_initializer_object = mix_initializer_new("constant", .value = 40)),
               x);
  x = mix_call(mix_rescaling(.scale = 4000, .dtype = "float32", .name = "up"), x);
  x = mix_call(mix_dense(.units = 1, .name = "sum", .dtype = "float32", .kernel_initializer = "ones"), x);
  mix_model *model = mix_model_new(inputs, x);
  mix_model_compile(model, .loss = "mae", .optimizer = mix_sgd(.learning_rate = 1e-9));
  mix_numerics *report = mix_numerics_run(model, mix_fill(MIX_SHAPE(1, 1), 0x1p-10, F32),
                                          mix_fill(MIX_SHAPE(1, 1), 0, F32), .steps = 40);
  assert_no_error();
  assert_string_equal(mix_numerics_status(report), "stalled");
  mix_numerics_event last = event_of(report, mix_numerics_event_count(report) - 1);
  assert_false(last.forward);
  assert_near(last.loss_scale, 1, 0);
  assert_string_equal(last.layer, "steep");
  assert_string_equal(last.tensor_layer, "before");
  assert_string_equal(advised(report, "float32_override").layer, "steep");
}

/* The automatic rewrite: the program's tensors are float32, and infinite where the rewritten product
 * overflowed. */
static void a_rewritten_graph_that_overflows(void **state) {
  (void)state;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(8));
  mix_layer *big = mix_dense(.units = 4, .name = "big",
                             .kernel_initializer_object = mix_initializer_new("constant", .value = 100));
  mix_model *model = mix_model_new(inputs, mix_call(big, inputs));
  mix_optimizer *optimizer = mix_enable_mixed_precision_graph_rewrite(mix_sgd(.learning_rate = 1e-6));
  mix_model_compile(model, .loss = "mse", .optimizer = optimizer);
  mix_numerics *report = mix_numerics_run(model, hundreds(), mix_fill(MIX_SHAPE(16, 4), 1, F32), .steps = 3);
  mix_disable_mixed_precision_graph_rewrite();
  assert_no_error();
  assert_string_equal(mix_numerics_layer(report), "big");
  assert_true(row_of(report, "big", "matmul", F32).forward.infinities > 0);
  advised(report, "bfloat16");
  assert_non_null(strstr(mix_numerics_table(report, false), "policy float32 rewritten to float16"));
}

/* ---- underflow ---- */

static void gradients_that_underflow(void **state) {
  (void)state;
  for (int scaled = 0; scaled < 2; scaled++) {
    mix_set_semantics(scaled ? "tf_keras" : "keras3"); /* tf_keras always scales */
    mix_set_global_policy("mixed_float16");
    mix_model *model = guide_model(20, 16);
    mix_optimizer *optimizer =
        scaled ? mix_loss_scale_optimizer(mix_sgd(), .fixed = true, .initial_scale = 1) : mix_sgd();
    mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .loss_weights = {1e-4},
                      .optimizer = optimizer, .no_auto_scale_loss = !scaled);
    examples e = examples_of(64, 20, 10);
    mix_numerics *report = mix_numerics_run(model, e.x, e.y, .steps = 3);
    assert_no_error();
    assert_string_equal(mix_numerics_status(report), "underflow");
    assert_non_null(mix_numerics_layer(report));
    assert_true(row_of(report, "dense_logits", "output", MIX_FLOAT16).gradient.subnormals > 0);
    double scale = advised(report, scaled ? "larger_scale" : "loss_scaling").loss_scale;
    assert_true(scale >= 1024);
    /* the advised remedy works */
    mix_model *again = guide_model(20, 16);
    mix_model_compile(again, .loss = "sparse_categorical_crossentropy", .loss_weights = {1e-4},
                      .optimizer =
                          scaled ? mix_loss_scale_optimizer(mix_sgd(), .fixed = true, .initial_scale = scale)
                                 : mix_sgd(.loss_scale_factor = scale),
                      .no_auto_scale_loss = !scaled);
    assert_string_equal(mix_numerics_status(mix_numerics_run(again, e.x, e.y, .steps = 3)), "healthy");
  }
}

/* Total underflow: float32 gradients of 1e-10 become 0 in the cast. */
static void gradients_that_vanish(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_set_global_policy("mixed_float16");
  mix_model *model = guide_model(20, 16);
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .loss_weights = {1e-9},
                    .optimizer = mix_sgd(), .no_auto_scale_loss = true);
  examples e = examples_of(64, 20, 10);
  mix_numerics *report = mix_numerics_run(model, e.x, e.y, .steps = 2);
  mix_numerics_row logits = row_of(report, "dense_logits", "output", MIX_FLOAT16);
  assert_int_equal(logits.gradient.zeros, logits.gradient.elements);
  assert_string_equal(mix_numerics_status(report), "underflow");
  assert_string_equal(mix_numerics_layer(report), "dense_logits");
  advised(report, "loss_scaling");
}

/* ---- NaN ---- */

static void nan_in_the_data_is_traced_to_them(void **state) {
  (void)state;
  for (int labels = 0; labels < 2; labels++) {
    mix_tensor *bad = ARRAY(F32, MIX_SHAPE(4, 1), 1, NAN, 2, 3), *good = counting(4);
    mix_numerics *report = mix_numerics_run(product_model(1, 0.125), labels ? good : bad, labels ? bad : good,
                                            .steps = 3, .batch_size = 4);
    assert_no_error();
    assert_string_equal(mix_numerics_status(report), "bad data");
    assert_string_equal(mix_numerics_layer(report), labels ? "labels" : "inputs");
    mix_numerics_event event = event_of(report, 0);
    assert_int_equal(event.step, 1);
    assert_true(event.applied && event.nan && event.forward);
    assert_string_equal(event.layer, labels ? "labels" : "inputs");
    assert_string_equal(event.tensor, "data");
    assert_int_equal(row_of(report, labels ? "labels" : "inputs", "data", F32).forward.nans, 3);
    assert_string_equal(advice_of(report, 0).kind, "clean_data");
  }
}

static mix_tensor *log_of(void *context, const mix_call_args *args) {
  (void)context;
  mix_tensor *x = mix_call_input(args, 0);
  return mix_tanh(mix_log(x));
}

/* tanh hides infinities, but not NaN: the logarithm of -1 is between the layer's input and its output. */
static void nan_created_inside_a_layer(void **state) {
  (void)state;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_tensor *x =
      mix_call(mix_dense(.units = 1, .no_bias = true, .name = "dense", .kernel_initializer = "ones"), inputs);
  mix_model *model = mix_model_new(inputs, mix_call(mix_lambda(.function = log_of, .name = "logarithm"), x));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd());
  mix_numerics *report = mix_numerics_run(model, mix_fill(MIX_SHAPE(2, 1), -1, F32),
                                          mix_fill(MIX_SHAPE(2, 1), 0, F32), .steps = 1);
  assert_no_error();
  assert_string_equal(event_of(report, 0).layer, "logarithm");
  assert_string_equal(event_of(report, 0).tensor, "log");
  assert_true(event_of(report, 0).nan);
  assert_string_equal(mix_numerics_layer(report), "logarithm");
  assert_string_equal(advised(report, "check_operation").layer, "logarithm");
}

/* A harmless infinity: tanh turns it into 1, and the step is good. */
static void a_harmless_infinity_is_no_event(void **state) {
  (void)state;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_tensor *x = mix_call(mix_lambda(.function = log_of, .name = "logarithm"), inputs);
  mix_model *model = mix_model_new(inputs, mix_call(mix_dense(.units = 1), x));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd());
  mix_numerics *report = mix_numerics_run(model, mix_fill(MIX_SHAPE(2, 1), 0, F32),
                                          mix_fill(MIX_SHAPE(2, 1), 0, F32), .steps = 2);
  assert_no_error();
  assert_int_equal(row_of(report, "logarithm", "log", F32).forward.infinities, 4);
  assert_int_equal(mix_numerics_event_count(report), 0);
  assert_string_equal(mix_numerics_status(report), "healthy");
}

/* The report as a page; valid until the next call. */
static const char *page_of(mix_numerics *report) {
  char path[] = "/tmp/mixtape-page-XXXXXX";
  static char page[1 << 20];
  close(mkstemp(path));
  assert_int_equal(mix_numerics_write_html(report, path), MIX_OK);
  FILE *file = fopen(path, "r");
  page[fread(page, 1, sizeof page - 1, file)] = 0;
  fclose(file);
  unlink(path);
  return page;
}

/* Names of layers are text, whatever is in them. Of 2,500 steps the curves keep every second:
 * 1,250 points. */
static void a_page_escapes_names_and_thins_curves(void **state) {
  (void)state;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_model *model = mix_model_new(inputs, mix_call(mix_dense(.units = 1, .name = "a<b>&\"c\""), inputs));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 1e-9));
  mix_numerics *report = mix_numerics_new();
  mix_tensor *x = mix_fill(MIX_SHAPE(1, 1), 1, F32);
  mix_model_fit(model, x, x, .epochs = 2500, .verbose = MIX_SILENT,
                .callbacks = mix_list_of(mix_numerics_report(.report = report, .every = 2500)));
  assert_no_error();
  const char *page = page_of(report);
  assert_non_null(strstr(page, "a&lt;b&gt;&amp;&quot;c&quot;/kernel"));
  assert_null(strstr(page, "a<b>"));
  const char *points = strstr(page, "points=\"") + strlen("points=\"");
  int count = 0;
  for (; *points != '"'; points++) count += *points == ',';
  assert_int_equal(count, 1250);
  assert_int_equal(mix_numerics_write_html(report, "/nonexistent/page.html"), MIX_IO_ERROR);
  assert_error(MIX_IO_ERROR, "/nonexistent/page.html");
  assert_int_equal(mix_numerics_write_html(NULL, "page.html"), MIX_TYPE_ERROR);
  assert_error(MIX_TYPE_ERROR, "numerics_write_html");
}

/* Gradients of about 200 times the scale overflow from 2^121 on. There the scale falls and after two steps
 * grows again: every third step is skipped, and each has its dot in both curves, though of two steps one has
 * a point. */
static void thinned_curves_show_skipped_steps(void **state) {
  (void)state;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_model *model = mix_model_new(inputs, mix_call(mix_dense(.units = 1), inputs));
  mix_model_compile(model, .loss = "mse",
                    .optimizer = mix_loss_scale_optimizer(
                        mix_sgd(.learning_rate = 1e-9), .initial_scale = 0x1p115, .dynamic_growth_steps = 2));
  mix_numerics *report = mix_numerics_new();
  mix_model_fit(model, mix_fill(MIX_SHAPE(1, 1), 1, F32), mix_fill(MIX_SHAPE(1, 1), 100, F32), .epochs = 2500,
                .verbose = MIX_SILENT,
                .callbacks = mix_list_of(mix_numerics_report(.report = report, .every = 2500)));
  assert_no_error();
  assert_int_equal(mix_numerics_steps(report), 2500);
  assert_true(mix_numerics_skipped(report) > 700);
  const char *page = page_of(report);
  assert_int_equal(count_of(page, "<circle"), 2 * mix_numerics_skipped(report));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(every_number_of_a_small_model),
      TEST(sixteen_bit_values_before_unscaling),
      TEST(shared_layers_and_short_batches),
      TEST(recurrent_layers),
      TEST(an_overflow_inside_a_step_is_seen),
      TEST(training_is_the_same_to_the_last_bit),
      TEST(the_layer_that_overflows_forward_is_named),
      TEST(a_forward_value_near_overflow_is_reported),
      TEST(gradients_that_overflow_by_the_scale_alone),
      TEST(a_fixed_scale_that_is_too_large),
      TEST(a_scaled_loss_that_overflows),
      TEST(a_gradient_that_overflows_by_itself),
      TEST(a_rewritten_graph_that_overflows),
      TEST(gradients_that_underflow),
      TEST(gradients_that_vanish),
      TEST(nan_in_the_data_is_traced_to_them),
      TEST(nan_created_inside_a_layer),
      TEST(a_harmless_infinity_is_no_event),
      TEST(a_page_escapes_names_and_thins_curves),
      TEST(thinned_curves_show_skipped_steps),
  };
  return cmocka_run_group_tests_name("model/numerics", tests, NULL, NULL);
}
