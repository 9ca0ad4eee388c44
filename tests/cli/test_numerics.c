/* `mixtape numerics`: the report of the guide's model on the built-in digits, its output formats, and
 * errors. */
#include "cli/program.h"
#include "support/count.h"
#include "support/skip.h"

#define DIGITS "--data", "digits", "--units", "16", "--batch-size", "64", "--seed", "1"

static void a_table_for_people(void **state) {
  (void)state;
  assert_code(run_program("numerics", DIGITS, "--policy", "mixed_float16", "--steps", "4"), 0);
  static const char *const parts[] = {
      "Numerics of 4 steps, policy mixed_float16, dynamic loss scale 32768; 0 skipped",
      "Verdict: healthy",
      "inputs/data",
      "dense_1/kernel",
      "dense_logits/output",
      "predictions/output",
      "loss/scaled_loss",
      "Gradients of the scaled loss"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) assert_has(program_out, parts[i]);
  assert_null(strstr(program_out, "dense_1/bias_add"));
  assert_code(run_program("numerics", DIGITS, "--policy", "mixed_float16", "--steps", "1", "--all"), 0);
  assert_has(program_out, "dense_1/bias_add");
}

static bool draws(void) { return !strstr(mix_parts_left_out(), "drawing"); }

/* The signature, and the sides in the first chunk, the highest byte first. */
static void check_picture(const char *path) {
  static const unsigned char begin[16] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
  unsigned char found[24];
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fread(found, 1, sizeof found, file), sizeof found);
  fclose(file);
  assert_memory_equal(found, begin, sizeof begin);
  assert_true(found[16] == 0 && found[17] == 0 && (found[18] << 8 | found[19]) > 1000);
  assert_true(found[20] == 0 && found[21] == 0 && (found[22] << 8 | found[23]) > 500);
}

static void json_for_programs_and_a_picture(void **state) {
  (void)state;
  char *path = in_folder("report.png");
  assert_code(run_program("numerics", DIGITS, "--policy", "mixed_float16", "--loss-scale", "dynamic:1e9",
                          "--steps", "25", "--json", draws() ? "--png" : NULL, path),
              0);
  json_t *root = printed_object(), *verdict = json_object_get(root, "verdict");
  assert_int_equal(json_integer_value(json_object_get(root, "steps")), 25);
  assert_string_equal(json_string_value(json_object_get(verdict, "status")), "settled");
  assert_true(json_integer_value(json_object_get(root, "skipped")) > 3);
  assert_int_equal(json_array_size(json_object_get(root, "events")),
                   json_integer_value(json_object_get(root, "skipped")));
  json_decref(root);
  if (draws()) check_picture(path);
  assert_code(run_program("numerics", DIGITS, "--format", "json", "--steps", "1"), 0);
  json_decref(printed_object());
}

/* The table says the same as this row of the JSON. */
static void has_row(const char *table, const json_t *row) {
  char line[128];
  const double numbers = json_number_value(json_object_get(row, "numbers")),
               saturated = json_number_value(json_object_get(row, "saturated_share")),
               flushed = json_number_value(json_object_get(row, "flushed_share"));
  snprintf(line, sizeof line, "  %-28s %-10s %12.0f %9.3f%% %9.3f%%\n",
           json_string_value(json_object_get(row, "layer")),
           json_string_value(json_object_get(row, "operand")), numbers, 100 * saturated, 100 * flushed);
  assert_has(table, line);
  assert_true(json_number_value(json_object_get(row, "saturated")) == nearbyint(saturated * numbers));
  assert_true(json_number_value(json_object_get(row, "flushed")) == nearbyint(flushed * numbers));
}

