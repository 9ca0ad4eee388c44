/* Programs, buffers and donation of a real plug-in, below the compiler: programs are written by hand. */
#include "compile/support.h"
#include "support/folder.h"
#include "support/xla.h"

#include "backend/xla/xla.h"

static const mix_pjrt *plugin;

static int begin_xla(void **state) {
  if (begin_test(state)) return 1;
  if (xla_device() && mix_set_device(xla_device()) == MIX_OK) plugin = mix_xla_plugin();
  return mix_error() != MIX_OK;
}
#define XLA(function) cmocka_unit_test_setup_teardown(function, begin_xla, end_test)

static pjrt_loaded *compile(const char *text) { return mix_pjrt_compile(plugin, text, strlen(text), "test"); }
static mix_type floats(int64_t count) { return (mix_type){MIX_FLOAT32, MIX_SHAPE(count)}; }

static pjrt_buffer *run(pjrt_loaded *loaded, pjrt_buffer **arguments, int count, bool donate) {
  const int64_t keep[] = {0, 1};
  pjrt_buffer *result = NULL;
  pjrt_event *done;
  const mix_pjrt_run call = {.loaded = loaded,
                             .arguments = arguments,
                             .argument_count = count,
                             .keep = keep + donate,
                             .keep_count = count - donate,
                             .results = &result};
  assert_true(mix_pjrt_execute(plugin, &call, "test", &done));
  assert_true(mix_pjrt_await(plugin, done, "test"));
  return result;
}

/* Each dtype there and back, in shapes with no, one and several elements. */
static void bytes_come_back(void **state) {
  (void)state;
  XLA_OR_SKIP();
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64, MIX_INT8,
                                     MIX_INT16,   MIX_INT32,    MIX_INT64,   MIX_UINT8,   MIX_BOOL};
  const mix_shape shapes[] = {
      {.rank = 0}, MIX_SHAPE(3), MIX_SHAPE(2, 3), MIX_SHAPE(0, 4), MIX_SHAPE(2, 1, 3, 2)};
  for (int i = 0; i < COUNT(dtypes) * COUNT(shapes); i++) {
    const mix_type type = {dtypes[i % COUNT(dtypes)], shapes[i / COUNT(dtypes)]};
    const size_t bytes = mix_dtype_size(type.dtype) * (size_t)mix_shape_size(type.shape);
    unsigned char there[128], back[128] = {0};
    for (size_t b = 0; b < bytes; b++) there[b] = type.dtype == MIX_BOOL ? b % 2 : (unsigned char)(3 * b + 1);
    pjrt_buffer *buffer = mix_pjrt_upload(plugin, there, type);
    assert_non_null(buffer);
    memset(there + bytes, 0, sizeof there - bytes);
    assert_true(mix_pjrt_download(plugin, buffer, type, back));
    assert_memory_equal(back, there, sizeof back);
    mix_pjrt_destroy(plugin, PJRT_BUFFER_DESTROY, buffer);
  }
  no_error();
}

static const char add[] = "module { func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, "
                          "%b: tensor<4xf32>) -> tensor<4xf32> {\n"
                          "%c = stablehlo.add %a, %b : tensor<4xf32>\nreturn %c : tensor<4xf32>\n} }";

static void an_argument_is_donated_or_kept(void **state) {
  (void)state;
  XLA_OR_SKIP();
  const float one[4] = {1, 2, 3, 4};
  float sum[4];
  pjrt_loaded *loaded = compile(add);
  no_error();
  assert_int_equal(mix_pjrt_result_count(plugin, loaded), 1);
  pjrt_buffer *arguments[] = {mix_pjrt_upload(plugin, one, floats(4)),
                              mix_pjrt_upload(plugin, one, floats(4))};
  pjrt_buffer *kept = run(loaded, arguments, 2, false);
  assert_true(mix_pjrt_download(plugin, arguments[0], floats(4), sum));
  assert_true(sum[3] == 4);
  for (int i = 0; i < 5; i++) { /* each run takes the result of the one before */
    pjrt_buffer *next = run(loaded, arguments, 2, true);
    assert_false(mix_pjrt_download(plugin, arguments[0], floats(4), sum));
    expect_error(MIX_RUNTIME_ERROR, "copying from the device");
    mix_pjrt_destroy(plugin, PJRT_BUFFER_DESTROY, arguments[0]);
    arguments[0] = next;
  }
  assert_true(mix_pjrt_download(plugin, arguments[0], floats(4), sum));
  assert_true(sum[0] == 6 && sum[3] == 24);
  assert_true(mix_pjrt_download(plugin, kept, floats(4), sum));
  assert_true(sum[0] == 2 && sum[3] == 8);
  mix_pjrt_destroy(plugin, PJRT_BUFFER_DESTROY, kept);
  for (int i = 0; i < 2; i++) mix_pjrt_destroy(plugin, PJRT_BUFFER_DESTROY, arguments[i]);
  mix_pjrt_destroy(plugin, PJRT_LOADED_DESTROY, loaded);
}

