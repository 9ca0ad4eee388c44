/* mix_function_dump: the graph of a training step before and after each pass, as text that is read back to
 * the same text. */
#include "model/support.h"

#include "base/alloc.h"
#include "compile/compile.h"
#include "compile/pass_pipeline.h"
#include "passes/passes.h"

static char notes[1 << 21]; /* the log */

static void listen(void *context, mix_log_level level, const char *message) {
  (void)context;
  (void)level;
  size_t used = strlen(notes);
  snprintf(notes + used, sizeof notes - used, "%s\n", message);
}

static int begin(void **state) {
  mix_error_clear();
  mix_set_seed(5);
  notes[0] = 0;
  mix_set_log_callback(listen, NULL);
  *state = mix_scope_begin();
  return 0;
}
static int end(void **state) {
  unsetenv("MIXTAPE_DISABLE_PASSES");
  unsetenv("MIXTAPE_VERBOSE");
  unsetenv("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_ALLOWLIST_REMOVE");
  mix_error_clear();
  mix_set_graph_rewrite(NULL);
  mix_set_global_policy("float32");
  mix_set_device(default_device());
  mix_set_log_callback(NULL, NULL);
  mix_scope_end(*state);
  return 0;
}
#define STAGE_TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

/* Products, normalisation, dropout with its generator, a penalty, Adam and a dynamic loss scale under a mixed
 * policy: something for every pass. */
static mix_function *trained(const char *policy, const char *rewrite, bool jit) {
  mix_set_global_policy(policy);
  mix_set_graph_rewrite(rewrite);
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(6), .name = "digits");
  mix_tensor *x = mix_call(mix_dense(.units = 8, .activation = "gelu",
                                     .kernel_regularizer = mix_regularizer_new("l2"), .name = "hidden 'one'"),
                           inputs);
  x = mix_call(mix_layer_normalization(.name = "norm"), x);
  x = mix_call(mix_dropout(.rate = 0.25, .name = "drop"), x);
  x = mix_call(mix_dense(.units = 3, .name = "logits"), x);
  mix_model *model = mix_model_new(
      inputs, mix_call(mix_activation("softmax", .dtype = "float32", .name = "predictions"), x));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_adam(.learning_rate = 0), .metrics = {"accuracy"}, .jit_compile = jit);
  examples e = examples_of(12, 6, 3);
  mix_model_train_on_batch(model, e.x, e.y);
  assert_no_error();
  return mix_model_train_function(model);
}

static void comes_back(const char *stage, const char *text) {
  mix_ir *ir = mix_ir_read(stage, text, strlen(text), 1 << 24);
  if (!ir) fail_msg("stage %s: %s\n%s", stage, mix_error_message(), text);
  const char *again = mix_ir_text(ir);
  if (strcmp(again, text) != 0)
    fail_msg("stage %s is read back to another text:\n%s\nfrom\n%s", stage, again, text);
  mix_ir_free(ir);
}

static const char *dump(mix_function *step, const char *stage) {
  const char *text = mix_function_dump(step, stage);
  if (!text) fail_msg("stage %s: %s", stage, mix_error_message());
  return text;
}

/* Every stage, twice. The last one is the result of the real compilation, not of a second run of the
 * passes. */
static void every_stage(mix_function *step) {
  const char *before = dump(step, "captured");
  assert_ptr_equal(before, dump(step, "graph"));
  comes_back("captured", before);
  int changed = 0;
  for (int i = 0; mix_pass_name(i); i++) {
    char longer[64];
    const char *after = dump(step, mix_pass_name(i));
    comes_back(mix_pass_name(i), after);
    snprintf(longer, sizeof longer, "before %s", mix_pass_name(i));
    assert_ptr_equal(dump(step, longer), before);
    snprintf(longer, sizeof longer, "after %s", mix_pass_name(i));
    assert_ptr_equal(dump(step, longer), after);
    changed += strcmp(before, after) != 0;
    before = after;
  }
  assert_ptr_equal(before, dump(step, "passes"));
  assert_true(changed >= 6);
}

static void every_stage_is_read_back(void **state) {
  (void)state;
  static const char *const cases[][2] = {{"float32", NULL},
                                         {"mixed_float16", NULL},
                                         {"mixed_bfloat16", NULL},
                                         {"float32", "float16"},
                                         {"float32", "bfloat16"}};
  for (int i = 0; i < 5; i++)
    for (int jit = 0; jit < 2; jit++)
      MIX_SCOPE { every_stage(trained(cases[i][0], cases[i][1], jit)); }
}