/* The graph's products alone are simulated: inputs, kernels and gradients of three Dense layers. */
static void shares_of_a_simulated_format(void **state) {
  (void)state;
  assert_code(run_program("numerics", DIGITS, "--policy", "mixed_bfloat16", "--steps", "2", "--simulate",
                          "nvfp4", "--stochastic-rounding", "--simulate-except", "dense_2"),
              0);
  assert_has(program_out, "Simulated nvfp4");
  const char *table = strstr(program_out, "Simulated nvfp4");
  static const char *const parts[] = {"dense_1", "dense_logits", "input", "kernel", "gradient", "flushed"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) assert_has(table, parts[i]);
  assert_null(strstr(table, "dense_2"));
  static char printed[1 << 16];
  snprintf(printed, sizeof printed, "%s", table);
  assert_code(run_program("numerics", DIGITS, "--policy", "mixed_bfloat16", "--steps", "2", "--simulate",
                          "nvfp4", "--stochastic-rounding", "--simulate-except", "dense_2", "--json"),
              0);
  json_t *root = printed_object(), *of = json_object_get(root, "simulated");
  assert_string_equal(json_string_value(json_object_get(of, "format")), "nvfp4");
  assert_true(json_is_true(json_object_get(of, "stochastic_rounding")));
  const json_t *rows = json_object_get(of, "operands");
  assert_int_equal(json_array_size(rows), count_of(printed, "%\n"));
  for (size_t i = 0; i < json_array_size(rows); i++) has_row(printed, json_array_get(rows, i));
  json_decref(root);
  assert_code(run_program("numerics", DIGITS, "--steps", "1", "--json"), 0);
  root = printed_object();
  assert_true(json_is_null(json_object_get(root, "simulated")));
  json_decref(root);
  for (int json = 0; json < 2; json++) {
    assert_code(run_program("numerics", DIGITS, "--policy", "float32", "--steps", "1", "--simulate", "mxfp8",
                            json ? "--json" : "--all"),
                0);
    assert_has(program_err, "--simulate mxfp8 rounded nothing: no product of the model has operands in 16 "
                            "bits; expected a policy such as --policy mixed_bfloat16");
    assert_null(strstr(program_out, "Simulated mxfp8"));
  }
  assert_code(run_program("numerics", DIGITS, "--policy", "mixed_bfloat16", "--steps", "1", "--simulate",
                          "mxfp8", "--simulate-except", "dense_1,dense_2,dense_logits"),
              0);
  assert_has(program_err, "in 16 bits outside the layers of --simulate-except");
  assert_code(run_program("numerics", DIGITS, "--stochastic-rounding"), 2);
  assert_has(program_err, "--stochastic-rounding needs --simulate");
  assert_code(run_program("numerics", DIGITS, "--simulate", "mxfp8", "--device", "ref"), 2);
  assert_has(program_err, "--simulate runs on --device cpu");
  assert_code(run_program("numerics", DIGITS, "--simulate", "mxfp8", "--device", "xla:/nonexistent.so"), 2);
  assert_has(program_err, "--simulate runs on --device cpu, and the device is xla:/nonexistent.so");
}

/* What the loader takes for cairo is none. It is looked for before training. */
static void without_cairo_only_pictures_are_missing(void **state) {
  (void)state;
  if (!draws()) SKIP("this build leaves out pictures");
  FILE *file = fopen(in_folder("libcairo.so.2"), "w");
  assert_non_null(file);
  fputs("no library", file);
  fclose(file);
  setenv("LD_LIBRARY_PATH", test_folder, 1);
  assert_code(run_program("numerics", DIGITS, "--steps", "1", "--png", in_folder("none.png")), 1);
  assert_has(program_err, "numerics_report: pictures are drawn by the library cairo, which cannot be loaded");
  assert_has(program_err, "libcairo2");
  assert_string_equal(program_out, "");
  assert_int_equal(access(in_folder("none.png"), F_OK), -1);
  assert_code(run_program("numerics", DIGITS, "--steps", "1"), 0);
  unsetenv("LD_LIBRARY_PATH");
  forget("libcairo.so.2");
}

/* A scale that never changes is one number, not the same one at both ends. */
static void an_axis_of_a_flat_curve(void **state) {
  (void)state;
  char *path = in_folder("flat.html");
  static char page[1 << 20];
  assert_code(run_program("numerics", DIGITS, "--policy", "mixed_float16", "--loss-scale", "1024", "--steps",
                          "3", "--json", "--html", path),
              0);
  read_text(path, page, sizeof page);
  char *curve = strstr(page, "<svg id=\"scale\"");
  assert_non_null(curve);
  *strstr(curve, "</svg>") = 0;
  assert_int_equal(count_of(curve, ">1024</text>"), 1);
  char *loss = strstr(page, "<svg id=\"loss\"");
  *strstr(loss, "</svg>") = 0;
  assert_int_equal(count_of(loss, "<text x=\"726\""), 2);
}

