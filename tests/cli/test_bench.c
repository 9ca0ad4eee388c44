/* `mixtape bench` and the benchmark programs of bench/, if they were built: every table runs and its numbers
 * are consistent. Times are not checked, because the machine may be busy. */
#include "support/sanitizer.h"
#include "support/skip.h"
#include "base/processor.h"
#include "cli/program.h"
#include <mixtape/saving.h>
#include <sys/stat.h>

/* A benchmark program, by its name. Skips the test if it was not built. */
static int run_benchmark(const char *name, const char *const *arguments) {
  const char *bench = getenv("MIXTAPE_BENCH_PROGRAM");
  if (!bench) SKIP("the benchmark programs are not built");
  char path[1024], former[1024];
  snprintf(path, sizeof path, "%.*s%s", (int)(strrchr(bench, '/') + 1 - bench), bench, name);
  if (access(path, X_OK)) SKIP("%s is not built", name);
  snprintf(former, sizeof former, "%s", getenv("MIXTAPE_PROGRAM"));
  setenv("MIXTAPE_PROGRAM", path, 1);
  const int code = run_program_to(NULL, arguments);
  setenv("MIXTAPE_PROGRAM", former, 1);
  return code;
}

static json_t *printed(int code) {
  if (code) print_error("%s", program_err);
  assert_int_equal(code, 0);
  json_error_t error;
  json_t *object = json_loads(program_out, 0, &error);
  assert_non_null(object);
  assert_int_equal(json_integer_value(json_object_get(json_object_get(object, "machine"), "threads")), 2);
  return object;
}

#define SMALL "--quick", "--json", "--units", "8", "--batch-size", "16", "--threads", "2"

static json_t *mixtape_bench(const char *only) {
  return printed(run_program_to(NULL, (const char *const[]){"bench", SMALL, "--only", only, NULL}));
}

static json_t *bench(const char *only) {
  return printed(run_benchmark("bench", (const char *const[]){SMALL, "--only", only, NULL}));
}

static double number(const json_t *object, const char *name) {
  assert_true(json_is_number(json_object_get(object, name)));
  return json_number_value(json_object_get(object, name));
}

static void steps_of_each_policy(void **state) {
  (void)state;
  json_t *object = mixtape_bench("steps"), *steps = json_object_get(object, "steps");
  assert_int_equal(json_array_size(steps), 1);
  json_t *policies = json_object_get(json_array_get(steps, 0), "policies");
  assert_int_equal(json_array_size(policies), 4);
  assert_string_equal(json_string_value(json_object_get(json_array_get(policies, 0), "policy")), "float32");
  for (size_t i = 0; i < json_array_size(policies); i++) {
    const json_t *row = json_array_get(policies, i);
    assert_true(number(row, "best_seconds") > 0 &&
                number(row, "step_seconds") >= number(row, "best_seconds"));
    assert_true(number(row, "nodes") > 8 && number(row, "captured_nodes") > number(row, "nodes"));
    assert_true(number(row, "arena_bytes") > 0 &&
                number(row, "unshared_bytes") >= number(row, "arena_bytes"));
    assert_true(number(row, "plan_bytes") > number(row, "arena_bytes"));
  }
  assert_true(number(json_array_get(policies, 0), "speed_to_float32") == 1);
  json_decref(object);
}

static void layers_of_each_policy(void **state) {
  (void)state;
  json_t *object =
      printed(run_program_to(NULL, (const char *const[]){"bench", "--quick", "--json", "--batch-size", "1",
                                                         "--threads", "2", "--only", "layers", NULL}));
  const json_t *rows = json_object_get(object, "layers");
  /* Convolutions and layers of sequences, two passes each, and image models, of each policy. */
  assert_int_equal(json_array_size(rows), ((6 + 6) * 2 + 3) * 3);
  for (size_t i = 0; i < json_array_size(rows); i++) {
    const json_t *row = json_array_get(rows, i);
    assert_true(number(row, "best_seconds") > 0 && number(row, "seconds") >= number(row, "best_seconds"));
    if (i % 3 == 0) assert_true(number(row, "speed_to_float32") == 1);
  }
  json_decref(object);
}

