/* `mixtape amp`: output, exit codes, messages. The decisions are tested in tests/spec/test_rewrite.c. */
#include "support/count.h"
#include "support/skip.h"
#include "cli/program.h"
#include <mixtape/saving.h>

static const char graph[] =
    "{\"name\": \"g\", \"mode\": \"onednn_bfloat16\", \"gpu\": null, \"env\": {}, \"graph\": {\"fetch\": [], "
    "\"feed\": [], \"nodes\": ["
    "{\"name\": \"c\", \"op\": \"Const\", \"inputs\": [], \"device\": \"\", "
    "\"types\": {\"dtype\": {\"dtype\": \"float32\", \"inputs\": [], \"outputs\": [0],"
    "\"allowed\": [\"bfloat16\"], \"kernel\": {\"float16\": true, \"bfloat16\": true}}}},"
    "{\"name\": \"m\", \"op\": \"MatMul\", \"inputs\": [\"c\", \"c\"], \"device\": \"\", "
    "\"types\": {\"T\": {\"dtype\": \"float32\", \"inputs\": [0, 1],\"outputs\": [0], "
    "\"allowed\": [\"bfloat16\"], \"kernel\": {\"float16\": true, \"bfloat16\": true}}}}]}}";

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
      "{\"name\":\"g\",\"status\":\"ok\",\"nodes_added\":1,\"dtypes\":{\"m\":{\"T\":\"bfloat16\"}},"
      "\"casts\":[{\"id\":\"cast0\",\"from\":\"c:0\",\"to_dtype\":\"bfloat16\",\"device\":\"\","
      "\"consumers\":[[\"m\",0],[\"m\",1]]}]}\n";
  /* The bad file between them does not stop the run. */
  assert_int_equal(strncmp(program_out, line, sizeof line - 1), 0);
  assert_string_equal(program_out + sizeof line - 1, line);
  assert_non_null(strstr(program_err, "bad.json: has no text field name"));
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "rewrite", file, NULL}), 0);
  assert_string_equal(program_err, "");
}

/* Many files, some of them invalid: one line for each valid file, in order, one message for each other file,
 * and exit code 1. An error status of the rewrite is a result, not a failure. */
static void many_files(void **state) {
  (void)state;
  const char *file = in_folder("g.json"), *empty = in_folder("empty.json"), *cut = in_folder("cut.json"),
             *none = in_folder("none.json");
  char half[sizeof graph / 2] = "";
  memcpy(half, graph, sizeof half - 1);
  write_text(file, graph);
  write_text(empty, "");
  write_text(cut, half);
  enum { GOOD = 40 };
  const char *arguments[2 + GOOD + 4 + 1] = {"amp", "rewrite"};
  int count = 2;
  for (int i = 0; i < GOOD; i++) {
    if (i == 0) arguments[count++] = empty;
    if (i == 10) arguments[count++] = none;
    if (i == 20) arguments[count++] = test_folder;
    if (i == 30) arguments[count++] = cut;
    arguments[count++] = file;
  }
  assert_int_equal(run_program_to(NULL, arguments), 1);
  assert_int_equal(count_of(program_out, "{\"name\":\"g\","), GOOD);
  assert_int_equal(count_of(program_err, "mixtape: "), 4);
  static const char *const said[] = {"empty.json: line 1", "cannot open ", "cannot read ",
                                     "cut.json: line 1"};
  const char *at = program_err;
  for (int i = 0; i < 4; i++)
    if (!(at = strstr(at, said[i]))) fail_msg("'%s' is not there, in order: %s", said[i], program_err);
  assert_int_equal(
      run_program_to(NULL, (const char *[]){"amp", "rewrite", "--set", "ALLOWLIST_ADD=Exp", file, NULL}), 0);
  assert_non_null(
      strstr(program_out, "\"status\":\"InvalidArgument\",\"nodes_added\":0,\"dtypes\":{},\"casts\":[]}"));
  assert_int_equal(
      run_program_to(NULL, (const char *[]){"amp", "rewrite", "--set", "ALLOWLIST_ADD=Foo", file, NULL}), 0);
  assert_non_null(strstr(program_err, "g.json: an edit of the allow list names 'Foo', which is in no list"));
  assert_non_null(strstr(program_err, "the allow list has: BatchMatMul, "));
}

