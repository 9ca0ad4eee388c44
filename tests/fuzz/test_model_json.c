/* The model target on damaged texts of both generations. */
#include "fuzz/mutate.h"

#include "fuzz/fuzz_model_json.c"

#define TENSOR(layer)                                                                                        \
  "{\"class_name\":\"__keras_tensor__\",\"config\":{\"shape\":[null,3],\"dtype\":\"float32\","               \
  "\"keras_history\":[\"" layer "\",0,0]}}"

static const char *const texts[] = {
    /* keras3: two inputs, a shared layer, a nested model, keywords, compiled */
    "{\"module\":\"keras.src.models.functional\",\"class_name\":\"Functional\",\"config\":{\"name\":\"m\","
    "\"trainable\":true,\"layers\":["
    "{\"class_name\":\"InputLayer\",\"config\":{\"batch_shape\":[null,3],\"dtype\":\"float32\","
    "\"name\":\"a\"},"
    "\"name\":\"a\",\"inbound_nodes\":[]},"
    "{\"class_name\":\"InputLayer\",\"config\":{\"batch_shape\":[2,3],\"dtype\":\"float16\",\"name\":\"b\"},"
    "\"name\":\"b\",\"inbound_nodes\":[]},"
    "{\"class_name\":\"Dense\",\"config\":{\"name\":\"d\",\"units\":3,\"dtype\":{\"class_name\":"
    "\"DTypePolicy\",\"config\":{\"name\":\"mixed_float16\"}}},"
    "\"registered_name\":null,\"shared_object_id\":7,"
    "\"name\":\"d\",\"inbound_nodes\":[{\"args\":[" TENSOR(
        "a") "],\"kwargs\":{\"training\":true}},"
             "{\"args\":[" TENSOR(
                 "b") "],\"kwargs\":{\"mask\":null}}]},"
                      "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"s\","
                      "\"layers\":[{\"class_name\":\"InputLayer\","
                      "\"config\":{\"batch_shape\":[null,3],\"name\":\"i\"}},{"
                      "\"class_name\":\"BatchNormalization\","
                      "\"config\":"
                      "{\"name\":\"n\",\"axis\":-1}}],\"build_input_shape\":["
                      "null,3]},\"name\":\"s\",\"inbound_nodes\":[{\"args\":"
                      "[" TENSOR("d") "],\"kwargs\":{}}]},"
                                      "{\"class_name\":\"Add\",\"config\":{\"name\":\"p\"},"
                                      "\"name\":\"p\",\"inbound_nodes\":[{\"args\":[[" TENSOR("s") "," TENSOR(
                                          "d") "]],\"kwargs\":{}}]}],"
                                               "\"input_layers\":{\"x\":[\"a\",0,0],\"y\":[\"b\","
                                               "0,0]},\"output_layers\":[[\"p\",0,0],[\"d\",1,0]]},"
                                               "\"compile_config\":{\"optimizer\":{\"class_name\":\"SGD\","
                                               "\"config\":{\"momentum\":0.9}},\"loss\":[\"mse\","
                                               "null],\"loss_weights\":{\"p\":2},\"metrics\":[[\"mae\"],"
                                               "null],\"jit_compile\":false}}",
    /* tf_keras: a nested functional model, called twice */
    "{\"class_name\":\"Functional\",\"config\":{\"name\":\"m\",\"layers\":["
    "{\"class_name\":\"InputLayer\",\"config\":{\"batch_input_shape\":[null,3],\"dtype\":\"float32\","
    "\"name\":\"a\"},\"name\":\"a\",\"inbound_nodes\":[]},"
    "{\"class_name\":\"Functional\",\"config\":{\"name\":\"f\",\"trainable\":false,\"layers\":["
    "{\"class_name\":\"InputLayer\",\"config\":{\"batch_input_shape\":[null,3],\"dtype\":\"float32\","
    "\"name\":\"i\"},\"name\":\"i\",\"inbound_nodes\":[]},"
    "{\"class_name\":\"Dropout\",\"config\":{\"name\":\"r\",\"rate\":0.5,\"seed\":3},\"name\":\"r\","
    "\"inbound_nodes\":[[[\"i\",0,0,{\"training\":true}]]]}],\"input_layers\":["
    "[\"i\",0,0]],\"output_layers\":"
    "[[\"r\",0,0]]},\"name\":\"f\",\"inbound_nodes\":[[[\"a\",0,0,{}]],[[\"f\",1,0,{}]]]},"
    "{\"class_name\":\"Concatenate\",\"config\":{\"name\":\"c\","
    "\"axis\":-1,\"dtype\":{\"class_name\":\"Policy\","
    "\"config\":{\"name\":\"mixed_bfloat16\"}}},\"name\":\"c\",\"inbound_nodes\":[[[\"f\","
    "2,0,{}],[\"a\",0,0,{}]]]}],"
    "\"input_layers\":[[\"a\",0,0]],\"output_layers\":[[\"c\",0,0]]},\"keras_version\":\"2.9\",\"backend\":"
    "\"tensorflow\"}",
    /* tf_keras: operations on a tensor, a constant, a list and a slice */
    "{\"class_name\":\"Functional\",\"config\":{\"name\":\"m\",\"layers\":["
    "{\"class_name\":\"InputLayer\",\"config\":{\"batch_input_shape\":[null,2,3],\"dtype\":\"float32\","
    "\"name\":\"a\"},\"name\":\"a\",\"inbound_nodes\":[]},"
    "{\"class_name\":\"SlicingOpLambda\",\"config\":{\"name\":\"s\",\"function\":\"__operators__.getitem\"},"
    "\"name\":\"s\",\"inbound_nodes\":[[\"a\",0,0,{\"slice_spec\":[{\"start\":null,\"stop\":null,"
    "\"step\":null},"
    "{\"start\":-1,\"stop\":null,\"step\":-1},null,2]}]]},"
    "{\"class_name\":\"TFOpLambda\",\"config\":{\"name\":\"t\",\"function\":\"math.subtract\"},"
    "\"name\":\"t\","
    "\"inbound_nodes\":[[\"_CONSTANT_VALUE\",-1,[[1.0],[2.5]],{\"y\":[\"s\",0,0],\"name\":null}]]},"
    "{\"class_name\":\"TFOpLambda\",\"config\":{\"name\":\"c\",\"function\":\"concat\"},\"name\":\"c\","
    "\"inbound_nodes\":[[[\"t\",0,0,{\"axis\":1}],[\"s\",0,0,{\"axis\":1}]]]},"
    "{\"class_name\":\"TFOpLambda\",\"config\":{\"name\":\"r\",\"function\":\"math.reduce_mean\"},"
    "\"name\":\"r\","
    "\"inbound_nodes\":[[\"c\",0,0,{\"axis\":[1,-1],\"keepdims\":true}]]},"
    "{\"class_name\":\"TFOpLambda\",\"config\":{\"name\":\"p\",\"function\":\"split\"},\"name\":\"p\","
    "\"inbound_nodes\":[[\"c\",0,0,{\"num_or_size_splits\":[1,-1],\"axis\":1}]]}],"
    "\"input_layers\":[[\"a\",0,0]],\"output_layers\":[[\"r\",0,0],[\"p\",0,1]]},"
    "\"keras_version\":\"2.15.0\"}",
};

static void damaged_models(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    static bytes good;
    good.size = strlen(texts[i]);
    assert_true(good.size <= sizeof good.data);
    memcpy(good.data, texts[i], good.size);
    MIX_SCOPE {
      if (!mix_model_from_json(texts[i])) fail_msg("%s", mix_error_message());
    }
    mutate_and_run(&good, 4000, 60 + i);
    misplaced_words(&good, 6000, 70 + i);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_models)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  mix_shutdown();
  return failed;
}