static void dispatch_update_and_start(void **state) {
  (void)state;
  json_t *object = bench("dispatch"), *row = json_object_get(object, "dispatch");
  assert_true(number(row, "step_best") > 0 && number(row, "smallest_step_best") > number(row, "step_best"));
  json_decref(object);
  object = bench("update"), row = json_object_get(object, "update");
  assert_true(number(row, "best_bytes_per_second") >= number(row, "bytes_per_second"));
  json_decref(object);
  object = bench("optimizers"), row = json_object_get(json_object_get(object, "optimizers"), "rows");
  assert_int_equal(json_array_size(row), 17);
  for (size_t i = 0; i < json_array_size(row); i++) {
    json_t *rule = json_array_get(row, i);
    assert_true(number(rule, "best_bytes_per_second") >= number(rule, "bytes_per_second"));
    assert_true(number(rule, "passes") == number(rule, "min_passes"));
  }
  json_decref(object);
  object = bench("passes"), row = json_object_get(object, "passes");
  for (size_t i = 0; i < json_array_size(row); i++)
    assert_true(number(json_array_get(row, i), "passes") >= 0.99 * number(json_array_get(row, i), "least"));
  assert_true(json_array_size(row) > 30);
  json_decref(object);
  object = bench("start"), row = json_object_get(object, "start");
  assert_true(number(row, "first_step_best") > 0 &&
              number(row, "process_best") >= number(row, "first_step_best"));
  json_decref(object);
}

/* Each workload without and with four busy processes, which are gone afterwards. */
static void threads_that_plans_choose(void **state) {
  (void)state;
  json_t *object = bench("threads"), *rows = json_object_get(object, "threads");
  assert_int_equal(json_array_size(rows), 2);
  for (size_t i = 0; i < 2; i++) {
    const json_t *row = json_array_get(rows, i);
    assert_true(number(row, "busy") == (i ? 4 : 0));
    assert_true(number(row, "one_microseconds") > 0 && number(row, "two_microseconds") > 0);
    assert_true(number(row, "chosen_microseconds") > 0 && number(row, "time_to_better") > 0);
    assert_true(number(row, "chosen_threads") == 1 || number(row, "chosen_threads") == 2);
  }
  json_decref(object);
}

/* Without the leak check at exit: its tracer crashes while OpenBLAS and oneDNN have threads. */
static json_t *bench_without_leak_check(const char *only) {
  char given[400] = "", options[512];
  if (getenv("ASAN_OPTIONS")) snprintf(given, sizeof given, "%s", getenv("ASAN_OPTIONS"));
  snprintf(options, sizeof options, "%s:detect_leaks=0", given);
  setenv("ASAN_OPTIONS", options, 1);
  json_t *object = bench(only);
  setenv("ASAN_OPTIONS", given, 1);
  return object;
}

static const json_t *figure_of(const json_t *figures, const char *name) {
  const json_t *rows = json_object_get(figures, "rows");
  for (size_t i = 0; i < json_array_size(rows); i++)
    if (!strcmp(json_string_value(json_object_get(json_array_get(rows, i), "figure")), name))
      return json_array_get(rows, i);
  return NULL;
}

/* A geometric mean is that of the listed shapes. */
static void check_means_of_shapes(const json_t *figures) {
  static const char *const names[][2] = {{"products, geometric mean: bfloat16 / own float32", "bfloat16"},
                                         {"products, geometric mean: float16 / own float32", "float16"},
                                         {"products, geometric mean: float32 / OpenBLAS's", "OpenBLAS"},
                                         {"products, geometric mean: float32 / oneDNN's", "oneDNN"}};
  const json_t *products = json_object_get(figures, "products");
  const size_t shapes = json_array_size(products);
  assert_true(shapes >= 2);
  for (size_t n = 0; n < 4; n++) {
    const json_t *measured = json_object_get(figure_of(figures, names[n][0]), "measured");
    assert_non_null(measured);
    double logs = 0;
    size_t counted = 0;
    for (size_t i = 0; i < shapes; i++) {
      const json_t *ratio = json_object_get(json_array_get(products, i), names[n][1]);
      if (ratio) logs += log(json_number_value(ratio)), counted++;
    }
    assert_true(counted == (json_is_null(measured) ? 0 : shapes)); /* null: the peer is not installed */
    if (counted)
      assert_true(fabs(exp(logs / (double)counted) / json_number_value(measured) - 1) <
                  1e-5); /* six digits */
  }
}