static void explain(void **state) {
  (void)state;
  const char *file = in_folder("g.json");
  write_text(file, graph);
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", file, NULL}), 0);
  assert_string_equal(
      program_out,
      "node  op      list   type           before    after     reason\n"
      "c     Const   none   dtype          float32   float32   a constant, which is cast where it is read\n"
      "m     MatMul  allow  T              float32   bfloat16  its op is in the allow list\n"
      "\n"
      "inserted  to        removed by          result of -> input of\n"
      "cast0     bfloat16  -                   c:0 -> m:0, m:1\n"
      "\n"
      "onednn_bfloat16: ok; converted 1 of 2 nodes, inserted 1 casts (0 to bfloat16 besides those of "
      "constants and variables)\n"
      "passes remove 0 of the 1 inserted casts\n");
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", "--json", file, NULL}), 0);
  json_t *report = json_loads(program_out, 0, NULL);
  assert_int_equal(json_array_size(json_object_get(report, "ops")), 2);
  json_t *cast = json_array_get(json_object_get(report, "casts"), 0);
  assert_string_equal(json_string_value(json_object_get(cast, "from")), "c:0");
  assert_true(json_is_null(json_object_get(cast, "removed_by")));
  json_decref(report);
}

/* A pipe is read once, whatever is in it. */
static void explain_reads_a_pipe(void **state) {
  (void)state;
  const char *file = in_folder("g.json"), *out = in_folder("piped.txt");
  char command[4096];
  static char text[1 << 14];
  write_text(file, graph);
  snprintf(command, sizeof command, "cat '%s' | '%s' amp explain /dev/stdin >'%s'", file,
           getenv("MIXTAPE_PROGRAM"), out);
  assert_int_equal(system(command), 0);
  read_text(out, text, sizeof text);
  assert_non_null(strstr(text, "m     MatMul  allow  T              float32   bfloat16"));
}

/* c -> Cast to float32 -> m, and m -> Cast to bfloat16 -> r. The only reader of the first is converted, so it
 * becomes a cast from bfloat16 to bfloat16. The second cancels the cast inserted before it, which has no
 * other reader. */
static const char with_casts[] =
    "{\"name\": \"casts\", \"mode\": \"onednn_bfloat16\", \"gpu\": null, \"env\": {}, "
    "\"graph\": {\"fetch\": [\"r\"], \"feed\": [], \"nodes\": ["
    "{\"name\": \"c\", \"op\": \"Const\", \"inputs\": [], \"device\": \"\", "
    "\"types\": {\"dtype\": {\"dtype\": \"bfloat16\", \"inputs\": [],\"outputs\": [0], "
    "\"allowed\": [\"bfloat16\"], \"kernel\": {\"float16\": true, \"bfloat16\": true}}}},"
    "{\"name\": \"wide\", \"op\": \"Cast\", \"inputs\": [\"c\"], \"device\": \"\", "
    "\"types\": {\"SrcT\": {\"dtype\": \"bfloat16\", \"inputs\": [0],\"outputs\": [], "
    "\"allowed\": [\"bfloat16\"], \"kernel\": {\"float16\": true, \"bfloat16\": true}}, "
    "\"DstT\": {\"dtype\": \"float32\",\"inputs\": [], \"outputs\": [0], \"allowed\": [\"bfloat16\"], "
    "\"kernel\": {\"float16\": true, \"bfloat16\": true}}}},"
    "{\"name\": \"m\", \"op\": \"MatMul\", \"inputs\": [\"wide\", \"wide\"], \"device\": \"\", "
    "\"types\": {\"T\": {\"dtype\": \"float32\",\"inputs\": [0, 1], \"outputs\": [0], "
    "\"allowed\": [\"bfloat16\"], \"kernel\": {\"float16\": true, \"bfloat16\": true}}}},"
    "{\"name\": \"narrow\", \"op\": \"Cast\", \"inputs\": [\"m\"], \"device\": \"\", "
    "\"types\": {\"SrcT\": {\"dtype\": \"float32\",\"inputs\": [0], \"outputs\": [], "
    "\"allowed\": [\"bfloat16\"], \"kernel\": {\"float16\": true, \"bfloat16\": true}}, "
    "\"DstT\":{\"dtype\": \"bfloat16\", \"inputs\": [], \"outputs\": [0], \"allowed\": [\"bfloat16\"], "
    "\"kernel\": {\"float16\": true, \"bfloat16\": true}}}},"
    "{\"name\": \"r\", \"op\": \"Sin\", \"inputs\": [\"narrow\"], \"device\": \"\", "
    "\"types\": {\"T\": {\"dtype\": \"bfloat16\",\"inputs\": [0], \"outputs\": [0], "
    "\"allowed\": [\"bfloat16\"], \"kernel\": {\"float16\": true, \"bfloat16\": true}}}}]}}";

