/* The lists of the rewrite: modes, versions, levels, edits by options and environment variables, and
 * warnings. */
/* Holds docs/NUMERICS.md: The automatic rewrite. */
#include "amp/setting.h"
#include "amp/amp_support.h"

static char warnings[1 << 16];

static void keep_warnings(void *context, mix_log_level level, const char *message) {
  (void)context;
  size_t used = strlen(warnings);
  if (level == MIX_LOG_WARNING) snprintf(warnings + used, sizeof warnings - used, "%s\n", message);
}

static int begin(void **state) {
  (void)state;
  warnings[0] = 0;
  mix_set_log_callback(keep_warnings, NULL);
  return 0;
}
static int end(void **state) {
  (void)state;
  mix_set_log_callback(NULL, NULL);
  mix_error_clear();
  return 0;
}

static mix_amp_class class_of(mix_amp_options options, const char *op) {
  mix_amp_lists lists;
  assert_true(mix_amp_lists_make(&lists, &options, NULL));
  mix_amp_class class = mix_amp_lists_class(&lists, op);
  mix_amp_lists_free(&lists);
  return class;
}

static int size_of(mix_amp_options options, mix_amp_class class) {
  mix_amp_lists lists;
  int count;
  assert_true(mix_amp_lists_make(&lists, &options, NULL));
  mix_free(mix_amp_lists_ops(&lists, class, &count));
  mix_amp_lists_free(&lists);
  return count;
}

/* Spec 8.1: lists that depend on versions. */
static void section_8_1_versions(void **state) {
  (void)state;
  mix_amp_options options = {.mode = MIX_AMP_CUDA_FLOAT16, .has_gpu = true};
  assert_int_equal(class_of(options, "MatMul"), MIX_AMP_ALLOW);
  static const struct {
    const char *op;
    int cuda, cudnn;
  } rows[] = {{"BatchMatMul", 9010, 0},
              {"BatchMatMulV2", 9010, 0},
              {"Conv3D", 0, 7602},
              {"Conv3DBackpropFilter", 0, 7602},
              {"DepthwiseConv2dNative", 0, 8000}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    options.cuda = rows[i].cuda ? rows[i].cuda - 1 : 99999;
    options.cudnn = rows[i].cudnn ? rows[i].cudnn - 1 : 99999;
    assert_int_equal(class_of(options, rows[i].op), MIX_AMP_NONE);
    options.cuda += rows[i].cuda != 0;
    options.cudnn += rows[i].cudnn != 0;
    assert_int_equal(class_of(options, rows[i].op), MIX_AMP_ALLOW);
  }
  /* The other modes do not depend on versions. A simulated GPU has the lists of a new one. */
  assert_int_equal(class_of((mix_amp_options){.mode = MIX_AMP_CPU_FLOAT16}, "DepthwiseConv2dNative"),
                   MIX_AMP_ALLOW);
  assert_int_equal(class_of((mix_amp_options){.mode = MIX_AMP_ONEDNN_BFLOAT16}, "Conv3DBackpropFilter"),
                   MIX_AMP_NONE);
  assert_int_equal(class_of((mix_amp_options){.mode = MIX_AMP_CUDA_FLOAT16, .simulate_gpu = true},
                            "DepthwiseConv2dNative"),
                   MIX_AMP_ALLOW);
  assert_int_equal(class_of((mix_amp_options){.mode = MIX_AMP_ONEDNN_FLOAT16}, "Rsqrt"), MIX_AMP_INFER);
  assert_int_equal(class_of((mix_amp_options){.mode = MIX_AMP_ONEDNN_FLOAT16}, "CudnnRNN"), MIX_AMP_NONE);
  assert_int_equal(class_of((mix_amp_options){.mode = MIX_AMP_ONEDNN_BFLOAT16}, "Sum"), MIX_AMP_INFER);
  assert_int_equal(class_of((mix_amp_options){.mode = MIX_AMP_CPU_FLOAT16}, "Sum"), MIX_AMP_DENY);
}

