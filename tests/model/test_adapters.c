/* Adapters: what a model with LoRA has learned goes on in another one, and is refused by a model that it does
 * not fit. */
#include "model/lora_support.h"

#include "base/alloc.h"
#include "nn/layers/lora.h"
#include <unistd.h>

/* What was saved goes on bit for bit where it is loaded, with an optimizer that begins anew in both. */
static void adapters_continue(void **state) {
  (void)state;
  mix_model *model = two_layers("out"), *other = two_layers("out");
  mix_tensor *x = random_values(MIX_SHAPE(4, 12));
  mix_model_enable_lora(model, 2, .alpha = 5);
  compile(model);
  fit(model);
  mix_model_save_lora(model, in_folder("adapter.npz"));
  mix_model_load_lora(other, in_folder("adapter.npz"));
  assert_no_error();
  assert_true(mix_model_get_layer(other, "fc1")->lora->alpha == 5);
  assert_values(mix_list_get(mix_model_predict(other, x), 0), mix_list_get(mix_model_predict(model, x), 0),
                0);
  compile(model);
  compile(other);
  fit(model);
  fit(other);
  assert_values(mix_list_get(mix_model_predict(other, x), 0), mix_list_get(mix_model_predict(model, x), 0),
                0);
  mix_npz *npz = mix_npz_open(in_folder("adapter.npz"));
  assert_int_equal(mix_npz_count(npz), 8); /* a, alpha, b and bias of two layers */
}

/* Integers do not train, in whatever layer: those of the model without LoRA are not in the adapter. */
static void adapters_leave_integers_out(void **state) {
  (void)state;
  static const char *const modes[] = {"int8", "int4"};
  mix_tensor *x = random_values(MIX_SHAPE(4, 12));
  for (int m = 0; m < 2; m++) {
    mix_model *model = two_layers("out"), *other = two_layers("out");
    mix_model_quantize(model, modes[m], .block_size = m ? 4 : 0);
    mix_model_quantize(other, modes[m], .block_size = m ? 4 : 0);
    mix_model_enable_lora(model, 2, .filter = "fc1");
    compile(model);
    fit(model);
    mix_model_save_lora(model, in_folder("adapter.npz"));
    assert_no_error();
    mix_npz *npz = mix_npz_open(in_folder("adapter.npz"));
    assert_int_equal(mix_npz_count(npz), 5); /* a, alpha and b of fc1, two biases */
    assert_non_null(mix_npz_get(npz, "out/bias"));
    mix_model_load_lora(other, in_folder("adapter.npz"));
    assert_no_error();
    assert_values(mix_list_get(mix_model_predict(other, x), 0), mix_list_get(mix_model_predict(model, x), 0),
                  0);
  }
}

/* Two models in a model, whose layers have one name and kernels of other shapes. */
static mix_model *nested(void) {
  mix_set_semantics("keras3");
  mix_set_seed(3);
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(12)), *y = x;
  for (int i = 0; i < 2; i++) {
    mix_tensor *in = mix_input(.shape = MIX_SHAPE(i ? 16 : 12));
    mix_model *inner =
        mix_model_new(in, mix_call(mix_dense(i ? 4 : 16, .name = "fc"), in), .name = i ? "second" : "first");
    y = mix_call(mix_model_layer(inner), y);
  }
  return mix_model_new(x, y);
}

/* The adapter tells them apart, whichever of them have LoRA. */
static void adapters_of_layers_of_one_name(void **state) {
  (void)state;
  static const char *const filters[] = {NULL, "first", "second"};
  mix_tensor *x = random_values(MIX_SHAPE(4, 12));
  for (int f = 0; f < 3; f++) {
    mix_model *model = nested(), *other = nested();
    mix_list *inner = mix_model_layers(model);
    for (int i = 0; i < 2; i++) {
      mix_layer *layer = mix_list_get(inner, i + 1), *fc = mix_list_get(mix_layer_layers(layer), 1);
      if (!f || !strcmp(layer->name, filters[f])) mix_layer_enable_lora(fc, 2, .alpha = 3);
    }
    compile(model);
    fit(model);
    mix_model_save_lora(model, in_folder("adapter.npz"));
    mix_model_load_lora(other, in_folder("adapter.npz"));
    assert_no_error();
    assert_int_equal(mix_list_count(mix_model_trainable_variables(other)),
                     mix_list_count(mix_model_trainable_variables(model)));
    assert_values(mix_list_get(mix_model_predict(other, x), 0), mix_list_get(mix_model_predict(model, x), 0),
                  0);
  }
}