static bool contains(const char *text, const char *part);

static void removed_casts(void **state) {
  (void)state;
  const char *file = in_folder("casts.json"), *dot = in_folder("casts.dot");
  static char text[1 << 14];
  write_text(file, with_casts);
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", "--output", dot, file, NULL}), 0);
  assert_true(contains(program_out, "only converted ops read it; then removed by remove_identities\n"));
  assert_true(contains(program_out, "not float32; then removed by simplify_casts\n") ||
              contains(program_out, "; then removed by simplify_casts\n"));
  assert_true(contains(program_out, "cast0     float32   dce                 m:0 -> narrow:0\n"));
  assert_true(contains(program_out,
                       "passes remove 1 of the 1 inserted casts (dce 1) and 2 of the graph's own 2 casts "
                       "(remove_identities 1, simplify_casts 1)\n"));
  read_text(dot, text, sizeof text);
  assert_true(contains(text, "c0 [label=\"Cast\\nfloat32\\nremoved: dce\" shape=ellipse style=\"dotted\""));
  assert_true(contains(text, "\\nremoved: remove_identities\" tooltip="));
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", "--json", file, NULL}), 0);
  json_t *report = json_loads(program_out, 0, NULL), *ops = json_object_get(report, "ops");
  assert_string_equal(json_string_value(json_object_get(json_array_get(ops, 1), "removed_by")),
                      "remove_identities");
  assert_null(json_object_get(json_array_get(ops, 2), "removed_by")); /* no cast */
  assert_string_equal(json_string_value(json_object_get(json_array_get(ops, 3), "removed_by")),
                      "simplify_casts");
  json_t *cast = json_array_get(json_object_get(report, "casts"), 0);
  assert_string_equal(json_string_value(json_object_get(cast, "removed_by")), "dce");
  json_decref(report);
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "rewrite", file, NULL}), 0);
  assert_null(strstr(program_out, "removed_by")); /* the graph in JSON */
}

/* Environment variables count; an unknown one gives a warning. */
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
  assert_string_equal(program_out,
                      "{\"name\":\"g\",\"status\":\"ok\",\"nodes_added\":0,\"dtypes\":{},\"casts\":[]}\n");
  assert_non_null(strstr(program_err, "nothing is called LEVELS"));
}

static bool contains(const char *text, const char *part) {
  if (strstr(text, part)) return true;
  print_message("'%s' is not in:\n%s\n", part, text);
  return false;
}

/* Edits have an effect at once. */
static void edits(void **state) {
  (void)state;
  const char *file = in_folder("g.json");
  write_text(file, graph);
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", "--set", "ALLOWLIST_REMOVE=MatMul",
                                                         "--set", "DENYLIST_ADD=MatMul", file, NULL}),
                   0);
  assert_true(contains(program_out,
                       "m     MatMul  deny   T              float32   float32   the graph stays as it is"));
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", "--set", "ALLOWLIST", file, NULL}),
                   2);
  assert_true(contains(program_err, "expected NAME=VALUE"));
}

/* A graph that is not rewritten as --set says is not explained: exit code 1, and no table. */
static void edits_that_cannot_be(void **state) {
  (void)state;
  const char *file = in_folder("g.json");
  write_text(file, graph);
  assert_int_equal(
      run_program_to(NULL, (const char *[]){"amp", "explain", "--set", "ALLOWLIST_ADD=Exp", file, NULL}), 1);
  assert_string_equal(program_out, "");
  assert_true(contains(program_err, "ValueError: g: InvalidArgument: the op lists have conflicting entries: "
                                    "Exp is in the allow list and in the deny list"));
  assert_true(contains(program_err, "ALLOWLIST_REMOVE=Exp or DENYLIST_REMOVE=Exp"));
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", "--json", "--set",
                                                         "ALLOWLIST_ADD=Exp", file, NULL}),
                   1);
  assert_true(contains(program_out, "\"status\":\"InvalidArgument\""));
  assert_int_equal(
      run_program_to(NULL, (const char *[]){"amp", "explain", "--set", "ALLOWLIST_ADD=Foo", file, NULL}), 1);
  assert_string_equal(program_out, "");
  assert_true(contains(program_err, "g: --set names the op 'Foo', which is in no list"));
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", "--model", "guide", "--units",
                                                         "16", "--set", "ALLOWLIST_ADD=Sum", NULL}),
                   1);
  assert_string_equal(program_out, "");
  assert_true(contains(program_err, "Sum is in the allow list and in the deny list"));
}