/* `met` follows from the figure and its goal, if it has one. */
static void check_figures(const json_t *figures) {
  const json_t *rows = json_object_get(figures, "rows");
  assert_int_equal(json_array_size(rows), 12);
  int goals = 0;
  for (size_t i = 0; i < json_array_size(rows); i++) {
    const json_t *row = json_array_get(rows, i), *measured = json_object_get(row, "measured"),
                 *met = json_object_get(row, "met");
    const json_t *min = json_object_get(row, "at_least"), *max = json_object_get(row, "at_most");
    assert_true(json_is_number(measured) || json_is_null(measured)); /* null: no such kernel or peer */
    assert_false(min && max);
    assert_int_equal(met != NULL, (min || max) && json_is_number(measured));
    if (!met) continue;
    goals++;
    const double value = json_number_value(measured);
    assert_int_equal(json_is_true(met),
                     min ? value >= json_number_value(min) : value <= json_number_value(max));
  }
  assert_true(goals >= 3); /* products in 16 bits, and the update */
  check_means_of_shapes(figures);
  const json_t *memory = json_object_get(figures, "memory_plan");
  assert_int_equal(json_array_size(memory), 4);
  for (size_t i = 0; i < 4; i++) {
    const json_t *row = json_array_get(memory, i);
    assert_true(number(row, "peak_bytes") >=
                number(row, "state_bytes") + number(row, "between_bytes") + number(row, "scratch_bytes"));
  }
}

static void figures_beside_their_goals(void **state) {
  (void)state;
  json_t *object = bench_without_leak_check("figures");
  check_figures(json_object_get(object, "figures"));
  json_decref(object);
}

static json_t *advise(const char *set, const char *units, const char *policy) {
  const char *const arguments[] = {"bench",        "--advise", "--json",   "--units", units,
                                   "--batch-size", "128",      "--policy", policy,    NULL};
  const char *former = getenv("MIXTAPE_MAX_ISA");
  char kept[32];
  snprintf(kept, sizeof kept, "%s", former ? former : "");
  if (set) setenv("MIXTAPE_MAX_ISA", set, 1);
  const int code = run_program_to(NULL, arguments);
  former ? setenv("MIXTAPE_MAX_ISA", kept, 1) : unsetenv("MIXTAPE_MAX_ISA");
  if (code) print_error("%s", program_err);
  assert_int_equal(code, 0);
  json_t *object = json_loads(program_out, 0, NULL),
         *advice = json_array_get(json_object_get(object, "advice"), 0);
  assert_string_equal(json_string_value(json_object_get(advice, "policy")), policy);
  json_incref(advice);
  json_decref(object);
  return advice;
}
static const json_t *part_of(const json_t *advice, const char *layer, const char *part) {
  const json_t *rows = json_object_get(advice, "rows");
  for (size_t i = 0; i < json_array_size(rows); i++) {
    const json_t *row = json_array_get(rows, i);
    if (!strcmp(json_string_value(json_object_get(row, "layer")), layer) &&
        !strcmp(json_string_value(json_object_get(row, "part")), part))
      return row;
  }
  fail_msg("no row for %s, %s", layer, part);
  return NULL;
}
static const char *text(const json_t *row, const char *name) {
  return json_string_value(json_object_get(row, name));
}

/* Products multiplied in float32 cannot gain, and the reason says so. The policy does not change float32
 * layers. Dispatch bounds tiny products, memory bounds updates. Each verdict follows from its number. */
static void advice_follows_the_instruction_set(void **state) {
  (void)state;
  json_t *advice = advise("generic", "4096", "mixed_bfloat16");
  const json_t *row = part_of(advice, "dense_2", "forward");
  assert_non_null(strstr(text(row, "why"), "no instruction in force for bfloat16 products with exact sums"));
  assert_non_null(strstr(text(row, "kernel"), "gemm_bf16"));
  assert_string_not_equal(text(row, "verdict"), "gains");
  assert_true(number(advice, "step_gain") < 1.1);
  assert_non_null(strstr(text(part_of(advice, "dense_1", "update"), "why"), "memory-bound"));
  assert_string_equal(text(part_of(advice, "dense_1", "cast of the batch"), "verdict"), "extra");
  assert_string_equal(text(part_of(advice, "predictions", "Activation"), "verdict"), "even");
  const json_t *rows = json_object_get(advice, "rows");
  for (size_t i = 0; i < json_array_size(rows); i++) {
    const json_t *gain = json_object_get(json_array_get(rows, i), "gain");
    if (!json_is_number(gain)) continue;
    const double x = json_number_value(gain);
    assert_string_equal(text(json_array_get(rows, i), "verdict"), x >= 1.1    ? "gains"
                                                                  : x >= 0.95 ? "even"
                                                                              : "loses");
  }
  json_decref(advice);
  advice = advise(NULL, "16", "mixed_float16");
  assert_non_null(strstr(text(part_of(advice, "dense_logits", "forward"), "why"), "dispatch-bound"));
  json_decref(advice);
  if (!(mix_cpu_found() & MIX_CPU_AMX_BF16)) SKIP("this processor lacks AMX");
  advice = advise("amx", "4096", "mixed_bfloat16");
  assert_string_equal(text(part_of(advice, "dense_2", "forward"), "verdict"), "gains");
  assert_non_null(strstr(text(part_of(advice, "dense_2", "forward"), "kernel"), "amx"));
  assert_non_null(
      strstr(text(part_of(advice, "dense_logits", "forward"), "why"), "multiples of 32")); /* 10 columns */
  json_decref(advice);
  /* The reason comes from the kernel with these sums, not from one with others. */
  advice = advise("amx", "4096", "mixed_float16");
  assert_non_null(
      strstr(text(part_of(advice, "dense_logits", "forward"), "why"), "few columns, bound by reading A"));
  json_decref(advice);
}