/* The passes run again give the same graphs: the log of the compilation equals the later dumps. */
static void the_log_says_the_same(void **state) {
  (void)state;
  setenv("MIXTAPE_VERBOSE", "compile", 1);
  mix_function *step = trained("float32", "float16", true);
  unsetenv("MIXTAPE_VERBOSE");
  for (int i = -1; i < 0 || mix_pass_name(i); i++) {
    char title[96];
    snprintf(title, sizeof title,
             i < 0 ? "# compile train_step: as captured\n" : "# compile train_step: after %s\n",
             mix_pass_name(i));
    const char *logged = strstr(notes, title), *text = dump(step, i < 0 ? "captured" : mix_pass_name(i));
    if (!logged) fail_msg("the log has no '%s'", title);
    if (strncmp(logged + strlen(title), text, strlen(text)) != 0)
      fail_msg("%slogged:\n%.4000s\ndumped:\n%s", title, logged, text);
  }
  notes[0] = 0;
  dump(step, "constant_fold");
  assert_string_equal(notes, ""); /* a dump does not report the rewrite again */
}

/* A disabled pass changes nothing. Dumps between passes belong to the environment of the call. */
static void dumps_belong_to_the_environment_of_the_call(void **state) {
  (void)state;
  setenv("MIXTAPE_DISABLE_PASSES", "select_to_predicate,fuse_epilogues", 1);
  mix_function *step = trained("mixed_float16", NULL, false);
  assert_string_equal(dump(step, "before select_to_predicate"), dump(step, "select_to_predicate"));
  assert_null(strstr(dump(step, "cache_weight_casts"), " if %"));
  const char *fused = dump(step, "fuse");
  unsetenv("MIXTAPE_DISABLE_PASSES");
  assert_ptr_equal(dump(step, "fuse"), fused); /* cached */
  assert_non_null(dump(step, "captured"));
  assert_non_null(dump(step, "passes"));
  assert_non_null(dump(step, "plan"));
  assert_null(mix_function_dump(step, "cse"));
  assert_error(MIX_RUNTIME_ERROR, "no longer those of the latest call");
  setenv("MIXTAPE_DISABLE_PASSES", "select_to_predicate,fuse_epilogues", 1);
  assert_non_null(dump(step, "cse"));
}

/* After an edit of the lists a rewritten function is captured again. */
static void edits_count_at_the_next_call(void **state) {
  (void)state;
  mix_set_graph_rewrite("float16");
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(6));
  mix_model *model = mix_model_new(inputs, mix_call(mix_dense(.units = 3), inputs));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_sgd(.learning_rate = 0));
  examples e = examples_of(12, 6, 3);
  for (int i = 0; i < 3; i++) {
    if (i == 1) setenv("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_ALLOWLIST_REMOVE", "MatMul", 1);
    if (i == 2) unsetenv("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_ALLOWLIST_REMOVE");
    mix_model_train_on_batch(model, e.x, e.y);
    assert_no_error();
    assert_true((strstr(dump(mix_model_train_function(model), "amp"), ":float16(") == NULL) == (i == 1));
  }
}

/* Any failing allocation is an error, and earlier dumps stay valid. */
static void without_memory(void **state) {
  (void)state;
  mix_function *step = trained("mixed_float16", NULL, false);
  char *expected = strdup(dump(step, "cse"));
  const char *captured = dump(step, "captured");
  for (int allowed = 0;; allowed++) {
    assert_in_range(allowed, 0, 20000);
    mix_inject_allocation_failure(allowed);
    const char *text = mix_function_dump(step, "fuse");
    mix_inject_allocation_failure(-1);
    if (text) break;
    assert_error(MIX_MEMORY_ERROR, NULL);
    assert_ptr_equal(mix_function_dump(step, "captured"), captured);
  }
  assert_string_equal(dump(step, "cse"), expected);
  comes_back("fuse", dump(step, "fuse"));
  free(expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {STAGE_TEST(every_stage_is_read_back), STAGE_TEST(the_log_says_the_same),
                                     STAGE_TEST(dumps_belong_to_the_environment_of_the_call),
                                     STAGE_TEST(edits_count_at_the_next_call), STAGE_TEST(without_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