/* The picture has the forward pass, each layer in its frame; with --whole-step it is all, and too many nodes
 * for dot are an error before dot runs. */
static void pictures_of_a_step(void **state) {
  (void)state;
  const char *dot = in_folder("step.dot"), *svg = in_folder("step.svg");
  static char text[1 << 20];
#define STEP                                                                                                 \
  "amp", "explain", "--model", "transformer", "--layers", "1", "--units", "8", "--heads", "2", "--length",   \
      "4", "--classes", "9", "--batch-size", "2", "--output"
  assert_int_equal(run_program_to("/dev/null", (const char *[]){STEP, dot, NULL}), 0);
  read_text(dot, text, sizeof text);
  assert_true(contains(text, "encoder_0_self_attention\";\n"));
  assert_false(contains(text, "RMSprop"));
  assert_false(contains(text, "ReluGrad"));
  assert_int_equal(run_program_to("/dev/null", (const char *[]){STEP, dot, "--whole-step", NULL}), 0);
  read_text(dot, text, sizeof text);
  assert_true(contains(text, "RMSprop"));
  assert_int_equal(run_program_to("/dev/null", (const char *[]){STEP, svg, "--whole-step", NULL}), 1);
  assert_true(contains(program_err, "nodes, and dot draws at most 800 in time; leave --whole-step out"));
  assert_int_equal(
      run_program_to(NULL, (const char *[]){"amp", "explain", "--model", "guide", "--whole-step", NULL}), 2);
}

/* Not the rewrite but the policy decided. */
static void a_mixed_policy(void **state) {
  (void)state;
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", "--model", "guide", "--units",
                                                         "16", "--policy", "mixed_float16", NULL}),
                   0);
  assert_true(
      contains(program_out, "dense_1       Dense                   mixed_float16   float16   float32    "));
  assert_true(contains(program_out, "kernel, bias to float16"));
  assert_true(contains(
      program_out,
      "predictions   Activation              float32         float32   -          input from float16"));
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", "--model", "guide", "--policy",
                                                         "mixed_float16", "--output", "a.svg", NULL}),
                   2);
  assert_true(contains(program_err, "mixtape summary --output"));
  assert_code(run_program("amp", "explain", "--model", "guide", "--policy", "mixed_float16", "--set",
                          "ALLOWLIST_ADD=Exp"),
              2);
  assert_has(program_err, "--set");
}

/* The rest of the layer's row. */
static void assert_row(const char *layer, const char *casts) {
  char start[64];
  snprintf(start, sizeof start, "\n%s ", layer);
  const char *row = strstr(program_out, start);
  assert_non_null(row);
  const size_t bytes = strcspn(row + 1, "\n"), wanted = strlen(casts);
  assert_true(bytes > wanted + 2);
  if (strncmp(row + 1 + bytes - wanted - 2, "  ", 2) || strncmp(row + 1 + bytes - wanted, casts, wanted))
    fail_msg("got '%.*s'; expected '%s' at its end", (int)bytes, row + 1, casts);
}

