/* `mixtape amp`: output, exit codes, messages. What is decided is tested in tests/spec/test_rewrite.c. */
#include "cli/program.h"

static const char graph[] =
    "{\"name\": \"g\", \"mode\": \"onednn_bfloat16\", \"gpu\": null, \"env\": {}, \"graph\": {\"fetch\": [], \"feed\": [], \"nodes\": ["
    "{\"name\": \"c\", \"op\": \"Const\", \"inputs\": [], \"device\": \"\", \"types\": {\"dtype\": {\"dtype\": \"float32\", \"inputs\": [], \"outputs\": [0],"
    "\"allowed\": [\"bfloat16\"], \"kernel\": {\"float16\": true, \"bfloat16\": true}}}},"
    "{\"name\": \"m\", \"op\": \"MatMul\", \"inputs\": [\"c\", \"c\"], \"device\": \"\", \"types\": {\"T\": {\"dtype\": \"float32\", \"inputs\": [0, 1],"
    "\"outputs\": [0], \"allowed\": [\"bfloat16\"], \"kernel\": {\"float16\": true, \"bfloat16\": true}}}}]}}";

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

static void rewrite(void **state) {
  (void)state;
  const char *file = in_folder("g.json"), *bad = in_folder("bad.json");
  write_text(file, graph);
  write_text(bad, "{\"name\": 1}");
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "rewrite", file, bad, file, NULL}), 1);
  static const char line[] =
      "{\"name\":\"g\",\"status\":\"ok\",\"nodes_added\":1,\"dtypes\":{\"m\":{\"T\":\"bfloat16\"}},\"casts\":[{\"id\":\"cast0\","
      "\"from\":\"c:0\",\"to_dtype\":\"bfloat16\",\"device\":\"\",\"consumers\":[[\"m\",0],[\"m\",1]]}]}\n";
  assert_int_equal(strncmp(program_out, line, sizeof line - 1), 0); /* the bad file between them stops nothing */
  assert_string_equal(program_out + sizeof line - 1, line);
  assert_non_null(strstr(program_err, "bad.json: has no text field name"));
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "rewrite", file, NULL}), 0);
  assert_string_equal(program_err, "");
}

static void explain(void **state) {
  (void)state;
  const char *file = in_folder("g.json");
  write_text(file, graph);
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", file, NULL}), 0);
  assert_string_equal(
      program_out,
      "node  op      list   type           before    after     reason\n"
      "c     Const   none   dtype          float32   float32   its op is in no list\n"
      "m     MatMul  allow  T              float32   bfloat16  its op is in the allow list\n"
      "\n"
      "onednn_bfloat16: ok; converted 1 of 2 nodes, inserted 1 casts (0 to bfloat16 besides those of constants and variables)\n");
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", "--json", file, NULL}), 0);
  json_t *report = json_loads(program_out, 0, NULL);
  assert_int_equal(json_array_size(json_object_get(report, "ops")), 2);
  json_decref(report);
}

/* An environment variable counts; an unknown one is warned of. */
static void environment(void **state) {
  (void)state;
  const char *file = in_folder("g.json");
  write_text(file, graph);
  setenv("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_ALLOWLIST_REMOVE", "MatMul", 1);
  setenv("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVELS", "3", 1);
  int code = run_program_to(NULL, (const char *[]){"amp", "rewrite", file, NULL});
  unsetenv("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_ALLOWLIST_REMOVE");
  unsetenv("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVELS");
  assert_int_equal(code, 0);
  assert_string_equal(program_out, "{\"name\":\"g\",\"status\":\"ok\",\"nodes_added\":0,\"dtypes\":{},\"casts\":[]}\n");
  assert_non_null(strstr(program_err, "nothing is called LEVELS"));
}

static void usage(void **state) {
  (void)state;
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", NULL}), 2);
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "repaint", "x", NULL}), 2);
  assert_non_null(strstr(program_err, "'repaint'"));
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "rewrite", NULL}), 2);
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "rewrite", "--jsn", "x", NULL}), 2);
  assert_non_null(strstr(program_err, "'--jsn'"));
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "rewrite", "--json", "x", NULL}), 2);
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "rewrite", "/nowhere.json", NULL}), 1);
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "--help", NULL}), 0);
  assert_non_null(strstr(program_out, "explain"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rewrite),
      cmocka_unit_test(explain),
      cmocka_unit_test(environment),
      cmocka_unit_test(usage),
  };
  return cmocka_run_group_tests(tests, program_begin, program_end);
}
