/* Reading graphs in the recorded format: what is damaged or unknown is an error that names the file and the node. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "io/rewrite_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char good[] =
    "{\"name\": \"g\", \"mode\": \"cuda_float16\", \"target\": \"float16\", \"gpu\": {\"architecture\": \"8.0\", \"cuda\": \"11050\", \"cudnn\": \"8302\"},\n"
    " \"env\": {\"LEVEL\": \"\"}, \"note\": \"n\", \"graph\": {\"fetch\": [\"f\"], \"feed\": [], \"nodes\": [\n"
    " {\"name\": \"c\", \"op\": \"Const\", \"inputs\": [], \"device\": \"gpu\", \"types\": {\"dtype\": {\"dtype\": \"float32\", \"inputs\": [], \"outputs\": [0],"
    " \"allowed\": [\"float16\", \"float32\"], \"kernel\": {\"float16\": true, \"bfloat16\": true}}}, \"value\": {\"shape\": [2]}},\n"
    " {\"name\": \"m\", \"op\": \"MatMul\", \"inputs\": [\"c\", \"c:0\"], \"device\": \"gpu\", \"types\": {\"T\": {\"dtype\": \"float32\", \"inputs\": [0, 1],"
    " \"outputs\": [0], \"allowed\": [\"float16\", \"float32\"], \"kernel\": {\"float16\": true, \"bfloat16\": true}}}, \"attrs\": {\"t\": false}},\n"
    " {\"name\": \"f\", \"op\": \"Identity\", \"inputs\": [\"m\", \"^c\"], \"device\": \"\", \"types\": {\"T\": {\"dtype\": \"float32\", \"inputs\": [0],"
    " \"outputs\": [0], \"allowed\": [\"float16\", \"float32\"], \"kernel\": {\"float16\": true, \"bfloat16\": true}}}}]}, \"expected\": {}}";

/* The good text with one piece, the `turn`-th of its kind, replaced. */
static char *changed(const char *from, int turn, const char *to) {
  const char *at = good;
  for (int i = 0; (at = strstr(at, from)) && i < turn; i++) at++;
  assert_non_null(at);
  char *text = malloc(sizeof good + strlen(to));
  sprintf(text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
  return text;
}

static void refused(void **state) {
  (void)state;
  static const struct {
    const char *from;
    int turn;
    const char *to, *message;
  } rows[] = {
      {"\"name\": \"g\"", 0, "\"nam\": \"g\"", "g.json: the file has the unknown field \"nam\"; there are name, mode"},
      {"\"name\": \"g\", ", 0, "", "g.json: has no text field name"},
      {"cuda_float16", 0, "cuda", "there is no mode \"cuda\""},
      {"\"target\": \"float16\"", 0, "\"target\": \"bfloat16\"",
       "target is \"bfloat16\", but that of the mode cuda_float16 is float16"},
      {"\"cudnn\"", 0, "\"rocm\"", "gpu has the unknown field \"rocm\""},
      {"\"11050\"", 0, "11050", "expected a text in gpu.cuda"},
      {"\"LEVEL\": \"\"", 0, "\"LEVEL\": 3", "expected a text in env.LEVEL"},
      {"\"LEVEL\": \"\"", 0, "\"EMULATE_FP16\": \"2\"", "EMULATE_FP16 is \"2\""},
      {"\"fetch\": [\"f\"]", 0, "\"fetch\": [\"x\"]", "graph.fetch names 'x'"},
      {"\"feed\": []", 0, "\"feed\": 0", "has no list feed"},
      {"\"name\": \"m\"", 0, "\"name\": \"c\"", "two nodes are named 'c'"},
      {"\"name\": \"m\"", 0, "\"name\": \"m:1\"", "no name of a node: m:1"},
      {"\"op\": \"MatMul\", ", 0, "", "node 'm': has no text field op"},
      {"\"op\": \"MatMul\"", 0, "\"op\": \"MatMul\", \"operation\": 1", "node 'm': it has the unknown field \"operation\""},
      {"\"c:0\"", 0, "\"c:1\"", "node 'm': input 1 reads 'c:1', but Const 'c' has 1 outputs"},
      {"\"c:0\"", 0, "\"c:99999999999\"", "node 'm': no output number in the input c:99999999999"},
      {"\"c:0\"", 0, "\"c:\"", "node 'm': no output number in the input c:"},
      {"\"c:0\"", 0, "\"x\"", "node 'm': there is no node for its input x"},
      {"[\"m\", \"^c\"]", 0, "[\"m\", \"^x\"]", "node 'f': there is no node for its input ^x"},
      {"[\"m\", \"^c\"]", 0, "[\"^c\", \"m\"]", "node 'f': control inputs come last, but behind one stands m"},
      {"[\"m\", \"^c\"]", 0, "[]", "node 'f': type T has input 0, but Identity has 0 data inputs"},
      {"[\"m\", \"^c\"]", 0, "[\"m\", \"c\"]", "node 'f': input 1 of Identity has no type"},
      {"[\"m\", \"^c\"]", 0, "[\"f\"]", "node 'f' (Identity) depends on itself"},
      {"\"dtype\": \"float32\"", 1, "\"dtype\": \"float31\"", "node 'm': there is no dtype float31"},
      {"\"dtype\": \"float32\"", 1, "\"dtype\": \"float64\"",
       "node 'm': input 0 of MatMul is float64 (T), but 'c:0' gives float32"},
      {"\"T\": {", 0, "\"=int32\": {", "node 'm': a type has the unknown field \"allowed\"; there are dtype, inputs, outputs"},
      {"\"outputs\": [0]", 1, "\"outputs\": [-1]", "node 'm': expected port numbers in outputs"},
      {"\"outputs\": [0]", 1, "\"outputs\": [0, 0]", "node 'm': output 0 has two types, T and T"},
      {"\"outputs\": [0]", 1, "\"outputs\": [1]", "node 'm': type T has output 1, but MatMul has 1 data outputs"},
      {"[\"float16\", \"float32\"]", 1, "[\"float16\", \"int8\"]",
       "node 'm': expected float16, bfloat16, float32 or float64 in allowed, not int8"},
      {"\"bfloat16\": true", 1, "\"bfloat16\": 1", "node 'm': expected true or false in kernel.bfloat16"},
      {", \"kernel\": {\"float16\": true, \"bfloat16\": true}", 1, "", "node 'm': has no object kernel"},
      {"\"attrs\": {", 0, "\"stateful\": 1, \"attrs\": {", "node 'm': expected true or false in stateful"},
      {"\"attrs\": {", 0, "\"renamed\": {\"op\": \"B\"}, \"attrs\": {", "node 'm': has no object types"},
      {"\"attrs\": {", 0, "\"renamed\": {\"op\": \"B\", \"types\": {}}, \"attrs\": {",
       "node 'm': MatMul has 1 outputs, but B, which it is renamed to, has 0"},
      {"\"note\": \"n\"", 0, "\"note\": \"n\", \"note\": \"m\"", "duplicate"},
      {"\"expected\": {}}", 0, "\"expected\": {}", "g.json: line 5"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    MIX_SCOPE {
      char *text = changed(rows[i].from, rows[i].turn, rows[i].to);
      assert_null(mix_rewrite_read_memory("g.json", text, strlen(text), NULL));
      if (!strstr(mix_error_message(), rows[i].message))
        fail_msg("row %d: \"%s\", expected \"%s\"", (int)i, mix_error_message(), rows[i].message);
      mix_error_clear();
      free(text);
    }
}

static void files(void **state) {
  (void)state;
  assert_null(mix_rewrite_read("/nowhere/g.json", NULL));
  assert_int_equal(mix_error(), MIX_IO_ERROR);
  assert_non_null(strstr(mix_error_message(), "/nowhere/g.json"));
  mix_error_clear();
}

/* What the file says beats what was said before. */
static void options_of_a_file(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_amp_options base = {.level = MIX_AMP_UNSAFE_FORCE_ALL, .mode = MIX_AMP_CPU_FLOAT16, .no_emulation = true};
    base.edits[MIX_AMP_EDIT_CLEAR].add = "Sin";
    mix_rewrite_case *item = mix_rewrite_read_memory("g.json", good, strlen(good), &base);
    assert_non_null(item);
    assert_string_equal(item->name, "g");
    assert_int_equal(item->options.mode, MIX_AMP_CUDA_FLOAT16);
    assert_int_equal(item->options.level, MIX_AMP_LEVEL_NORMAL);
    assert_string_equal(item->options.edits[MIX_AMP_EDIT_CLEAR].add, "Sin");
    assert_true(item->options.has_gpu && item->options.no_emulation);
    assert_int_equal(item->options.architecture[0], 8);
    assert_int_equal(item->options.cudnn, 8302);
    mix_amp_result *result = mix_amp_rewrite(item->graph, &item->options);
    char *text = mix_rewrite_result_text(item, result);
    assert_string_equal(
        text, "{\"name\":\"g\",\"status\":\"ok\",\"nodes_added\":2,\"dtypes\":{\"m\":{\"T\":\"float16\"}},\"casts\":["
              "{\"id\":\"cast0\",\"from\":\"c:0\",\"to_dtype\":\"float16\",\"device\":\"gpu\",\"consumers\":[[\"m\",0],[\"m\",1]]},"
              "{\"id\":\"cast1\",\"from\":\"m:0\",\"to_dtype\":\"float32\",\"device\":\"gpu\",\"consumers\":[[\"f\",0]]}]}");
    mix_free(text);
    text = mix_rewrite_explain_text(item, result);
    assert_non_null(strstr(
        text, "{\"name\":\"m\",\"op\":\"MatMul\",\"list\":\"allow\",\"types\":{\"T\":{\"before\":\"float32\",\"after\":\"float16\","
              "\"reason\":\"its op is in the allow list\"}}}"));
    mix_free(text);
  }
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  bool whole = false;
  for (int64_t k = 0; !whole; k++) {
    assert_true(k < 10000);
    MIX_SCOPE {
      mix_inject_allocation_failure(k);
      mix_rewrite_case *item = mix_rewrite_read_memory("g.json", good, strlen(good), NULL);
      mix_amp_result *result = item ? mix_amp_rewrite(item->graph, &item->options) : NULL;
      char *text = mix_rewrite_result_text(item, result), *explained = mix_rewrite_explain_text(item, result);
      mix_inject_allocation_failure(-1);
      whole = text && explained;
      assert_int_equal(mix_error(), whole ? MIX_OK : MIX_MEMORY_ERROR);
      mix_free(text);
      mix_free(explained);
    }
    mix_error_clear();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refused),
      cmocka_unit_test(files),
      cmocka_unit_test(options_of_a_file),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