/* Sequential models, models in models, and layers and weights that do not cast. */
static void a_mixed_policy_in_nested_models(void **state) {
  (void)state;
  char *file = in_folder("mixed.keras");
  mix_set_global_policy("mixed_float16");
  mix_tensor *inner = mix_input(.shape = MIX_SHAPE(4), .dtype = "float16");
  mix_layer *probabilities = mix_activation(.activation = "softmax", .dtype = "float32", .name = "soft");
  mix_tensor *dense = mix_call(mix_dense(.units = 4, .name = "hidden"), inner);
  mix_model *nested = mix_model_new(inner, mix_call(probabilities, dense), .name = "nested");
  mix_model *chain = mix_sequential(NULL, .name = "chain");
  mix_sequential_add(chain, mix_embedding(.input_dim = 8, .output_dim = 3, .name = "table"));
  mix_sequential_add(chain, mix_flatten(.name = "flat"));
  mix_sequential_add(chain, mix_dense(.units = 3, .name = "deep"));
  mix_model *model = mix_sequential(NULL, .name = "outer");
  mix_sequential_add(model, mix_model_layer(chain));
  mix_sequential_add(model, mix_dense(.units = 4, .name = "first"));
  mix_sequential_add(model, mix_batch_normalization(.name = "norm"));
  mix_sequential_add(model, mix_activation(.activation = "relu", .dtype = "float32", .name = "wide"));
  mix_sequential_add(model, mix_model_layer(nested));
  mix_sequential_add(model, mix_dense(.units = 2, .name = "last"));
  mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 4));
  mix_model_compile(model, .loss = "mse");
  assert_int_equal(mix_model_save(model, file), MIX_OK);
  mix_set_global_policy("float32");
  assert_code(run_program("amp", "explain", file), 0);
  assert_row("chain/table", "-");
  assert_row("chain/deep", "kernel, bias to float16");
  assert_row("first", "kernel, bias to float16");
  assert_row("norm", "-");
  assert_row("wide", "input from float16");
  assert_row("nested/hidden", "kernel, bias to float16");
  assert_row("nested/soft", "input from float16");
  assert_row("last", "input from float32; kernel, bias to float16");
}

/* One node of a graph, float32 throughout. */
static void put_plain_node(char *text, size_t size, const char *name, const char *op, const char *input) {
  const size_t used = strlen(text);
  snprintf(text + used, size - used,
           "%s{\"name\": \"%s\", \"op\": \"%s\", \"inputs\": [%s%s%s], \"device\": \"\", \"types\": {\"T\": "
           "{\"dtype\": \"float32\", \"inputs\": [%s], \"outputs\": [0], \"allowed\": [\"bfloat16\"], "
           "\"kernel\": {\"float16\": true, \"bfloat16\": true}}}}",
           used ? ", " : "", name, op, input ? "\"" : "", input ? input : "", input ? "\"" : "",
           input ? "0" : "");
}

static void picture_of(const char *nodes, char *text, size_t size) {
  static char file[1 << 13];
  char *json = in_folder("step.json"), *dot = in_folder("step.dot");
  snprintf(file, sizeof file,
           "{\"name\": \"g\", \"mode\": \"onednn_bfloat16\", \"gpu\": null, \"env\": {}, \"graph\": "
           "{\"fetch\": [], \"feed\": [], \"nodes\": [%s]}}",
           nodes);
  write_text(json, file);
  assert_code(run_program("amp", "explain", "--output", dot, json), 0);
  read_text(dot, text, size);
}

/* The forward pass of files whose nodes are not sorted, with a loss and without one. */
static void pictures_of_unsorted_nodes(void **state) {
  (void)state;
  static char text[1 << 16];
  char nodes[1 << 12] = "";
  put_plain_node(nodes, sizeof nodes, "gradient_tape/model/Mul", "Relu", "loss/Mean");
  put_plain_node(nodes, sizeof nodes, "loss/Mean", "Relu", "model/out");
  put_plain_node(nodes, sizeof nodes, "model/side", "Relu", "model/dense/Conv");
  put_plain_node(nodes, sizeof nodes, "model/out", "Relu", "model/dense/Conv");
  put_plain_node(nodes, sizeof nodes, "model/dense/Conv", "MatMul", "data");
  put_plain_node(nodes, sizeof nodes, "data", "Const", NULL);
  picture_of(nodes, text, sizeof text);
  for (const char *const *name =
           (const char *const[]){"loss/Mean", "model/side", "model/out", "model/dense/Conv", "data", NULL};
       *name; name++)
    assert_has(text, *name);
  assert_false(contains(text, "gradient_tape"));
  nodes[0] = 0;
  put_plain_node(nodes, sizeof nodes, "gradients/model/out", "Relu", "model/out");
  put_plain_node(nodes, sizeof nodes, "model/out", "MatMul", "data");
  put_plain_node(nodes, sizeof nodes, "data", "Const", NULL);
  picture_of(nodes, text, sizeof text);
  assert_has(text, "label=\"MatMul\\nmodel/out");
  assert_has(text, "label=\"Const\\ndata");
  assert_false(contains(text, "gradients/"));
  nodes[0] = 0;
  put_plain_node(nodes, sizeof nodes, "gradients/out", "MatMul", "data"); /* no model at all */
  put_plain_node(nodes, sizeof nodes, "data", "Const", NULL);
  picture_of(nodes, text, sizeof text);
  assert_has(text, "gradients/out");
}