static void section_7_2_levels(void **state) {
  (void)state;
  mix_amp_options options = cuda_options();
  assert_true(mix_amp_options_set(&options, "LEVEL", "tensor_Cores_only"));
  assert_int_equal(options.level, MIX_AMP_TENSOR_CORES_ONLY);
  options.edits[MIX_AMP_EDIT_CLEAR].add = "Sin";
  options.edits[MIX_AMP_EDIT_ALLOW].add = "Sin";
  assert_int_equal(class_of(options, "Sin"), MIX_AMP_ALLOW);
  assert_int_equal(size_of(options, MIX_AMP_ALLOW), 40);
  assert_int_equal(size_of(options, MIX_AMP_CLEAR), 0);
  options.mode = MIX_AMP_ONEDNN_BFLOAT16; /* the level has no effect here */
  assert_int_equal(size_of(options, MIX_AMP_CLEAR), 112);

  warnings[0] = 0; /* the warning about Sin */
  options = cuda_options();
  assert_true(mix_amp_options_set(&options, "LEVEL", "TREAT_INFER_AS_DENY"));
  options.edits[MIX_AMP_EDIT_DENY].remove = "Tanh"; /* in the deny list only after the level is applied */
  options.edits[MIX_AMP_EDIT_INFER].remove = "Add";
  assert_int_equal(class_of(options, "Tanh"), MIX_AMP_DENY);
  assert_int_equal(class_of(options, "Add"), MIX_AMP_NONE);
  assert_int_equal(size_of(options, MIX_AMP_INFER), 0);
  assert_int_equal(size_of(options, MIX_AMP_DENY), 9 + 42);
  assert_string_equal(warnings, "");

  assert_true(mix_amp_options_set(&options, "LEVEL", "FASTER"));
  assert_int_equal(options.level, MIX_AMP_LEVEL_NORMAL);
  assert_non_null(strstr(warnings, "\"FASTER\""));
  assert_non_null(strstr(warnings, "UNSAFE_FORCE_ALL"));
}

/* Additions come before removals; the older spellings come last. */
static void section_7_2_edits(void **state) {
  (void)state;
  mix_amp_options options = cuda_options();
  options.edits[MIX_AMP_EDIT_ALLOW] = (mix_amp_edit){.add = "Tanh,Sigmoid,,", .remove = "Sigmoid"};
  options.edits[MIX_AMP_EDIT_INFER].remove = "Tanh,Sigmoid";
  assert_int_equal(class_of(options, "Tanh"), MIX_AMP_ALLOW);
  assert_int_equal(class_of(options, "Sigmoid"), MIX_AMP_NONE);
  options.edits[MIX_AMP_EDIT_WHITE] = (mix_amp_edit){.add = "Sigmoid", .remove = "Tanh"};
  assert_int_equal(class_of(options, "Tanh"), MIX_AMP_NONE);
  assert_int_equal(class_of(options, "Sigmoid"), MIX_AMP_ALLOW);
  options.edits[MIX_AMP_EDIT_GRAY].add = "Tanh";
  options.edits[MIX_AMP_EDIT_BLACK].add = "Sin";
  assert_int_equal(class_of(options, "Tanh"), MIX_AMP_INFER);
  assert_int_equal(class_of(options, "Sin"), MIX_AMP_DENY);
}

static void section_7_2_unknown_ops_give_a_warning(void **state) {
  (void)state;
  mix_amp_options options = cuda_options();
  options.edits[MIX_AMP_EDIT_DENY].add = "Sum, Exp"; /* the space belongs to the name */
  assert_int_equal(class_of(options, "Exp"), MIX_AMP_DENY);
  assert_int_equal(class_of(options, " Exp"), MIX_AMP_DENY);
  assert_non_null(strstr(warnings, "' Exp'"));
  assert_non_null(strstr(warnings, "Expm1, L2Loss")); /* names that exist */
  assert_null(strstr(warnings, "'Sum'"));
  warnings[0] = 0;
  options.edits[MIX_AMP_EDIT_DENY] = (mix_amp_edit){.remove = "Nothing"};
  assert_int_equal(class_of(options, "Nothing"), MIX_AMP_NONE);
  assert_non_null(strstr(warnings, "'Nothing'"));
  warnings[0] = 0;
  MIX_SCOPE { /* an op of the graph is a known name */
    mix_amp_graph *graph = mix_amp_graph_new(NULL);
    chain(graph, "a", "Nothing", -1);
    mix_amp_lists lists;
    assert_true(mix_amp_lists_make(&lists, &options, graph));
    mix_amp_lists_free(&lists);
  }
  assert_string_equal(warnings, "");
}

static void section_7_2_conflicts(void **state) {
  (void)state;
  mix_amp_options options = cuda_options();
  options.edits[MIX_AMP_EDIT_ALLOW].add = "Exp";
  MIX_SCOPE {
    mix_amp_graph *graph = mix_amp_graph_new("conflict");
    int a = chain(graph, "a", "MatMul", -1);
    assert_true(mix_amp_graph_finish(graph));
    mix_amp_result *result = rewrite(graph, options);
    assert_int_equal(result->status, MIX_AMP_INVALID_ARGUMENT);
    assert_non_null(strstr(result->message, "Exp"));
    assert_int_equal(after(result, a, 0), MIX_AMP_DTYPE_FLOAT32);
    assert_non_null(strstr(warnings, "conflict: InvalidArgument"));
  }
  assert_int_equal(mix_error(), MIX_OK);
}

