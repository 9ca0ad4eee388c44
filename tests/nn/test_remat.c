/* Which layers' calls are repeated: the rules of Keras 3.15's RematScope, as a run of it showed them
 * (keras.src.backend.common.remat with `remat` replaced by a function that counts). */
#include "nn/support.h"

#include <mixtape/recurrent.h>
#include <mixtape/remat.h>

/* Is it computed inside a call that is repeated? */
static bool is_repeated(const mix_tensor *tensor) {
  assert_non_null(tensor);
  return mix_segment_inside(tensor->node->segment, NULL) != NULL;
}
static mix_tensor *input(void) { return mix_fill(MIX_SHAPE(2, 4), 1, MIX_FLOAT32); }
static mix_tensor *sequences(void) { return mix_fill(MIX_SHAPE(2, 3, 4), 1, MIX_FLOAT32); }

/* The layer, called outside the scope in which it was made. */
static bool repeats(mix_layer *layer) { return is_repeated(mix_call(layer, input())); }

static void the_innermost_scope_when_a_layer_is_made_decides(void **state) {
  (void)state;
  mix_layer *before = mix_dense(2);
  mix_remat_scope *full = mix_remat_scope_begin("full");
  mix_layer *a = mix_dense(2);
  mix_remat_scope *none = mix_remat_scope_begin("none");
  mix_layer *b = mix_dense(2);
  mix_remat_scope_end(none);
  mix_remat_scope *some = mix_remat_scope_begin("larger_than", .output_size_threshold = 3);
  mix_layer *c = mix_dense(2);
  mix_remat_scope_end(some);
  mix_remat_scope *few = mix_remat_scope_begin("larger_than", .output_size_threshold = 100);
  mix_layer *d = mix_dense(2);
  mix_remat_scope_end(few);
  mix_layer *e = mix_dense(2);
  assert_false(repeats(before)); /* made outside, called inside */
  mix_remat_scope_end(full);
  assert_true(repeats(a) && !repeats(b) && repeats(c) && !repeats(d) && repeats(e));
  assert_false(repeats(mix_dense(2)));
}

static mix_layer *made(mix_remat_scope *scope, mix_layer *layer) {
  assert_non_null(scope);
  mix_remat_scope_end(scope);
  return layer;
}
/* Arguments are evaluated in any order, so the layer is made by a statement of its own. */
#define MADE(layer, scope, ...)                                                                              \
  mix_remat_scope *scope = mix_remat_scope_begin(__VA_ARGS__);                                               \
  mix_layer *layer

static void more_elements_than_the_threshold_repeat(void **state) {
  (void)state;
  static const struct {
    int64_t threshold;
    bool repeats;
  } rows[] = {{5, true}, {6, false}, {7, false}, {-1, true}, {0, false}}; /* 0: 1024 */
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    MADE(layer, scope, "larger_than", .output_size_threshold = rows[i].threshold) = mix_dense(3);
    assert_int_equal(repeats(made(scope, layer)), rows[i].repeats);
  }
  MADE(large, scope, "larger_than") = mix_dense(600);
  assert_true(repeats(made(scope, large)));
}

/* Output and two states of 2 x 3 elements each. */
static void the_results_of_a_call_count_together(void **state) {
  (void)state;
  for (int threshold = 17; threshold <= 18; threshold++) {
    MADE(layer, scope, "larger_than", .output_size_threshold = threshold) = mix_lstm(3, .return_state = true);
    mix_list *results = mix_call_outputs(made(scope, layer), sequences());
    assert_int_equal(is_repeated(mix_list_get(results, 2)), threshold == 17);
  }
}

static void names_are_those_of_the_list(void **state) {
  (void)state;
  static const char *const names[] = {"b", "no such layer", NULL};
  mix_remat_scope *scope = mix_remat_scope_begin("list_of_layers", .layer_names = names);
  mix_layer *a = mix_dense(2, .name = "a"), *b = mix_dense(2, .name = "b");
  mix_remat_scope_end(scope);
  assert_true(!repeats(a) && repeats(b));
  MADE(empty, none, "list_of_layers") = mix_dense(2, .name = "b");
  assert_false(repeats(made(none, empty)));
}

