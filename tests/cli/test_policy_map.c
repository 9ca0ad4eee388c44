/* `--policy-map`: files and named models with a policy for each layer; the map that tune-precision writes. */
#include "cli/program.h"
#include "support/skip.h"
#include "train/tune_support.h"
#include <mixtape/saving.h>

/* In a static place: the test's folder names few files at a time. */
static const char *write_text(const char *name, const char *text) {
  static char path[512];
  snprintf(path, sizeof path, "%s", in_folder(name));
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
  return path;
}

/* A float32 model of Keras 3 and its data, in the test's folder. */
static void make_files(char **model, char **data) {
  mix_tensor *x, *y;
  static char paths[2][512];
  snprintf(paths[0], sizeof paths[0], "%s", in_folder("pair.keras"));
  snprintf(paths[1], sizeof paths[1], "%s", in_folder("pair.npz"));
  *model = paths[0], *data = paths[1];
  mix_set_semantics("keras3");
  mix_set_global_policy("float32");
  assert_int_equal(mix_model_save(model_with_a_pair(NULL, NULL), *model), MIX_OK);
  pair_data(320, 0, &x, &y);
  assert_int_equal(mix_npz_save(*data, 2, (const char *const[]){"x", "y"}, (mix_tensor *[]){x, y}), MIX_OK);
}

static const char map_text[] =
    "{\"default_policy\": \"mixed_bfloat16\", \"policy_map\": {\"up|down\": \"float32\"}}";

static void a_file_trains_under_a_map_and_keeps_it(void **state) {
  (void)state;
  char *model, *data;
  make_files(&model, &data);
  const char *map = write_text("map.json", map_text), *saved = in_folder("trained.keras");
  assert_code(run_program("train", "--model", model, "--data", data, "--verbose", "0", "--policy-map", map,
                          "--save", saved),
              0);
  mix_model *trained = mix_model_load(saved);
  assert_no_error();
  static const struct {
    const char *layer, *policy;
  } expected[] = {
      {"before", "mixed_bfloat16"}, {"up", "float32"}, {"down", "float32"}, {"after", "mixed_bfloat16"}};
  for (int i = 0; i < 4; i++) {
    mix_layer *layer = mix_model_get_layer(trained, expected[i].layer);
    assert_string_equal(mix_policy_name(mix_layer_policy(layer)), "map_mixed_bfloat16");
    assert_string_equal(mix_policy_name(mix_layer_matched_policy(layer)), expected[i].policy);
  }
  assert_code(run_program("evaluate", "--model", saved, "--data", data, "--verbose", "0"), 0);
  assert_code(run_program("summary", "--model", saved), 0);
  assert_has(program_err, "Policy: map_mixed_bfloat16;");
  assert_has(program_err, "Policies by layer:\n  before ");
  assert_has(program_err, " mixed_bfloat16\n  up                             float32\n");
}

static void predict_evaluate_and_convert_take_one(void **state) {
  (void)state;
  char *model, *data;
  make_files(&model, &data);
  const char *map = write_text("map.json", map_text), *converted = in_folder("converted.keras");
  assert_code(run_program("predict", "--model", model, "--data", data, "--output", in_folder("a.npz"),
                          "--policy-map", map),
              0);
  assert_code(
      run_program("evaluate", "--model", model, "--data", data, "--verbose", "0", "--policy-map", map), 0);
  assert_code(run_program("convert", model, converted, "--policy-map", map), 0);
  assert_code(run_program("predict", "--model", converted, "--data", data, "--output", in_folder("b.npz")),
              0);
  assert_code(run_program("predict", "--model", model, "--data", data, "--output", in_folder("c.npz")), 0);
  mix_npz *a = mix_npz_open(in_folder("a.npz")), *b = mix_npz_open(in_folder("b.npz")),
          *c = mix_npz_open(in_folder("c.npz"));
  assert_no_error();
  mix_tensor *of_a = mix_npz_get(a, mix_npz_name(a, 0)), *of_b = mix_npz_get(b, mix_npz_name(b, 0)),
             *of_c = mix_npz_get(c, mix_npz_name(c, 0));
  bool differs = false;
  for (int64_t i = 0; i < 20; i++) {
    assert_near(at(of_b, i), at(of_a, i), 0);
    differs |= at(of_c, i) != at(of_a, i);
  }
  assert_true(differs);
}

static void a_named_model_takes_one(void **state) {
  (void)state;
  const char *map =
      write_text("guide.json", "{\"default_policy\": \"float32\", \"policy_map\": {\"dense_1\": "
                               "\"mixed_bfloat16\", \"dens_2\": \"mixed_float16\"}}");
  assert_code(run_program("summary", "--units", "8", "--policy-map", map), 0);
  assert_has(program_out, "  dense_1                        mixed_bfloat16\n");
  assert_code(run_program("train", "--units", "8", "--data", "digits", "--verbose", "0", "--policy-map", map),
              0);
  assert_has(program_err, "the key 'dens_2' of the policy map 'map_float32' matches no layer");
}