static json_t *advice_for(const char *model, const char *batch) {
  const char *const arguments[] = {"bench", "--advise",     "--json", "--model",
                                   model,   "--batch-size", batch,    NULL};
  if (run_program_to(NULL, arguments)) fail_msg("%s", program_err);
  json_t *object = json_loads(program_out, 0, NULL), *advice = json_object_get(object, "advice");
  json_incref(advice);
  json_decref(object);
  return advice;
}

/* A convolution is the product of its patches: 3x3 of 16 channels, on images of 32 x 32. */
static void convolutions_are_advised(void **state) {
  (void)state;
  json_t *advice = advice_for("resnet56", "20");
  assert_int_equal(json_array_size(advice), 2);
  const json_t *row = part_of(json_array_get(advice, 0), "conv2_block1_1_conv", "gradient of kernel");
  static const int expected[] = {9 * 16, 16, 20 * 32 * 32};
  for (size_t i = 0; i < 3; i++)
    assert_int_equal(json_integer_value(json_array_get(json_object_get(row, "shape"), i)), expected[i]);
  assert_non_null(part_of(json_array_get(advice, 0), "conv2_block1_1_conv", "update"));
  assert_string_equal(text(json_array_get(advice, 0), "sizes"), ""); /* the 10 classes are float32 */
  json_decref(advice);
  assert_int_equal(
      run_program_to(NULL, (const char *const[]){"bench", "--advise", "--model", "resnet56", "--batch-size",
                                                 "20", "--policy", "mixed_bfloat16", NULL}),
      0);
  const char *why = strstr(program_out, "not estimated: only Dense layers and convolutions");
  assert_true(why && !strstr(why + 1, "not estimated"));
  assert_non_null(strstr(program_out, "the batch 20\n"));
}

/* A file's own 16-bit policy stands alone, because options do not change it. */
/* A machine with a GPU, as fakes of driver and plug-in tell. */
static json_t *advise_on_gpu(const char *gpu, const char *units, const char *policy) {
  const char *fakes = getenv("MIXTAPE_FAKE_PJRT");
  char path[600], command[1400];
  assert_non_null(fakes);
  snprintf(command, sizeof command,
           "cd %s && mkdir -p bin nvvm/libdevice && ln -sf /bin/true bin/ptxas && "
           "ln -sf /bin/true nvvm/libdevice/libdevice.10.bc",
           test_folder);
  assert_int_equal(system(command), 0);
  setenv("CUDA_HOME", test_folder, 1);
  snprintf(path, sizeof path, "%s/fake_cuda.so", fakes);
  setenv("MIXTAPE_PJRT_PLUGIN", path, 1);
  setenv("MIXTAPE_DEVICE", "cuda", 1);
  setenv("FAKE_GPUS", gpu, 1);
  setenv("FAKE_CUDA", "13000", 1);
  snprintf(path, sizeof path, "%s/fake_driver.so", fakes);
  setenv("LD_PRELOAD", path, 1);
  json_t *advice = advise(NULL, units, policy);
  unsetenv("LD_PRELOAD");
  unsetenv("MIXTAPE_DEVICE");
  unsetenv("MIXTAPE_PJRT_PLUGIN");
  return advice;
}
/* Tensor cores by compute capability and dtype; sizes that fit them. */
static void gpus_are_advised(void **state) {
  (void)state;
  if (UNDER_SANITIZER) SKIP("sanitizers must come before a library that is loaded first");
  if (strstr(mix_parts_left_out(), "xla")) SKIP("this library has no device cuda");
  json_t *advice = advise_on_gpu("NVIDIA H100:9.0:80", "4000", "mixed_bfloat16");
  assert_non_null(strstr(text(advice, "sizes"), "dense_1 units 4000"));
  json_decref(advice);
  advice = advise_on_gpu("Tesla T4:7.5:16", "4000", "mixed_bfloat16");
  assert_null(strstr(text(advice, "sizes"), "dense_1 units"));
  assert_non_null(strstr(text(part_of(advice, "dense_2", "forward"), "why"),
                         "no tensor cores for bfloat16: compute capability 7.5, and 8.0 is needed"));
  json_decref(advice);
  advice = advise_on_gpu("Tesla T4:7.5:16", "4096", "mixed_float16");
  assert_string_equal(text(part_of(advice, "dense_2", "forward"), "verdict"), "gains");
  assert_string_equal(text(advice, "verdict"), "gains");
  json_decref(advice);
  advice = advise_on_gpu("Tesla T4:7.5:16", "64", "mixed_float16");
  assert_non_null(strstr(text(part_of(advice, "dense_2", "forward"), "why"), "dispatch-bound"));
  assert_string_equal(text(advice, "verdict"), "even");
  json_decref(advice);
}