/* Each allocation fails in turn: no file is left, and no layer has LoRA. */
static void adapters_when_memory_fails(void **state) {
  (void)state;
  mix_model *model = two_layers("out"), *other = two_layers("out");
  const char *path = in_folder("never_before.npz");
  mix_model_enable_lora(model, 2);
  for (int loads = 0; loads < 2; loads++) {
    bool done = false;
    int failures = 0;
    for (int64_t after = 0; !done; after++) {
      MIX_SCOPE {
        mix_inject_allocation_failure(after);
        done = (loads ? mix_model_load_lora(other, path) : mix_model_save_lora(model, path)) == MIX_OK;
        mix_inject_allocation_failure(-1);
        failures += !done;
        if (!done) expect_error(MIX_MEMORY_ERROR, "");
        assert_true(done || loads || access(path, F_OK) == -1);
        assert_int_equal(mix_layer_lora_rank(mix_model_get_layer(other, "fc1")), done && loads ? 2 : -1);
        assert_int_equal(mix_list_count(mix_model_trainable_variables(other)), done && loads ? 6 : 4);
      }
    }
    assert_true(failures > 20);
  }
  mix_tensor *x = random_values(MIX_SHAPE(4, 12));
  assert_values(mix_list_get(mix_model_predict(other, x), 0), mix_list_get(mix_model_predict(model, x), 0),
                0);
}

static void adapters_of_other_models(void **state) {
  (void)state;
  mix_model *model = two_layers("out"), *named = two_layers("head");
  mix_model_save_lora(model, in_folder("none.npz"));
  expect_error(MIX_VALUE_ERROR, "no layer of");
  mix_model_enable_lora(model, 2);
  mix_model_save_lora(model, in_folder("adapter.npz"));
  mix_model_load_lora(named, in_folder("adapter.npz"));
  expect_error(MIX_VALUE_ERROR, "has no 'head/kernel'");
  assert_int_equal(mix_layer_lora_rank(mix_model_get_layer(named, "fc1")), -1);
  assert_int_equal(mix_list_count(mix_model_trainable_variables(named)), 4);
  mix_model_enable_lora(named, 3);
  mix_model_load_lora(named, in_folder("adapter.npz"));
  expect_error(MIX_VALUE_ERROR, "has the rank 2 for layer 'fc1', and the model 3; give the model no LoRA");
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(11));
  mix_model *narrow = mix_model_new(x, mix_call(mix_dense(16, .name = "fc1"), x));
  mix_model_load_lora(narrow, in_folder("adapter.npz"));
  expect_error(MIX_VALUE_ERROR, "does not fit the kernel (11, 16) of layer 'fc1'");
  x = mix_input(.shape = MIX_SHAPE(12));
  mix_tensor *y = mix_call(mix_dense(15, .name = "fc1"), x);
  mix_model *wide = mix_model_new(x, mix_call(mix_dense(3, .name = "out"), y));
  mix_model_load_lora(wide, in_folder("adapter.npz"));
  expect_error(MIX_VALUE_ERROR, "its 'fc1/lora_kernel_b' has shape (2, 16), which does not fit the kernel "
                                "(12, 15) of layer 'fc1'");
  assert_int_equal(mix_layer_lora_rank(mix_model_get_layer(wide, "fc1")), -1);
  mix_model_load_lora(narrow, in_folder("missing.npz"));
  assert_true(mix_error() != MIX_OK);
  mix_error_clear();
  mix_npz_save(in_folder("other.npz"), 1, (const char *[]){"x"},
               (mix_tensor *[]){mix_scalar(1, MIX_FLOAT32)});
  mix_model_load_lora(narrow, in_folder("other.npz"));
  expect_error(MIX_VALUE_ERROR, "has nothing for a layer");
  mix_model_save_lora(NULL, "x.npz");
  assert_true(mix_error() != MIX_OK);
  mix_error_clear();
  mix_model_load_lora(model, NULL);
  expect_error(MIX_TYPE_ERROR, "path is NULL");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(adapters_continue), TEST(adapters_leave_integers_out),
                                     TEST(adapters_of_layers_of_one_name), TEST(adapters_when_memory_fails),
                                     TEST(adapters_of_other_models)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