static void bad_maps(void **state) {
  (void)state;
  char *model, *data;
  make_files(&model, &data);
  const char *map = write_text("map.json", map_text);
  assert_code(run_program("train", "--policy-map", map, "--policy", "float32"), 2);
  assert_has(program_err, "has a policy for every layer, and --policy or --dtype is float32; give one");
  assert_code(run_program("train", "--policy-map", map, "--semantics", "tf_keras"), 2);
  assert_has(program_err, "--policy-map is of Keras 3, and --semantics is tf_keras; expected keras3");
  assert_code(
      run_program("predict", "--model", model, "--data", data, "--policy-map", in_folder("none.json")), 1);
  assert_has(program_err, "cannot open");
  static const char *const rows[][2] = {
      {"{\"policy_map\": {\"up\": \"float99\"}}", "bad.json: policy: 'float99' cannot be converted"},
      {"{\"policy_map\": 3}", "policy_map is an integer"},
      {"{\"policy_map\": {\"*\": \"float32\"}}", "'*' is no valid regular expression: nothing to repeat"},
      {"{\"policy_map\": {\"(?=u).*\": \"float32\"}}", "which this library does not match"},
      {"{\"policy_map\": {\"u.*\": \"float32\", \".p\": \"float32\"}}",
       "the path 'up' matches several keys: ['u.*', '.p']"},
      {"{\"policy_map\": {\"up\": \"float32\", \"up\": \"float32\"}}", "duplicate"},
      {"[", "bad.json"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *bad = write_text("bad.json", rows[i][0]);
    assert_code(run_program("predict", "--model", model, "--data", data, "--policy-map", bad), 1);
    assert_has(program_err, rows[i][1]);
  }
}

static void tuning_writes_one(void **state) {
  (void)state;
  char *model, *data;
  make_files(&model, &data);
  const char *map = in_folder("tuned.json");
  assert_code(run_program("tune-precision", "--model", model, "--data", data, "--epochs", "3", "--batch-size",
                          "16", "--validation-split", "0.2", "--save-policy-map", map),
              0);
  assert_has(program_out, "or, in Keras 3, a map of policies, DTypePolicyMap or --policy-map FILE.json with "
                          "--loss-scale dynamic:\n  {\"default_policy\": \"mixed_float16\", \"policy_map\": "
                          "{\"up(/.*)?\": \"float32\", \"down(/.*)?\": \"float32\"}}\n");
  assert_code(run_program("train", "--model", model, "--data", data, "--verbose", "0", "--policy-map", map,
                          "--loss-scale", "dynamic", "--save", in_folder("trained.keras")),
              0);
  mix_model *trained = mix_model_load(in_folder("trained.keras"));
  assert_no_error();
  assert_int_equal(mix_layer_compute_dtype(mix_model_get_layer(trained, "up")), MIX_FLOAT32);
  assert_int_equal(mix_layer_compute_dtype(mix_model_get_layer(trained, "after")), MIX_FLOAT16);
  assert_true(mix_optimizer_dynamic(mix_model_optimizer(trained)));
}

/* The layer of a report has one, too. */
static void numerics_suggests_one(void **state) {
  (void)state;
  char *model, *data;
  make_files(&model, &data);
  run_program("numerics", "--model", model, "--data", data, "--policy", "mixed_float16", "--batch-size",
              "16");
  assert_has(program_out,
             "or in a file of --policy-map {\"default_policy\": \"mixed_float16\", \"policy_map\": {\"");
}

/* ---- the recorded cases ---- */

static const char *case_path(const char *name, const char *end) {
  static char paths[4][1024];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/precision/map-%s%s", getenv("MIXTAPE_REFERENCE_DIR"), name, end);
  return path;
}

static void check_losses(const char *name, const char *log) {
  json_t *recorded = json_load_file(case_path(name, ".json"), 0, NULL), *losses, *line;
  losses = json_object_get(recorded, "losses");
  FILE *file = fopen(log, "r");
  char text[4096];
  size_t step = 0;
  while (file && fgets(text, sizeof text, file)) {
    line = json_loads(text, 0, NULL);
    const json_t *loss = json_object_get(line, "loss");
    if (loss) {
      const double expected = json_number_value(json_array_get(losses, step++));
      if (!(fabs(json_number_value(loss) - expected) <= 3e-2 * (double)step * fabs(expected)))
        fail_msg("%s: loss %zu is %g; Keras has %g", name, step, json_number_value(loss), expected);
    }
    json_decref(line);
  }
  assert_non_null(file);
  fclose(file);
  assert_int_equal(step, json_array_size(losses));
  json_decref(recorded);
}

static void recorded_cases(void **state) {
  (void)state;
  static const char *const cases[] = {"exact",   "regex", "att", "default16", "inner-path-misses",
                                      "float64", "float8"};
  FILE *file = getenv("MIXTAPE_REFERENCE_DIR") ? fopen(case_path("exact", ".json"), "r") : NULL;
  if (!file) SKIP("MIXTAPE_REFERENCE_DIR has no precision/map-exact.json");
  fclose(file);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_code(run_program("train", "--model", case_path(cases[i], ".keras"), "--data",
                            case_path(cases[i], ".npz"), "--policy-map",
                            case_path(cases[i], ".policy-map.json"), "--batch-size", "6", "--epochs", "5",
                            "--no-shuffle", "--accumulate", "exact", "--verbose", "0", "--step-log",
                            in_folder("steps.jsonl")),
                0);
    check_losses(cases[i], in_folder("steps.jsonl"));
  }
  assert_code(run_program("predict", "--model", case_path("inner-path-misses", ".keras"), "--data",
                          case_path("inner-path-misses", ".npz"), "--output", in_folder("p.npz"),
                          "--policy-map", case_path("inner-path-misses", ".policy-map.json")),
              0);
  assert_has(program_err, "the key 'inner/.*' of the policy map 'map_mixed_bfloat16' matches no layer");
  assert_has(program_err, "the key 'outer/.*' of the policy map 'map_mixed_bfloat16' matches no layer");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(a_file_trains_under_a_map_and_keeps_it),
                                     TEST(predict_evaluate_and_convert_take_one),
                                     TEST(a_named_model_takes_one),
                                     TEST(bad_maps),
                                     TEST(tuning_writes_one),
                                     TEST(numerics_suggests_one),
                                     TEST(recorded_cases)};
  return cmocka_run_group_tests_name("policy map", tests, folder_begin, folder_end);
}