static void a_file_in_16_bits_is_advised_once(void **state) {
  (void)state;
  const char *file = in_folder("mixed.keras");
  MIX_SCOPE {
    mix_set_global_policy("mixed_float16");
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(5, 12));
    mix_model *model = mix_model_new(x, mix_call(mix_dense(.units = 7, .name = "seven"), x));
    assert_int_equal(mix_model_save(model, file), MIX_OK);
    mix_set_global_policy("float32");
  }
  json_t *advice = advice_for(file, "16");
  assert_int_equal(json_array_size(advice), 1);
  assert_string_equal(text(json_array_get(advice, 0), "policy"), "mixed_float16");
  assert_string_equal(text(json_array_get(advice, 0), "sizes"), "seven units 7");
  const json_t *shape = json_object_get(part_of(json_array_get(advice, 0), "seven", "forward"), "shape");
  assert_int_equal(json_integer_value(json_array_get(shape, 0)), 16 * 5);
  json_decref(advice);
}

static void a_policy_needs_advise(void **state) {
  (void)state;
  const char *const arguments[] = {"bench", "--quick", "--policy", "mixed_float16", NULL};
  assert_int_equal(run_program_to(NULL, arguments), 2);
  assert_non_null(strstr(program_err, "--advise"));
}

/* What feeds the model, beside a batch that stays; the files that were made are gone afterwards. */
static void epochs_by_what_feeds_them(void **state) {
  (void)state;
  static const struct {
    const char *name;
    size_t feeds;
  } parts[] = {{"arrays", 9}, {"rounded_arrays", 3}, {"images", 5}, {"text", 2}};
  if (strstr(mix_parts_left_out(), "images")) {
    assert_code(run_program("bench", "--quick", "--units", "8", "--only", "pipeline"), 1);
    assert_has(program_err, "-DMIXTAPE_IMAGES=ON");
    return;
  }
  assert_int_equal(mkdir(in_folder("temporary"), 0777), 0);
  setenv("TMPDIR", in_folder("temporary"), 1);
  json_t *object = mixtape_bench("pipeline"), *pipeline = json_object_get(object, "pipeline");
  unsetenv("TMPDIR");
  assert_int_equal(rmdir(in_folder("temporary")), 0);
  for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
    json_t *part = json_object_get(pipeline, parts[p].name), *feeds = json_object_get(part, "feeds");
    assert_int_equal(number(part, "batch_size"), 16);
    assert_int_equal(json_array_size(feeds), parts[p].feeds);
    for (size_t i = 0; i < parts[p].feeds; i++) {
      const json_t *row = json_array_get(feeds, i);
      assert_true(number(row, "best_step_seconds") > 0 &&
                  number(row, "step_seconds") >= number(row, "best_step_seconds"));
      assert_true(number(row, "examples_per_second") > 0 && number(row, "rate_to_resident") > 0);
    }
    assert_true(number(json_array_get(feeds, 0), "rate_to_resident") == 1);
  }
  const json_t *images = json_object_get(pipeline, "images");
  assert_true(number(images, "png_to_bound") > 0 && number(images, "jpeg_to_bound") > 0);
  json_decref(object);
}