/* One file, which names no other; a strip for each row, a dot in both curves for each skipped step. */
static void a_page_by_itself(void **state) {
  (void)state;
  char *path = in_folder("report.html");
  static char page[1 << 20];
  assert_code(run_program("numerics", DIGITS, "--policy", "mixed_float16", "--loss-scale", "dynamic:1e9",
                          "--steps", "25", "--json", "--html", path),
              0);
  json_t *root = printed_object(), *verdict = json_object_get(root, "verdict");
  read_text(path, page, sizeof page);
  static const char *const outside[] = {"http", "src=", "href=", "url(", "<script", "@import"};
  for (int i = 0; i < 6; i++) assert_null(strstr(page, outside[i]));
  const int skipped = (int)json_integer_value(json_object_get(root, "skipped"));
  assert_int_equal(count_of(page, "class=\"skipped\""), 2 * skipped);
  assert_has(page, "<svg id=\"loss\"");
  assert_has(page, "<svg id=\"scale\"");
  assert_has(page, json_string_value(json_object_get(verdict, "text")));
  json_t *advice = json_object_get(verdict, "advice");
  assert_true(json_array_size(advice) > 0);
  assert_has(page, json_string_value(json_object_get(json_array_get(advice, 0), "text")));
  assert_int_equal(count_of(page, "<svg"), count_of(page, "</svg>"));
  /* each strip begins with its background; another one is in the legend */
  assert_true(count_of(page, ">f16</text>") > 10);
  assert_int_equal(count_of(page, "fill=\"#dedede\""),
                   1 + count_of(page, ">f16</text>") + count_of(page, ">f32</text>"));
  assert_has(page, ">dense_1/kernel</text>");
  json_decref(root);
  assert_code(run_program("numerics", DIGITS, "--html", "/nonexistent/report.html"), 1);
  assert_has(program_err, "--html: cannot write '/nonexistent/report.html'");
  assert_code(run_program("numerics", DIGITS, "--html", "report.txt"), 2);
}

/* The weights of a run with the callback and of one without are the same bytes. */
static void train_with_the_callback_is_the_same_training(void **state) {
  (void)state;
  char with[600], *a = in_folder("a.npz"), *b = in_folder("b.npz");
  static unsigned char bytes[2][1 << 20];
  snprintf(with, sizeof with, "numerics_report:table=%s%s%s", in_folder("t.txt"), draws() ? ",png=" : "",
           draws() ? in_folder("t.png") : "");
  assert_code(run_program("train", DIGITS, "--policy", "mixed_float16", "--steps", "9", "--save", a), 0);
  assert_code(run_program("train", DIGITS, "--policy", "mixed_float16", "--steps", "9", "--save", b,
                          "--callback", with),
              0);
  size_t sizes[2];
  for (int i = 0; i < 2; i++) {
    FILE *file = fopen(i ? b : a, "rb");
    assert_non_null(file);
    sizes[i] = fread(bytes[i], 1, sizeof bytes[i], file);
    fclose(file);
  }
  assert_int_equal(sizes[0], sizes[1]);
  mix_scope *scope = mix_scope_begin();
  mix_npz *x = mix_npz_open(a), *y = mix_npz_open(b);
  static const char *const names[] = {"dense_1/kernel", "dense_2/bias", "dense_logits/kernel"};
  for (int i = 0; i < 3; i++) {
    mix_tensor *p = mix_npz_require(x, names[i]), *q = mix_npz_require(y, names[i]);
    assert_int_equal(mix_error(), MIX_OK);
    assert_memory_equal(mix_tensor_data(p), mix_tensor_data(q),
                        4 * (size_t)mix_shape_size(mix_tensor_shape(p)));
  }
  mix_scope_end(scope);
  read_text(in_folder("t.txt"), program_out, sizeof program_out);
  assert_has(program_out, "Numerics of 9 steps");
}

static void errors(void **state) {
  (void)state;
  assert_code(run_program("numerics", "--steps", "0"), 2);
  assert_code(run_program("numerics", "--format", "xml"), 2);
  assert_code(run_program("numerics", "--every", "-1"), 2);
  assert_code(run_program("numerics", "--epochs", "2"), 2);
  assert_code(run_program("numerics", DIGITS, "--png", "/nowhere/x.png"), 1);
  assert_has(program_err, "/nowhere/x.png");
  assert_has(program_err, "cannot write");
  assert_string_equal(program_out, "");
  assert_code(run_program("numerics", "--help"), 0);
  assert_has(program_out, "--png FILE.png");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_table_for_people),
      cmocka_unit_test(a_page_by_itself),
      cmocka_unit_test(an_axis_of_a_flat_curve),
      cmocka_unit_test(json_for_programs_and_a_picture),
      cmocka_unit_test(shares_of_a_simulated_format),
      cmocka_unit_test(without_cairo_only_pictures_are_missing),
      cmocka_unit_test(train_with_the_callback_is_the_same_training),
      cmocka_unit_test(errors),
  };
  return cmocka_run_group_tests_name("cli/numerics", tests, folder_begin, folder_end);
}
