/* Reading graphs from JSON: damaged or unknown content is an error that names the file and the node. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "support/rewrite_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char good[] =
    "{\"name\": \"g\", \"mode\": \"cuda_float16\", \"target\": \"float16\", "
    "\"gpu\": {\"architecture\": \"8.0\", \"cuda\": \"11050\", \"cudnn\": \"8302\"},\n"
    " \"env\": {\"LEVEL\": \"\"}, \"note\": \"n\", \"graph\": {\"fetch\": [\"f\"], \"feed\": [], "
    "\"nodes\": [\n"
    " {\"name\": \"c\", \"op\": \"Const\", \"inputs\": [], \"device\": \"gpu\", "
    "\"types\": {\"dtype\": {\"dtype\": \"float32\", \"inputs\": [], \"outputs\": [0], "
    "\"allowed\": [\"float16\", \"float32\"], \"kernel\": {\"float16\": true, \"bfloat16\": true}}}, "
    "\"value\": {\"shape\": [2]}},\n"
    " {\"name\": \"m\", \"op\": \"MatMul\", \"inputs\": [\"c\", \"c:0\"], \"device\": \"gpu\", "
    "\"types\": {\"T\": {\"dtype\": \"float32\", \"inputs\": [0, 1], \"outputs\": [0], "
    "\"allowed\": [\"float16\", \"float32\"], \"kernel\": {\"float16\": true, \"bfloat16\": true}}}, "
    "\"attrs\": {\"t\": false}},\n"
    " {\"name\": \"f\", \"op\": \"Identity\", \"inputs\": [\"m\", \"^c\"], \"device\": \"\", "
    "\"types\": {\"T\": {\"dtype\": \"float32\", \"inputs\": [0], \"outputs\": [0], "
    "\"allowed\": [\"float16\", \"float32\"], \"kernel\": {\"float16\": true, \"bfloat16\": true}}}}]}, "
    "\"expected\": {}}";

/* The valid text with the `index`-th occurrence of `from` replaced. */
static char *changed(const char *from, int index, const char *to) {
  const char *at = good;
  for (int i = 0; (at = strstr(at, from)) && i < index; i++) at++;
  assert_non_null(at);
  char *text = malloc(sizeof good + strlen(to));
  sprintf(text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
  return text;
}

static void refused(void **state) {
  (void)state;
  static const struct {
    const char *from;
    int index;
    const char *to, *message;
  } rows[] = {
      {"\"name\": \"g\"", 0, "\"nam\": \"g\"",
       "g.json: the file has the unknown field \"nam\"; there are name, mode"},
      {"\"name\": \"g\", ", 0, "", "g.json: has no text field name"},
      {"cuda_float16", 0, "cuda", "there is no mode \"cuda\""},
      {"\"target\": \"float16\"", 0, "\"target\": \"bfloat16\"",
       "target is \"bfloat16\", but that of the mode cuda_float16 is float16"},
      {"\"cudnn\"", 0, "\"rocm\"", "gpu has the unknown field \"rocm\""},
      {"\"11050\"", 0, "11050", "expected a text in gpu.cuda"},
      {"\"LEVEL\": \"\"", 0, "\"LEVEL\": 3", "expected a text in env.LEVEL"},
      {"\"LEVEL\": \"\"", 0, "\"EMULATE_FP16\": \"2\"",
       "g.json: env: mixed precision rewrite: EMULATE_FP16 is \"2\""},
      {"\"fetch\": [\"f\"]", 0, "\"fetch\": [\"x\"]", "graph.fetch names 'x'"},
      {"\"feed\": []", 0, "\"feed\": 0", "has no list feed"},
      {"\"name\": \"m\"", 0, "\"name\": \"c\"", "two nodes are named 'c'"},
      {"\"name\": \"m\"", 0, "\"name\": \"m:1\"",
       "graph.nodes[1]: a node's name has no ':', and no '^' in front, unlike m:1"},
      {"\"op\": \"MatMul\", ", 0, "", "node 'm': has no text field op"},
      {"\"op\": \"MatMul\"", 0, "\"op\": \"MatMul\", \"operation\": 1",
       "node 'm': it has the unknown field \"operation\""},
      {"\"c:0\"", 0, "\"c:1\"", "node 'm': input 1 reads 'c:1', but Const 'c' has 1 outputs"},
      {"\"c:0\"", 0, "\"c:99999999999\"", "node 'm': no output number in the input c:99999999999"},
      {"\"c:0\"", 0, "\"c:\"", "node 'm': no output number in the input c:"},
      {"\"c:0\"", 0, "\"x\"", "node 'm': there is no node for its input x"},
      {"[\"m\", \"^c\"]", 0, "[\"m\", \"^x\"]", "node 'f': there is no node for its input ^x"},
      {"[\"m\", \"^c\"]", 0, "[\"^c\", \"m\"]",
       "node 'f': control inputs come last, but behind one stands m"},
      {"[\"m\", \"^c\"]", 0, "[]", "node 'f': type T has input 0, but Identity has 0 data inputs"},
      {"[\"m\", \"^c\"]", 0, "[\"m\", \"c\"]", "node 'f': input 1 of Identity has no type"},
      {"[\"m\", \"^c\"]", 0, "[\"f\"]", "node 'f' (Identity) depends on itself"},
      {"\"dtype\": \"float32\"", 1, "\"dtype\": \"float31\"", "node 'm': type T: there is no dtype float31"},
      {"\"dtype\": \"float32\"", 1, "\"dtype\": \"float64\"",
       "node 'm': input 0 of MatMul is float64 (T), but 'c:0' gives float32"},
      {"\"T\": {", 0, "\"=int32\": {",
       "node 'm': type =int32: it has the unknown field \"allowed\"; there are dtype, inputs, outputs"},
      {"\"outputs\": [0]", 1, "\"outputs\": [-1]", "node 'm': type T: expected port numbers in outputs"},
      {"\"outputs\": [0]", 1, "\"outputs\": [0, 0]", "node 'm': output 0 has two types, T and T"},
      {"\"outputs\": [0]", 1, "\"outputs\": [1]",
       "node 'm': type T has output 1, but MatMul has 1 data outputs"},
      {"[\"float16\", \"float32\"]", 1, "[\"float16\", \"int8\"]",
       "node 'm': type T: expected float16, bfloat16, float32 or float64 in allowed, not int8"},
      {"\"bfloat16\": true", 1, "\"bfloat16\": 1",
       "node 'm': type T: expected true or false in kernel.bfloat16"},
      {", \"kernel\": {\"float16\": true, \"bfloat16\": true}", 1, "",
       "node 'm': type T: has no object kernel"},
      {"\"attrs\": {", 0, "\"stateful\": 1, \"attrs\": {", "node 'm': expected true or false in stateful"},
      {"\"attrs\": {", 0, "\"renamed\": {\"op\": \"B\"}, \"attrs\": {", "node 'm': has no object types"},
      {"\"attrs\": {", 0, "\"renamed\": {\"op\": \"B\", \"types\": {}}, \"attrs\": {",
       "node 'm': MatMul has 1 outputs, but B, which it is renamed to, has 0"},
      {"\"note\": \"n\"", 0, "\"note\": \"n\", \"note\": \"m\"", "duplicate"},
      {"\"expected\": {}}", 0, "\"expected\": {}", "g.json: line 5"},
      /* fields of the file */
      {"{\"name\": \"g\"", 0, "[{\"name\": \"g\"", "g.json: line "},
      {"\"name\": \"g\"", 0, "\"name\": null", "g.json: has no text field name"},
      {"\"mode\": ", 0, "\"mode\": 1, \"note2\": ", "g.json: the file has the unknown field \"note2\""},
      {"\"cuda_float16\"", 0, "[]", "g.json: has no text field mode"},
      {"\"cuda_float16\"", 0, "\"\"",
       "g.json: there is no mode \"\"; expected cuda_float16, cpu_float16, onednn_bfloat16 or"},
      {"\"target\": \"float16\"", 0, "\"target\": 16", "g.json: target is \"(no text)\""},
      {"\"note\": \"n\"", 0, "\"note\": 1", "g.json: expected a text in note"},
      {"\"expected\": {}", 0, "\"expected\": []", "g.json: expected an object in expected"},
      {"\"gpu\": {", 0, "\"gpu\": 0, \"x\": {", "g.json: the file has the unknown field \"x\""},
      {"\"env\": {\"LEVEL\": \"\"}", 0, "\"env\": []", "g.json: has no object env"},
      {"\"env\": {\"LEVEL\": \"\"}", 0, "\"env\": {\"ALLOWLIST_ADD\": null}",
       "g.json: expected a text in env.ALLOWLIST_ADD"},
      {"\"graph\": {", 0, "\"graph\": [], \"note\": {", "g.json: "},
      {"\"fetch\": [\"f\"]", 0, "\"fetch\": [\"f:0\"]",
       "g.json: graph.fetch names 'f:0', but there is no such node"},
      {"\"fetch\": [\"f\"]", 0, "\"fetch\": [\"\"]",
       "g.json: graph.fetch names '', but there is no such node"},
      {"\"fetch\": [\"f\"]", 0, "\"fetch\": [0]", "g.json: graph.fetch names '(no text)'"},
      {"\"fetch\": [\"f\"], ", 0, "", "g.json: has no list fetch"},
      {"\"feed\": []", 0, "\"feed\": [\"nowhere\"]",
       "g.json: graph.feed names 'nowhere', but there is no such node"},
      {"\"feed\": []", 0, "\"feed\": [], \"library\": []",
       "g.json: graph has the unknown field \"library\"; there are fetch, feed, nodes"},
      /* nodes */
      {"{\"name\": \"m\"", 0, "{\"nam\": \"m\"", "g.json: graph.nodes[1]: has no text field name"},
      {"{\"name\": \"m\"", 0, "{\"name\": 7", "g.json: graph.nodes[1]: has no text field name"},
      {"{\"name\": \"m\"", 0, "{\"name\": \"\"", "g.json: graph.nodes[1]: its name is empty"},
      {"{\"name\": \"m\"", 0, "{\"name\": \"^m\"",
       "g.json: graph.nodes[1]: a node's name has no ':', and no '^' in front, unlike ^m"},
      {"{\"name\": \"m\"", 0, "{\"name\": \"m\\u0000\"", "g.json: line 4"},
      {" {\"name\": \"f\"", 0, " null, {\"name\": \"f\"", "g.json: graph.nodes[2]: expected an object"},
      {"\"op\": \"MatMul\"", 0, "\"op\": \"\"", "node 'm': its op is empty"},
      {"\"op\": \"MatMul\"", 0, "\"op\": true", "node 'm': has no text field op"},
      {"\"device\": \"gpu\", ", 1, "", "node 'm': has no text field device"},
      {"\"device\": \"gpu\"", 1, "\"device\": null", "node 'm': has no text field device"},
      {"\"inputs\": [\"c\", \"c:0\"]", 0, "\"inputs\": {}", "node 'm': has no list inputs"},
      {"\"inputs\": [\"c\", \"c:0\"], ", 0, "", "node 'm': has no list inputs"},
      {"\"attrs\": {\"t\": false}", 0, "\"attrs\": []", "node 'm': expected an object in attrs"},
      {"\"value\": {\"shape\": [2]}", 0, "\"value\": 2", "node 'c': expected an object in value"},
      {"\"attrs\": {", 0, "\"function\": \"yes\", \"attrs\": {",
       "node 'm': expected true or false in function"},
      {"\"attrs\": {", 0, "\"renamed\": \"B\", \"attrs\": {", "node 'm': expected an object in renamed"},
      {"\"attrs\": {", 0, "\"renamed\": {\"ops\": \"B\"}, \"attrs\": {",
       "node 'm': renamed has the unknown field \"ops\"; there are op, types"},
      {"\"attrs\": {", 0, "\"renamed\": {\"types\": {}}, \"attrs\": {", "node 'm': has no text field op"},
      {"\"attrs\": {", 0,
       "\"renamed\": {\"op\": \"B\", \"types\": {\"T\": {\"dtype\": \"float32\", \"inputs\": [0], "
       "\"outputs\": [0], \"allowed\": [],\"kernel\": {\"float16\": true, \"bfloat16\": true}}}}, "
       "\"attrs\": {",
       "node 'm': input 1 of B has no type"},
      /* inputs */
      {"\"c:0\"", 0, "3", "node 'm': expected names of nodes in inputs"},
      {"\"c:0\"", 0, "\"\"", "node 'm': expected names of nodes in inputs"},
      {"\"c:0\"", 0, "\"c:-1\"", "node 'm': no output number in the input c:-1"},
      {"\"c:0\"", 0, "\"c:0x1\"", "node 'm': no output number in the input c:0x1"},
      {"\"c:0\"", 0, "\"c:2147483648\"", "node 'm': no output number in the input c:2147483648"},
      {"\"c:0\"", 0, "\":0\"", "node 'm': there is no node for its input :0"},
      {"[\"m\", \"^c\"]", 0, "[\"m\", \"^\"]", "node 'f': there is no node for its input ^"},
      {"[\"m\", \"^c\"]", 0, "[\"m\", \"^c:0\"]", "node 'f': there is no node for its input ^c:0"},
      {"[\"m\", \"^c\"]", 0, "[\"m\", \"^f\"]",
       "node 'f' (Identity) depends on itself; only NextIteration -> Merge may close a loop"},
      {"\"op\": \"Const\", \"inputs\": []", 0, "\"op\": \"Const\", \"inputs\": [\"^f\"]",
       "depends on itself"}, /* c -> m -> f -> c */
      /* types */
      {"\"types\": {\"T\"", 0, "\"types\": {\"\"", "node 'm': a type has no name"},
      {"\"types\": {\"T\": {", 0, "\"types\": {\"S\": 1, \"T\": {", "node 'm': type S: expected an object"},
      {"\"types\": {\"T\": {", 0, "\"types\": {\"T\": {\"dtype\": \"float32\"}, \"T\": {",
       "duplicate object key"},
      {"\"types\": {\"T\": {", 0, "\"types\": {\"S\": {\"port\": 1}, \"T\": {",
       "node 'm': type S: it has the unknown field \"port\""},
      {"\"dtype\": \"float32\"", 1, "\"dtype\": 32", "node 'm': type T: has no text field dtype"},
      {"\"dtype\": \"float32\"", 1, "\"dtype\": \"\"", "node 'm': type T: there is no dtype "},
      {"\"dtype\": \"float32\"", 1, "\"dtype\": \"ref:\"", "node 'm': type T: there is no dtype ref:"},
      {"\"dtype\": \"float32\"", 1, "\"dtype\": \"ref:float31\"",
       "node 'm': type T: there is no dtype ref:float31"},
      {"\"dtype\": \"float32\"", 1, "\"dtype\": \"FLOAT32\"", "node 'm': type T: there is no dtype FLOAT32"},
      {"\"types\": {\"T\": {", 0,
       "\"types\": {\"=int32\": {\"dtype\": \"int64\", \"inputs\": [], \"outputs\": []}, \"T\": {",
       "node 'm': type =int32: a type of that name is fixed, and not int64"},
      {"\"inputs\": [0, 1]", 0, "\"inputs\": [0]", "node 'm': input 1 of MatMul has no type"},
      {"\"inputs\": [0, 1]", 0, "\"inputs\": [0, 0]", "node 'm': input 0 has two types, T and T"},
      {"\"inputs\": [0, 1]", 0, "\"inputs\": [0, 2]",
       "node 'm': type T has input 2, but MatMul has 2 data inputs, each of one type"},
      {"\"inputs\": [0, 1]", 0, "\"inputs\": [0, 1.0]", "node 'm': type T: expected port numbers in inputs"},
      {"\"inputs\": [0, 1]", 0, "\"inputs\": [-0.0, 1]", "node 'm': type T: expected port numbers in inputs"},
      {"\"inputs\": [0, 1]", 0, "\"inputs\": [\"0\", 1]",
       "node 'm': type T: expected port numbers in inputs"},
      {"\"inputs\": [0, 1]", 0, "\"inputs\": [0, 2147483648]",
       "node 'm': type T: expected port numbers in inputs"},
      {"\"inputs\": [0, 1]", 0, "\"inputs\": [0, 2147483647]", "node 'm': type T has input 2147483647"},
      {"\"inputs\": [0, 1]", 0, "\"inputs\": [0, 99999999999999999999]", "g.json: line 4, column "},
      {"\"inputs\": [0, 1]", 0, "\"inputs\": [0, 1e999]", "g.json: line 4, column "},
      {"\"inputs\": [0, 1]", 0, "\"inputs\": [0, NaN]", "g.json: line 4, column "},
      {"\"inputs\": [0, 1]", 0, "\"inputs\": [0, Infinity]", "g.json: line 4, column "},
      {"\"inputs\": [0, 1]", 0, "\"inputs\": 2", "node 'm': type T: has no list inputs"},
      {"\"outputs\": [0]", 0, "\"outputs\": []",
       "node 'm': input 0 reads 'c:0', but Const 'c' has 0 outputs"},
      {"\"outputs\": [0]", 1, "\"outputs\": [0, 2]",
       "node 'm': type T has output 2, but MatMul has 2 data outputs"},
      {"\"outputs\": [0]", 1, "\"outputs\": null", "node 'm': type T: has no list outputs"},
      {"[\"float16\", \"float32\"]", 1, "\"float16\"", "node 'm': type T: has no list allowed"},
      {"[\"float16\", \"float32\"]", 1, "[16]",
       "node 'm': type T: expected float16, bfloat16, float32 or float64 in allowed, not that"},
      {"\"kernel\": {\"float16\": true, \"bfloat16\": true}", 1, "\"kernel\": true",
       "node 'm': type T: has no object kernel"},
      {"\"kernel\": {\"float16\": true, \"bfloat16\": true}", 1, "\"kernel\": {\"float16\": true}",
       "node 'm': type T: expected true or false in kernel.bfloat16"},
      {"\"kernel\": {\"float16\": true", 1, "\"kernel\": {\"half\": true",
       "node 'm': type T: kernel has the unknown field \"half\""},
      {"\"kernel\": {\"float16\": true", 1, "\"kernel\": {\"float16\": \"true\"",
       "node 'm': type T: expected true or false in kernel.float16"},
      /* not JSON */
      {"\"note\": \"n\"", 0, "\"note\": \"\xff\"", "g.json: line "},
      {"\"note\": \"n\"", 0, "\"note\": 'n'", "g.json: line "},
      {"\"expected\": {}}", 0, "\"expected\": {}} {}", "g.json: line 5"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    MIX_SCOPE {
      char *text = changed(rows[i].from, rows[i].index, rows[i].to);
      assert_null(cli_rewrite_read("g.json", text, strlen(text), NULL));
      if (!strstr(mix_error_message(), rows[i].message))
        fail_msg("row %d: \"%s\", expected \"%s\"", (int)i, mix_error_message(), rows[i].message);
      mix_error_clear();
      free(text);
    }
}

/* Texts that are no graph at all. Deep nesting must not overflow the stack. */
static void texts_that_are_no_graph(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } rows[] = {{"", "g.json: line 1"},
              {" \n\n ", "g.json: line 3"},
              {"{", "g.json: line 1"},
              {"[]", "g.json: expected an object"},
              {"{}", "g.json: has no text field name"},
              {"\xef\xbb\xbf{}", "g.json: line 1"},
              {"PK\x03\x04", "g.json: line 1"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    MIX_SCOPE {
      assert_null(cli_rewrite_read("g.json", rows[i].text, strlen(rows[i].text), NULL));
      assert_int_equal(mix_error(), MIX_FORMAT_ERROR);
      if (!strstr(mix_error_message(), rows[i].message))
        fail_msg("row %d: \"%s\"", (int)i, mix_error_message());
      mix_error_clear();
    }
  enum { DEEP = 1 << 20 };
  char *deep = malloc(DEEP);
  for (int index = 0; index < 2; index++) {
    for (int i = 0; i < DEEP; i++) deep[i] = "{\"a\":[["[index ? 5 : i % 5];
    assert_null(cli_rewrite_read("g.json", deep, DEEP, NULL));
    assert_int_equal(mix_error(), MIX_FORMAT_ERROR);
    mix_error_clear();
  }
  free(deep);
}

/* A name longer than any buffer is cut in the message. */
static void long_names(void **state) {
  (void)state;
  enum { LONG = 20000 };
  char *name = malloc(LONG + 1);
  memset(name, 'n', LONG);
  name[LONG] = 0;
  static const char *const places[] = {"\"m\", \"op\"", "MatMul",      "\"T\": {",
                                       "\"c:0\"",       "\"float32\"", "\"LEVEL\""};
  static const char *const around[] = {"\"%s\", \"op\"", "%s", "\"%s\": {", "\"%s:0\"", "\"%s\"", "\"%s\""};
  char *to = malloc(LONG + 32);
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    MIX_SCOPE {
      snprintf(to, LONG + 32, around[i], name);
      char *text = changed(places[i], 0, to);
      cli_rewrite_case *item = cli_rewrite_read("g.json", text, strlen(text), NULL);
      mix_amp_result *result = item ? mix_amp_rewrite(item->graph, &item->options) : NULL;
      cli_find_redundant_casts(result);
      char *texts[] = {cli_rewrite_text(item, result), cli_explain_text(item, result), mix_amp_report(result),
                       mix_amp_picture(result, false, &(int){0})};
      assert_true(!result == (mix_error() == MIX_FORMAT_ERROR));
      for (int k = 0; k < 4; k++) assert_true(!texts[k] == !result), mix_free(texts[k]);
      if (!result) assert_non_null(strstr(mix_error_message(), "g.json: "));
      mix_error_clear();
      free(text);
    }
  free(name);
  free(to);
}

static void files(void **state) {
  (void)state;
  assert_null(read_rewrite_file("/tmp")); /* a directory */
  assert_int_equal(mix_error(), MIX_IO_ERROR);
  assert_non_null(strstr(mix_error_message(), "cannot read /tmp: Is a directory"));
  mix_error_clear();
  assert_null(read_rewrite_file("/nowhere/g.json"));
  assert_int_equal(mix_error(), MIX_IO_ERROR);
  assert_non_null(strstr(mix_error_message(), "/nowhere/g.json"));
  mix_error_clear();
}

/* Options in the file override those given before. */
static void options_of_a_file(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_amp_options base = {
        .level = MIX_AMP_UNSAFE_FORCE_ALL, .mode = MIX_AMP_CPU_FLOAT16, .no_emulation = true};
    base.edits[MIX_AMP_EDIT_CLEAR].add = "Sin";
    cli_rewrite_case *item = cli_rewrite_read("g.json", good, strlen(good), &base);
    assert_non_null(item);
    assert_string_equal(item->name, "g");
    assert_int_equal(item->options.mode, MIX_AMP_CUDA_FLOAT16);
    assert_int_equal(item->options.level, MIX_AMP_LEVEL_NORMAL);
    assert_string_equal(item->options.edits[MIX_AMP_EDIT_CLEAR].add, "Sin");
    assert_true(item->options.has_gpu && item->options.no_emulation);
    assert_int_equal(item->options.architecture[0], 8);
    assert_int_equal(item->options.cudnn, 8302);
    mix_amp_result *result = mix_amp_rewrite(item->graph, &item->options);
    char *text = cli_rewrite_text(item, result);
    assert_string_equal(
        text, "{\"name\":\"g\",\"status\":\"ok\",\"nodes_added\":2,\"dtypes\":{\"m\":{\"T\":\"float16\"}},"
              "\"casts\":[{\"id\":\"cast0\",\"from\":\"c:0\",\"to_dtype\":\"float16\",\"device\":\"gpu\","
              "\"consumers\":[[\"m\",0],[\"m\",1]]},{\"id\":\"cast1\",\"from\":\"m:0\","
              "\"to_dtype\":\"float32\",\"device\":\"gpu\",\"consumers\":[[\"f\",0]]}]}");
    mix_free(text);
    text = cli_explain_text(item, result);
    assert_non_null(strstr(
        text, "{\"name\":\"m\",\"op\":\"MatMul\",\"list\":\"allow\",\"types\":{\"T\":{\"before\":\"float32\","
              "\"after\":\"float16\",\"reason\":\"its op is in the allow list\"}}}"));
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
      cli_rewrite_case *item = cli_rewrite_read("g.json", good, strlen(good), NULL);
      mix_amp_result *result = item ? mix_amp_rewrite(item->graph, &item->options) : NULL;
      char *text = cli_rewrite_text(item, result), *explained = cli_explain_text(item, result);
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
      cmocka_unit_test(refused),           cmocka_unit_test(texts_that_are_no_graph),
      cmocka_unit_test(long_names),        cmocka_unit_test(files),
      cmocka_unit_test(options_of_a_file), cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