/* Graphviz text, and pictures if the dot program is found. Without it the error names the package. */
static void pictures(void **state) {
  (void)state;
  const char *file = in_folder("g.json"), *dot = in_folder("g.dot");
  static char text[1 << 16];
  write_text(file, graph);
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", "--output", dot, file, NULL}), 0);
  read_text(dot, text, sizeof text);
  assert_true(contains(text, "digraph \""));
  assert_true(contains(
      text, "n1 [label=\"MatMul\\nm\\nfloat32 → bfloat16\" tooltip=\"allow: its op is in the allow list\" "
            "fillcolor=\"#b7e1a1\" penwidth=3];"));
  assert_true(contains(text, "c0 [label=\"Cast\\nbfloat16\""));
  assert_true(contains(text, "  n0 -> c0;\n") && contains(text, "  c0 -> n1;\n"));
  char path[4096];
  snprintf(path, sizeof path, "%s", getenv("PATH"));
  setenv("PATH", test_folder, 1); /* dot is not in this PATH */
  const char *svg = in_folder("g.svg");
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", "--output", svg, file, NULL}), 1);
  setenv("PATH", path, 1);
  assert_true(contains(program_err, "install the package graphviz"));
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", "--output", "g.jpg", file, NULL}),
                   2);
  if (system("dot -V >/dev/null 2>&1") != 0) { SKIP("graphviz is not installed"); }
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", "--output", svg, file, NULL}), 0);
  read_text(svg, text, sizeof text);
  assert_true(contains(text, "<svg"));
  const char *png = in_folder("g.png");
  assert_int_equal(run_program_to(NULL, (const char *[]){"amp", "explain", "--output", png, file, NULL}), 0);
  unsigned char head[4] = {0};
  FILE *image = fopen(png, "rb");
  assert_non_null(image);
  assert_int_equal(fread(head, 1, 4, image), 4);
  fclose(image);
  assert_memory_equal(head, "\x89PNG", 4);
}

/* The model's own training step: layers, reasons, bytes. LOG_PATH gets the lists, and the function before and
 * after. */
static void the_models_step(void **state) {
  (void)state;
  setenv("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LOG_PATH", test_folder, 1);
  int code = run_program_to(NULL, (const char *[]){"amp", "explain", "--model", "guide", "--units", "16",
                                                   "--batch-size", "8", NULL});
  unsetenv("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LOG_PATH");
  assert_int_equal(code, 0);
  assert_int_equal(strncmp(program_out, "train_step\n", 11), 0);
  assert_true(contains(program_out, "dense_1/"));
  assert_true(contains(program_out, "its op is in the allow list"));
  assert_true(contains(program_out, "its op is in the deny list"));
  assert_true(contains(program_out, "cuda_float16: ok; converted "));
  assert_true(contains(program_out, " bytes smaller; casts that stay write "));
  assert_true(contains(
      program_out,
      " inserted casts (cache_weight_casts 6) and 3 of the graph's own 8 casts (cse 3)\n")); /* six weights */
  assert_true(contains(program_out, "cache_weight_casts  dense_1/kernel_"));
  static const char *const patterns[] = {"paintbuckets_AutoMixedPrecision_train_step_*.txt",
                                         "graphdef_preop_train_step_*.txt",
                                         "graphdef_AutoMixedPrecision_train_step_*.txt"};
  for (int i = 0; i < 3; i++) {
    char command[512];
    snprintf(command, sizeof command, "ls '%s'/%s >/dev/null", test_folder, patterns[i]);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command,
             "for f in '%s'/%s; do \"$MIXTAPE_PROGRAM\" graph --quiet \"$f\" || exit 1; done", test_folder,
             patterns[i]);
    if (i > 0) assert_int_equal(system(command), 0); /* the graphs can be read back */
  }
  code = run_program_to(NULL, (const char *[]){"amp", "explain", "--json", "--model", "guide", "--units",
                                               "16", "--graph-rewrite", "bfloat16", NULL});
  assert_int_equal(code, 0);
  json_t *first = json_loads(program_out, JSON_DISABLE_EOF_CHECK, NULL);
  assert_non_null(first);
  assert_string_equal(json_string_value(json_object_get(first, "mode")), "onednn_bfloat16");
  json_decref(first);
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