/* The oneDNN modes change nodes on the CPU only, and warn if there is a GPU. They have no
 * UNSAFE_FORCE_ALL. */
static void section_7_3_oneDNN_modes(void **state) {
  (void)state;
  static const mix_amp_mode modes[] = {MIX_AMP_ONEDNN_BFLOAT16, MIX_AMP_ONEDNN_FLOAT16};
  for (int i = 0; i < 2; i++)
    MIX_SCOPE {
      warnings[0] = 0;
      mix_amp_graph *graph = mix_amp_graph_new("two devices");
      int a = chain(graph, "a", "MatMul", -1);
      assert_true(mix_amp_graph_finish(graph));
      mix_amp_options options = {
          .mode = modes[i], .has_gpu = true, .architecture = {8, 0}, .cpu_computes_float16 = true};
      mix_amp_result *result = rewrite(graph, options);
      assert_int_equal(result->status, MIX_AMP_OK);
      assert_int_equal(after(result, a, 0), MIX_AMP_DTYPE_FLOAT32); /* unplaced: counts as on the GPU */
      assert_non_null(strstr(warnings, "two devices: the mode onednn_"));
      assert_non_null(strstr(warnings, "on the CPU alone, but there is a GPU"));
      warnings[0] = 0;
      options.has_gpu = false;
      assert_int_not_equal(after(rewrite(graph, options), a, 0), MIX_AMP_DTYPE_FLOAT32);
      assert_string_equal(warnings, "");
      options.level = MIX_AMP_UNSAFE_FORCE_ALL;
      result = rewrite(graph, options);
      assert_int_equal(result->status, MIX_AMP_INVALID_ARGUMENT);
      assert_int_equal(after(result, a, 0), MIX_AMP_DTYPE_FLOAT32);
    }
}

static void section_7_2_environment(void **state) {
  (void)state;
  static const char *const names[] = {"LEVEL",        "DENYLIST_ADD", "GRAYLIST_REMOVE", "IGNORE_PERFORMANCE",
                                      "SIMULATE_GPU", "EMULATE_FP16", "ALOWLIST_ADD"};
  static const char *const values[] = {"treat_infer_as_deny", "Sin", "Tanh", "1", "TRUE", "0", "Sin"};
  char name[128];
  for (size_t i = 0; i < 7; i++) {
    snprintf(name, sizeof name, MIX_AMP_ENVIRONMENT "%s", names[i]);
    setenv(name, values[i], 1);
  }
  mix_amp_options options = {0};
  assert_true(mix_amp_options_from_environment(&options));
  assert_int_equal(options.level, MIX_AMP_TREAT_INFER_AS_DENY);
  assert_string_equal(options.edits[MIX_AMP_EDIT_DENY].add, "Sin");
  assert_string_equal(options.edits[MIX_AMP_EDIT_GRAY].remove, "Tanh");
  assert_null(options.edits[MIX_AMP_EDIT_ALLOW].add);
  assert_true(options.ignore_performance && options.simulate_gpu && options.no_emulation);
  assert_true(mix_amp_setting_options(MIX_BFLOAT16, &options)); /* a captured function has no GPU device */
  assert_false(options.simulate_gpu || options.has_gpu);
  assert_non_null(strstr(warnings, "ALOWLIST_ADD"));
  assert_non_null(strstr(warnings, "ALLOWLIST"));
  setenv(MIX_AMP_ENVIRONMENT "EMULATE_FP16", "perhaps", 1);
  assert_false(mix_amp_options_from_environment(&options));
  assert_error(MIX_VALUE_ERROR, "EMULATE_FP16 is \"perhaps\"");
  for (size_t i = 0; i < 7; i++) {
    snprintf(name, sizeof name, MIX_AMP_ENVIRONMENT "%s", names[i]);
    unsetenv(name);
  }
}

static void section_7_2_versions_are_parsed(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int major, minor;
  } rows[] = {{"8.0", 8, 0}, {"7", 7, 0}, {"10.3", 10, 3}, {"seven", 0, 0},      {"8.x", 0, 0},
              {"", 0, 0},    {".", 0, 0}, {"8.", 0, 0},    {"99999999999", 0, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int architecture[2];
    mix_amp_parse_architecture(rows[i].text, architecture);
    assert_int_equal(architecture[0], rows[i].major);
    assert_int_equal(architecture[1], rows[i].minor);
  }
  assert_int_equal(mix_amp_parse_version("11050"), 11050);
  assert_int_equal(mix_amp_parse_version("11.5"), 0);
}