/* A second compilation of the same text loads what the first one has written; a damaged file is no error. */
static void the_cache_gives_the_same_program(void **state) {
  (void)state;
  XLA_OR_SKIP();
  assert_int_equal(folder_begin(NULL), 0);
  setenv("MIXTAPE_XLA_CACHE", test_folder, 1);
  const float one[4] = {1, 2, 3, 4};
  char command[256];
  for (int round = 0; round < 4; round++) {
    if (round == 2) snprintf(command, sizeof command, "truncate -s -9 %s/*", test_folder);
    if (round == 3)
      snprintf(command, sizeof command,
               "printf x | dd of=\"$(ls %s/*)\" bs=1 seek=3000 conv=notrunc 2>&1 | grep -q copied",
               test_folder);
    if (round >= 2) assert_int_equal(system(command), 0);
    pjrt_loaded *loaded = mix_xla_compile_text(add, "test");
    no_error();
    pjrt_buffer *arguments[] = {mix_pjrt_upload(plugin, one, floats(4)),
                                mix_pjrt_upload(plugin, one, floats(4))};
    pjrt_buffer *result = run(loaded, arguments, 2, true);
    float sum[4];
    assert_true(mix_pjrt_download(plugin, result, floats(4), sum) && sum[2] == 6);
    assert_false(mix_pjrt_download(plugin, arguments[0], floats(4), sum)); /* donated, too */
    mix_error_clear();
    for (int i = 0; i < 2; i++) mix_pjrt_destroy(plugin, PJRT_BUFFER_DESTROY, arguments[i]);
    mix_pjrt_destroy(plugin, PJRT_BUFFER_DESTROY, result);
    mix_pjrt_destroy(plugin, PJRT_LOADED_DESTROY, loaded);
    snprintf(command, sizeof command, "test \"$(ls %s | wc -l)\" = 1", test_folder);
    assert_int_equal(system(command), 0);
  }
  assert_non_null(strstr(mix_devices_text(), "1 loaded and 3 written by this process"));
  setenv("MIXTAPE_XLA_CACHE", "off", 1);
  assert_int_equal(folder_end(NULL), 0);
}

static void what_it_cannot_do_is_an_error(void **state) {
  (void)state;
  XLA_OR_SKIP();
  assert_null(compile("module { func.func public @main() -> tensor<f32> { no text } }"));
  expect_error(MIX_UNSUPPORTED, "the plug-in cannot compile test");
  /* 2^50 bytes */
  pjrt_loaded *loaded =
      compile("module { func.func public @main(%a: tensor<f32>) -> tensor<281474976710656xf32> {\n"
              "%c = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> "
              "tensor<281474976710656xf32>\nreturn %c : tensor<281474976710656xf32>\n} }");
  if (loaded) {
    const float one = 1;
    pjrt_buffer *argument = mix_pjrt_upload(plugin, &one, (mix_type){.dtype = MIX_FLOAT32}), *result = NULL;
    pjrt_event *done;
    const int64_t keep = 0;
    const mix_pjrt_run call = {loaded, &argument, 1, &keep, 1, &result};
    assert_false(mix_pjrt_execute(plugin, &call, "test", &done) && mix_pjrt_await(plugin, done, "test"));
    mix_pjrt_destroy(plugin, PJRT_BUFFER_DESTROY, argument);
    mix_pjrt_destroy(plugin, PJRT_BUFFER_DESTROY, result);
    mix_pjrt_destroy(plugin, PJRT_LOADED_DESTROY, loaded);
  }
  expect_error(MIX_MEMORY_ERROR, "test");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      XLA(bytes_come_back),
      XLA(an_argument_is_donated_or_kept),
      XLA(the_cache_gives_the_same_program),
      XLA(what_it_cannot_do_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
