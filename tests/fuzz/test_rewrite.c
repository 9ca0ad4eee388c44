/* The rewrite target on damaged graphs. */
#include "fuzz/mutate.h"

#include "fuzz/fuzz_rewrite.c"

static const char *const graphs[] = {
    /* a product between a constant and a fetch, in the CUDA mode, with edits */
    "{\"name\":\"g\",\"mode\":\"cuda_float16\",\"target\":\"float16\",\"gpu\":{\"architecture\":\"8.0\","
    "\"cuda\":\"11050\",\"cudnn\":\"8302\"},\"env\":{\"LEVEL\":\"normal\",\"CLEARLIST_ADD\":\"Sin,MatMul2\"},"
    "\"graph\":{\"fetch\":[\"f\"],\"feed\":[],\"nodes\":["
    "{\"name\":\"c\",\"op\":\"Const\",\"inputs\":[],\"device\":\"\","
    "\"types\":{\"dtype\":{\"dtype\":\"float32\",\"inputs\":[],\"outputs\":[0],\"allowed\":[\"float16\","
    "\"float32\"],\"kernel\":{\"float16\":true,\"bfloat16\":true}}},\"value\":{}},"
    "{\"name\":\"m\",\"op\":\"MatMul\",\"inputs\":[\"c\",\"c:0\"],\"device\":\"\","
    "\"types\":{\"T\":{\"dtype\":\"float32\",\"inputs\":[0,1],\"outputs\":[0],\"allowed\":[\"float16\","
    "\"float32\"],\"kernel\":{\"float16\":true,\"bfloat16\":true}}},\"attrs\":{}},"
    "{\"name\":\"f\",\"op\":\"Identity\",\"inputs\":[\"m\",\"^c\"],\"device\":\"gpu\","
    "\"types\":{\"T\":{\"dtype\":\"float32\",\"inputs\":[0],\"outputs\":[0],\"allowed\":[\"float16\","
    "\"float32\"],\"kernel\":{\"float16\":true,\"bfloat16\":false}}},\"stateful\":false}]}}",
    /* a tensor list and a loop, on the CPU */
    "{\"name\":\"l\",\"mode\":\"cpu_float16\",\"gpu\":null,\"env\":{},\"graph\":{\"fetch\":[],\"feed\":[],"
    "\"nodes\":["
    "{\"name\":\"a\",\"op\":\"MatMul\",\"inputs\":[],\"device\":\"cpu\","
    "\"types\":{\"T\":{\"dtype\":\"float32\",\"inputs\":[],\"outputs\":[0],\"allowed\":[\"float16\"],"
    "\"kernel\":{\"float16\":true,\"bfloat16\":true}}}},"
    "{\"name\":\"w\",\"op\":\"TensorListFromTensor\",\"inputs\":[\"a\"],\"device\":\"cpu\","
    "\"types\":{\"=variant\":{\"dtype\":\"variant\",\"inputs\":[],\"outputs\":[0]},"
    "\"element_dtype\":{\"dtype\":\"float32\",\"inputs\":[0],\"outputs\":[],\"allowed\":[\"float16\"],"
    "\"kernel\":{\"float16\":true,\"bfloat16\":true}}}},"
    "{\"name\":\"r\",\"op\":\"TensorListStack\",\"inputs\":[\"w\"],\"device\":\"cpu\","
    "\"types\":{\"=variant\":{\"dtype\":\"variant\",\"inputs\":[0],\"outputs\":[]},"
    "\"element_dtype\":{\"dtype\":\"float32\",\"inputs\":[],\"outputs\":[0],\"allowed\":[\"float16\"],"
    "\"kernel\":{\"float16\":true,\"bfloat16\":true}}}},"
    "{\"name\":\"g\",\"op\":\"Merge\",\"inputs\":[\"r\",\"n\"],\"device\":\"cpu\","
    "\"types\":{\"T\":{\"dtype\":\"float32\",\"inputs\":[0,1],\"outputs\":[0],\"allowed\":[\"float16\"],"
    "\"kernel\":{\"float16\":true,\"bfloat16\":true}}}},"
    "{\"name\":\"n\",\"op\":\"NextIteration\",\"inputs\":[\"g\"],\"device\":\"cpu\","
    "\"types\":{\"T\":{\"dtype\":\"float32\",\"inputs\":[0],\"outputs\":[0],\"allowed\":[\"float16\"],"
    "\"kernel\":{\"float16\":true,\"bfloat16\":true}}}}]}}",
    /* a renamed batch norm, a list of types, a variable's reference, a call, casts, everything forced */
    "{\"name\":\"b\",\"mode\":\"cuda_float16\",\"gpu\":{\"architecture\":\"8.0\"},"
    "\"env\":{\"LEVEL\":\"UNSAFE_FORCE_ALL\",\"SIMULATE_GPU\":\"1\"},\"graph\":{\"fetch\":[\"k\"],"
    "\"feed\":[\"v\"],\"nodes\":["
    "{\"name\":\"v\",\"op\":\"VariableV2\",\"inputs\":[],\"device\":\"\",\"stateful\":true,"
    "\"types\":{\"dtype\":{\"dtype\":\"ref:float32\",\"inputs\":[],\"outputs\":[0],\"allowed\":[\"float16\","
    "\"float32\"],\"kernel\":{\"float16\":true,\"bfloat16\":false}}}},"
    "{\"name\":\"n\",\"op\":\"FusedBatchNorm\",\"inputs\":[\"v\",\"v\"],\"device\":\"gpu\","
    "\"types\":{\"T\":{\"dtype\":\"float32\",\"inputs\":[0,1],\"outputs\":[0,1],\"allowed\":[\"float32\"],"
    "\"kernel\":{\"float16\":false,\"bfloat16\":false}}},\"renamed\":{\"op\":\"FusedBatchNormV2\","
    "\"types\":{\"T\":{\"dtype\":\"float32\",\"inputs\":[0],\"outputs\":[0],\"allowed\":[\"float16\"],"
    "\"kernel\":{\"float16\":true,\"bfloat16\":true}},\"U\":{\"dtype\":\"float32\",\"inputs\":[1],"
    "\"outputs\":[1],\"allowed\":[\"float32\"],\"kernel\":{\"float16\":false,\"bfloat16\":false}}}}},"
    "{\"name\":\"i\",\"op\":\"IdentityN\",\"inputs\":[\"n\",\"n:1\"],\"device\":\"gpu\","
    "\"types\":{\"T[0]\":{\"dtype\":\"float32\",\"inputs\":[0],\"outputs\":[0],\"allowed\":[\"float16\"],"
    "\"kernel\":{\"float16\":true,\"bfloat16\":true}},\"T[1]\":{\"dtype\":\"float32\",\"inputs\":[1],"
    "\"outputs\":[1],\"allowed\":[\"float16\"],\"kernel\":{\"float16\":true,\"bfloat16\":true}}}},"
    "{\"name\":\"p\",\"op\":\"PartitionedCall\",\"inputs\":[\"i:1\"],\"device\":\"cpu\",\"function\":true,"
    "\"types\":{\"=float32\":{\"dtype\":\"float32\",\"inputs\":[0],\"outputs\":[0]}}},"
    "{\"name\":\"k\",\"op\":\"Cast\",\"inputs\":[\"p\",\"^i\"],\"device\":\"gpu\","
    "\"types\":{\"SrcT\":{\"dtype\":\"float32\",\"inputs\":[0],\"outputs\":[],\"allowed\":[\"float16\"],"
    "\"kernel\":{\"float16\":true,\"bfloat16\":true}},\"DstT\":{\"dtype\":\"float16\",\"inputs\":[],"
    "\"outputs\":[0],\"allowed\":[\"float16\"],\"kernel\":{\"float16\":true,\"bfloat16\":true}}}}]}}",
};

static void damaged_graphs(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
    static bytes good;
    good.size = strlen(graphs[i]);
    assert_true(good.size <= sizeof good.data);
    memcpy(good.data, graphs[i], good.size);
    MIX_SCOPE { assert_non_null(cli_rewrite_read("good", good.data, good.size, NULL)); }
    mutate_and_run(&good, 20000, 40 + i);
    misplaced_words(&good, 10000, 50 + i);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_graphs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