static bool exists(const char *pattern, const char *folder) {
  char command[256];
  snprintf(command, sizeof command, "ls %s/%s > /dev/null 2>&1", folder, pattern);
  return system(command) == 0;
}

/* TensorFlow writes the lists after a successful pass. Under TREAT_INFER_AS_DENY it writes them as they were
 * before infer ops became deny ops. */
static void section_7_2_what_is_logged(void **state) {
  (void)state;
  static const struct {
    const char *op;
    mix_amp_level level;
    const char *added;
    bool logged;
  } rows[] = {{"MatMul", MIX_AMP_LEVEL_NORMAL, NULL, true},
              {"MatMul", MIX_AMP_TREAT_INFER_AS_DENY, NULL, true},
              {"Tanh", MIX_AMP_LEVEL_NORMAL, NULL, false},     /* nothing to convert */
              {"MatMul", MIX_AMP_LEVEL_NORMAL, "Exp", false}}; /* conflicting lists */
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    MIX_SCOPE {
      char folder[] = "/tmp/mixtape-test-XXXXXX", command[256];
      assert_non_null(mkdtemp(folder));
      mix_amp_options options = cuda_options();
      options.log_path = folder;
      options.level = rows[i].level;
      options.edits[MIX_AMP_EDIT_ALLOW].add = rows[i].added;
      mix_amp_graph *graph = mix_amp_graph_new("g");
      chain(graph, "a", rows[i].op, -1);
      assert_true(mix_amp_graph_finish(graph));
      rewrite(graph, options);
      assert_int_equal(exists("paintbuckets_*", folder), rows[i].logged);
      snprintf(command, sizeof command, "grep -A 1 InferList %s/* | grep -q Add", folder);
      assert_int_equal(system(command) == 0, rows[i].logged);
      snprintf(command, sizeof command, "rm -r %s", folder);
      assert_int_equal(system(command), 0);
    }
}

static void section_7_2_log_path(void **state) {
  (void)state;
  char folder[] = "/tmp/mixtape-test-XXXXXX", command[256], text[4096];
  assert_non_null(mkdtemp(folder));
  mix_amp_options options = cuda_options();
  options.log_path = folder;
  MIX_SCOPE {
    mix_amp_graph *graph = mix_amp_graph_new("dir/g");
    chain(graph, "a", "MatMul", -1);
    assert_true(mix_amp_graph_finish(graph));
    rewrite(graph, options);
  }
  snprintf(command, sizeof command, "cat %s/paintbuckets_AutoMixedPrecision_dir_g_*.txt", folder);
  FILE *file = popen(command, "r");
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  assert_int_equal(pclose(file), 0);
  assert_int_equal(strncmp(text, "AllowList:\nBatchMatMul\nBatchMatMulV2\n", 36), 0);
  assert_non_null(strstr(text, "\n\nDenyList:\nExp\n"));
  assert_non_null(strstr(text, "\n\nInferList:\nAdd\n"));
  assert_non_null(strstr(text, "\n\nClearList:\nAbs\n"));
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
  MIX_SCOPE { /* the folder no longer exists */
    mix_amp_graph *graph = mix_amp_graph_new("g");
    chain(graph, "a", "MatMul", -1);
    assert_true(mix_amp_graph_finish(graph));
    assert_null(mix_amp_rewrite(graph, &options));
    assert_error(MIX_IO_ERROR, "LOG_PATH");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(section_8_1_versions, begin, end),
      cmocka_unit_test_setup_teardown(section_7_2_levels, begin, end),
      cmocka_unit_test_setup_teardown(section_7_2_edits, begin, end),
      cmocka_unit_test_setup_teardown(section_7_2_unknown_ops_give_a_warning, begin, end),
      cmocka_unit_test_setup_teardown(section_7_2_conflicts, begin, end),
      cmocka_unit_test_setup_teardown(section_7_3_oneDNN_modes, begin, end),
      cmocka_unit_test_setup_teardown(section_7_2_environment, begin, end),
      cmocka_unit_test_setup_teardown(section_7_2_versions_are_parsed, begin, end),
      cmocka_unit_test_setup_teardown(section_7_2_what_is_logged, begin, end),
      cmocka_unit_test_setup_teardown(section_7_2_log_path, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