static void rows_by_their_names(void **state) {
  (void)state;
  json_t *object = printed(run_program_to(
             NULL, (const char *const[]){"bench", SMALL, "--only", "layers", "--rows", "GRU, 64", NULL})),
         *layers = json_object_get(object, "layers");
  assert_int_equal(json_array_size(layers), 6); /* two passes in three policies */
  for (size_t i = 0; i < 6; i++)
    assert_has(json_string_value(json_object_get(json_array_get(layers, i), "layer")), "GRU, 64");
  json_decref(object);
  object =
      printed(run_benchmark("bench", (const char *const[]){"--quick", "--json", "--threads", "2", "--only",
                                                           "hub", "--rows", "BERT base, mixed", NULL}));
  const json_t *hub = json_object_get(object, "hub"), *row = json_array_get(hub, 0);
  assert_int_equal(json_array_size(hub), 1);
  assert_string_equal(json_string_value(json_object_get(row, "policy")), "mixed_bfloat16");
  assert_true(number(row, "step_seconds") > 0 && number(row, "plan_bytes") >= 4 * number(row, "parameters"));
  json_decref(object);
}

/* Tables of the benchmark program are unknown to `mixtape bench`. */
static void what_is_unknown_is_refused(void **state) {
  (void)state;
  assert_code(run_program("bench", "--only", "dispatch"), 2);
  assert_has(program_err, "'dispatch' given; expected steps|layers|pipeline\n");
  assert_code(run_program("bench", "--quick", "--only", "layers", "--rows", "GRUU"), 2);
  assert_has(program_err, "--rows: 'GRUU' is in the name of no row of layers");
  assert_code(run_program("bench", "--onyl", "steps"), 2);
  assert_has(program_err, "did you mean '--only'?");
}

static void the_benchmark_program_has_all_tables(void **state) {
  (void)state;
  static const struct {
    int code;
    const char *arguments[3], *says;
  } rows[] = {{0, {"--help"}, "start|steps|dispatch|"},
              {2, {"--only", "weather"}, "'weather' given; expected start|steps|dispatch|"},
              {2, {"--only"}, "expected start|steps|dispatch|"},
              {2, {"--advise"}, "belong to `mixtape bench`"},
              {2, {"--fast"}, "unknown option '--fast'"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_code(
        run_benchmark("bench", (const char *const[]){rows[i].arguments[0], rows[i].arguments[1], NULL}),
        rows[i].code);
    assert_has(rows[i].code ? program_err : program_out, rows[i].says);
  }
}

/* Loads a module with a whole library beside the program's own. */
static void versions_run_side_by_side(void **state) {
  (void)state;
  char module[1024];
  const char *bench = getenv("MIXTAPE_BENCH_PROGRAM");
  if (!bench) SKIP("the benchmark programs are not built");
  snprintf(module, sizeof module, "%.*scomparison.so", (int)(strrchr(bench, '/') + 1 - bench), bench);
  if (access(module, R_OK)) SKIP("the sanitizers do not support the module");
  assert_code(run_benchmark("versions", (const char *const[]){"--units", "8", "--batch-size", "16",
                                                              "--seconds", "0.1", module, module, NULL}),
              0);
  assert_has(program_out, "step, float32, 8 units, batch 16, 2 threads");
  assert_has(program_out, "times as fast as the first");
  assert_code(run_benchmark("versions", (const char *const[]){module, NULL}), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_of_each_policy),
      cmocka_unit_test(layers_of_each_policy),
      cmocka_unit_test(rows_by_their_names),
      cmocka_unit_test(figures_beside_their_goals),
      cmocka_unit_test(advice_follows_the_instruction_set),
      cmocka_unit_test(convolutions_are_advised),
      cmocka_unit_test(gpus_are_advised),
      cmocka_unit_test(a_file_in_16_bits_is_advised_once),
      cmocka_unit_test(a_policy_needs_advise),
      cmocka_unit_test(what_is_unknown_is_refused),
      cmocka_unit_test(the_benchmark_program_has_all_tables),
      cmocka_unit_test(dispatch_update_and_start),
      cmocka_unit_test(threads_that_plans_choose),
      cmocka_unit_test(epochs_by_what_feeds_them),
      cmocka_unit_test(versions_run_side_by_side),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