/* Options of train that explain would ignore. */
static void what_belongs_to_train(void **state) {
  (void)state;
  static const char *const options[][2] = {{"--save", "m.keras"}, {"--step-log", "log"},
                                           {"--checkpoint", "c"}, {"--tensorboard", "t"},
                                           {"--trace", "t.json"}, {"--distribute", "mpi"}};
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    assert_code(run_program("amp", "explain", "--model", "guide", options[i][0], options[i][1]), 2);
    assert_has(program_err, options[i][0]);
    assert_has(program_err, "belongs to train");
  }
}

static mix_list *forward(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *x = mix_list_get(arguments, 0);
  return mix_list_of(mix_exp(mix_matmul(x, x, false, false)));
}

/* The text of mix_function_dump gives the table of mix_function_explain_rewrite, under its function's name.
 */
static void text_of_a_function(void **state) {
  (void)state;
  char *file = in_folder("forward.txt"), *fused = in_folder("fused.txt"), expected[1 << 14];
  mix_function *function = mix_function_new(forward, NULL, .name = "forward");
  mix_tensor *x = mix_fill(MIX_SHAPE(4, 4), 1, MIX_FLOAT32);
  assert_non_null(mix_function_call(function, mix_list_of(x)));
  write_text(file, mix_function_dump(function, "captured"));
  write_text(fused, mix_function_dump(function, "passes"));
  static const char *const dtypes[] = {"float16", "bfloat16"};
  for (int i = 0; i < 2; i++) {
    const char *table = mix_function_explain_rewrite(function, dtypes[i]);
    assert_non_null(table);
    assert_code(run_program("amp", "explain", "--graph-rewrite", dtypes[i], file), 0);
    const char *printed = strchr(program_out, '\n') + 1; /* behind the name */
    snprintf(expected, sizeof expected, "%s", table);
    assert_string_equal(strstr(printed, "MatMul"), strstr(expected, "MatMul"));
    assert_has(printed, dtypes[i]);
  }
  assert_code(run_program("amp", "explain", "--json", file), 0);
  json_t *root = printed_object();
  assert_string_equal(json_string_value(json_object_get(root, "status")), "ok");
  json_decref(root);
  assert_code(run_program("amp", "explain", "--graph-rewrite", "float32", file), 2);
  write_text(fused, "%0 = nothing\n");
  assert_code(run_program("amp", "explain", fused), 1);
  assert_has(program_err, "fused.txt");
  mix_error_clear();
}

static void a_file_of_a_model(void **state) {
  (void)state;
  char *file = in_folder("model.keras");
  mix_set_global_policy("float32");
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(4));
  mix_model *model = mix_model_new(inputs, mix_call(mix_dense(.units = 2, .name = "only"), inputs));
  mix_model_compile(model, .loss = "mse");
  assert_int_equal(mix_model_save(model, file), MIX_OK);
  assert_code(run_program("amp", "explain", file), 0);
  static char plain[sizeof program_out];
  snprintf(plain, sizeof plain, "%s", program_out);
  assert_has(plain, "only");
  assert_has(plain, "its op is in the allow list");
  assert_code(run_program("amp", "explain", "--model", file), 0);
  assert_string_equal(program_out, plain);
  assert_code(run_program("amp", "explain", "--json", file), 0);
  json_decref(printed_object());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rewrite),
      cmocka_unit_test(many_files),
      cmocka_unit_test(explain),
      cmocka_unit_test(what_belongs_to_train),
      cmocka_unit_test(explain_reads_a_pipe),
      cmocka_unit_test(removed_casts),
      cmocka_unit_test(environment),
      cmocka_unit_test(edits),
      cmocka_unit_test(edits_that_cannot_be),
      cmocka_unit_test(pictures),
      cmocka_unit_test(pictures_of_a_step),
      cmocka_unit_test(a_mixed_policy),
      cmocka_unit_test(a_mixed_policy_in_nested_models),
      cmocka_unit_test(pictures_of_unsorted_nodes),
      cmocka_unit_test(the_models_step),
      cmocka_unit_test(usage),
      cmocka_unit_test(text_of_a_function),
      cmocka_unit_test(a_file_of_a_model),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