/* The activation's result is repeated, its operand is not. */
static void activations_are_the_option_of_that_name(void **state) {
  (void)state;
  mix_remat_scope *scope = mix_remat_scope_begin("activations");
  mix_layer *dense = mix_dense(3, .activation = "relu"), *linear = mix_dense(3),
            *activation = mix_activation("tanh"), *relu = mix_relu_layer(.name = NULL),
            *cell = mix_lstm_cell(3);
  mix_remat_scope_end(scope);
  mix_tensor *y = mix_call(dense, input());
  assert_true(is_repeated(y) && !is_repeated(mix_node_input(y->node, 0)));
  assert_false(repeats(linear)); /* nothing is computed */
  assert_true(repeats(activation));
  assert_false(repeats(relu));
  /* h = o tanh(c), of which tanh alone is repeated */
  mix_list *states =
      mix_list_of(mix_fill(MIX_SHAPE(2, 3), 0, MIX_FLOAT32), mix_fill(MIX_SHAPE(2, 3), 0, MIX_FLOAT32));
  mix_list *stepped = mix_call_outputs(cell, input(), .arguments = states);
  mix_tensor *h = mix_list_get(stepped, 0), *gate = mix_node_input(h->node, 0),
             *squashed = mix_node_input(h->node, 1);
  assert_true(!is_repeated(h) && !is_repeated(gate) && is_repeated(squashed));
}

static void layers_made_in_a_build_take_its_scope(void **state) {
  (void)state;
  mix_layer *outside = mix_bidirectional(.layer = mix_lstm(2));
  mix_remat_scope *scope = mix_remat_scope_begin("full");
  mix_layer *inside = mix_bidirectional(.layer = mix_lstm(2));
  assert_false(is_repeated(mix_call(outside, sequences())));
  mix_remat_scope_end(scope);
  assert_true(is_repeated(mix_call(inside, sequences())));
}

static void configs_hold_no_mode_and_copies_take_the_scope(void **state) {
  (void)state;
  MADE(layer, scope, "full") = mix_dense(2);
  assert_null(strstr(mix_layer_config(made(scope, layer)), "remat"));
  assert_false(repeats(mix_layer_copy(layer)));
  MADE(copy, again, "full") = mix_layer_copy(mix_dense(2));
  assert_true(repeats(made(again, copy)));
}

/* Nothing is left of a scope that could not begin, and the error of a call ends its segment. */
static mix_list *call_fails(mix_layer *layer, const mix_call_args *args) {
  (void)layer, (void)args;
  return mix_error_record(MIX_VALUE_ERROR, "as wanted"), NULL;
}
static void errors(void **state) {
  (void)state;
  assert_null(mix_remat_scope_begin("fulll"));
  expect_error(MIX_VALUE_ERROR, "there is no mode 'fulll'; did you mean 'full'?");
  mix_remat_scope_end(NULL);
  assert_false(repeats(mix_dense(2)));
  static const mix_layer_class failing = {.size = sizeof failing, .name = "Failing", .call = call_fails};
  MADE(layer, scope, "full") = mix_layer_new(&failing);
  assert_null(mix_call(made(scope, layer), input()));
  expect_error(MIX_VALUE_ERROR, "as wanted");
  assert_null(mix_segment_current());
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(the_innermost_scope_when_a_layer_is_made_decides),
                                     TEST(more_elements_than_the_threshold_repeat),
                                     TEST(the_results_of_a_call_count_together),
                                     TEST(names_are_those_of_the_list),
                                     TEST(activations_are_the_option_of_that_name),
                                     TEST(layers_made_in_a_build_take_its_scope),
                                     TEST(configs_hold_no_mode_and_copies_take_the_scope),
                                     TEST(errors)};
  return cmocka_run_group_tests_name("remat", tests, NULL, NULL);
}
