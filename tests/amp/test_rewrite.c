/* The rewrite on hand-built graphs, beyond the recorded ones (tests/spec/test_rewrite.c): damaged graphs,
 * reports, devices, out of memory, and linear run time. */
/* Holds docs/NUMERICS.md: The automatic rewrite. */
#include "amp/amp_support.h"

#include <time.h>

/* ---- damaged graphs ---- */

static mix_amp_graph *new_graph(void) { return mix_amp_graph_new("g.json"); }

static void cycles(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_amp_graph *graph = new_graph();
    int before = chain(graph, "before", "Relu", -1), a = add(graph, "a", "Add", 2),
        b = chain(graph, "b", "Relu", a), c = chain(graph, "c", "Relu", b);
    chain(graph, "behind", "Relu", c);
    mix_amp_graph_connect(graph, a, 0, before, 0);
    mix_amp_graph_connect(graph, a, 1, c, 0);
    assert_false(mix_amp_graph_finish(graph));
    assert_non_null(strpbrk(strstr(mix_error_message(), "node '"), "abc")); /* a node of the cycle */
    assert_null(strstr(mix_error_message(), "before"));
    assert_null(strstr(mix_error_message(), "behind"));
    assert_error(MIX_FORMAT_ERROR, "depends on itself");
  }
  MIX_SCOPE { /* a loop's back edge does not count */
    mix_amp_graph *graph = new_graph();
    int merge = add(graph, "merge", "Merge", 1), next = chain(graph, "next", "NextIteration", merge);
    mix_amp_graph_connect(graph, merge, 0, next, 0);
    assert_true(mix_amp_graph_finish(graph));
  }
  MIX_SCOPE { /* control edges count */
    mix_amp_graph *graph = new_graph();
    int a = chain(graph, "a", "Relu", -1), b = chain(graph, "b", "Relu", a);
    assert_true(mix_amp_graph_control(graph, a, b));
    assert_false(mix_amp_graph_finish(graph));
    assert_error(MIX_FORMAT_ERROR, "depends on itself");
  }
}

static void ports_and_names(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_amp_graph *graph = new_graph();
    chain(graph, "a", "Relu", -1);
    assert_int_equal(chain(graph, "a", "Tanh", -1), -1);
    assert_error(MIX_FORMAT_ERROR, "two nodes are named 'a'");
  }
  MIX_SCOPE {
    mix_amp_graph *graph = new_graph();
    int a = chain(graph, "a", "Relu", -1), b = add(graph, "b", "Relu", 1);
    mix_amp_graph_connect(graph, b, 0, a, 1);
    assert_false(mix_amp_graph_finish(graph));
    assert_error(MIX_FORMAT_ERROR, "node 'b': input 0 reads 'a:1', but Relu 'a' has 1 outputs");
  }
  MIX_SCOPE {
    mix_amp_graph *graph = new_graph();
    add(graph, "b", "Relu", 1);
    assert_false(mix_amp_graph_finish(graph));
    assert_error(MIX_FORMAT_ERROR, "node 'b': input 0 is not connected");
  }
  MIX_SCOPE { /* input 1 has no type */
    mix_amp_graph *graph = new_graph();
    mix_amp_graph_add_node(graph, &(const mix_amp_node_spec){.name = "n", .op = "Add", .input_count = 2});
    assert_true(add_type(graph, "T", MIX_AMP_DTYPE_FLOAT32, 1, 0, 1, 0));
    assert_false(mix_amp_graph_finish(graph));
    assert_error(MIX_FORMAT_ERROR, "node 'n': input 1 of Add has no type");
  }
  MIX_SCOPE { /* output 0 has two */
    mix_amp_graph *graph = new_graph();
    mix_amp_graph_add_node(graph, &(const mix_amp_node_spec){.name = "n", .op = "Split"});
    assert_true(add_type(graph, "T", MIX_AMP_DTYPE_FLOAT32, 0, 0, 1, 0) &&
                add_type(graph, "=int32", MIX_AMP_DTYPE_INT32, 0, 0, 2, 0));
    assert_false(mix_amp_graph_finish(graph));
    assert_error(MIX_FORMAT_ERROR, "output 0 has two types, T and =int32");
  }
  MIX_SCOPE {
    mix_amp_graph *graph = new_graph();
    mix_amp_graph_add_node(graph, &(const mix_amp_node_spec){.name = "n", .op = "Split"});
    assert_true(add_type(graph, "T", MIX_AMP_DTYPE_FLOAT32, 0, 0, 1, 1));
    assert_false(mix_amp_graph_finish(graph));
    assert_error(MIX_FORMAT_ERROR, "node 'n': type T has output 1");
  }
  MIX_SCOPE { /* dtypes of the two ends */
    mix_amp_graph *graph = new_graph();
    mix_amp_graph_add_node(graph, &(const mix_amp_node_spec){.name = "i", .op = "Const"});
    add_type(graph, "=int32", MIX_AMP_DTYPE_INT32, 0, 0, 1, 0);
    chain(graph, "r", "Relu", 0);
    assert_false(mix_amp_graph_finish(graph));
    assert_error(MIX_FORMAT_ERROR, "node 'r': input 0 of Relu is float32 (T), but 'i:0' gives int32");
  }
}

/* ---- decisions ---- */

/* a -> MatMul -> f: a graph with one op to convert. */
static mix_amp_graph *product(const char *device, int *node) {
  mix_amp_graph *graph = new_graph();
  int a = chain(graph, "a", "Const", -1);
  *node = mix_amp_graph_add_node(
      graph, &(const mix_amp_node_spec){.name = "m", .op = "MatMul", .device = device, .input_count = 2});
  assert_true(add_type(graph, "T", MIX_AMP_DTYPE_FLOAT32, 2, 0, 1, 0));
  mix_amp_graph_connect(graph, *node, 0, a, 0);
  mix_amp_graph_connect(graph, *node, 1, a, 0);
  int f = chain(graph, "f", "Identity", *node);
  graph->nodes[f].preserved = true;
  assert_true(mix_amp_graph_finish(graph));
  return graph;
}

static void section_7_3_devices(void **state) {
  (void)state;
  static const struct {
    const char *device;
    mix_amp_mode mode;
    bool gpu, simulate, ignore, half;
    int architecture;
  } rows[] = {
      {"/job:worker/device:GPU:0", MIX_AMP_CUDA_FLOAT16, true, false, false, true, 8},
      {"", MIX_AMP_CUDA_FLOAT16, true, false, false, true, 7},
      {"cpu", MIX_AMP_CUDA_FLOAT16, true, false, false, false, 8},
      {"", MIX_AMP_CUDA_FLOAT16, true, false, false, false, 6},
      {"", MIX_AMP_CUDA_FLOAT16, true, false, true, true, 6}, /* IGNORE_PERFORMANCE */
      {"gpu", MIX_AMP_CUDA_FLOAT16, false, false, false, false, 0},
      {"gpu", MIX_AMP_CUDA_FLOAT16, false, true, false, true, 0}, /* SIMULATE_GPU */
      /* With a simulated GPU TensorFlow counts an unplaced node as on the GPU in every mode, against the
       * specification. */
      {"", MIX_AMP_CUDA_FLOAT16, false, true, false, true, 0},
      {"", MIX_AMP_CPU_FLOAT16, false, true, false, false, 0},
      {"", MIX_AMP_ONEDNN_FLOAT16, false, false, false, false, 0}, /* the processor does not support it */
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    MIX_SCOPE {
      int m;
      mix_amp_graph *graph = product(rows[i].device, &m);
      mix_amp_options options = {.mode = rows[i].mode,
                                 .has_gpu = rows[i].gpu,
                                 .architecture = {rows[i].architecture, 0},
                                 .simulate_gpu = rows[i].simulate,
                                 .ignore_performance = rows[i].ignore};
      mix_amp_result *result = rewrite(graph, options);
      assert_int_equal(result->status, MIX_AMP_OK);
      assert_int_equal(is_half(result, m), rows[i].half);
      assert_int_equal(result->cast_count, rows[i].half ? 2 : 0);
    }
  MIX_SCOPE {
    int m;
    mix_amp_graph *graph = product("", &m);
    mix_amp_result *result =
        rewrite(graph, (mix_amp_options){.mode = MIX_AMP_ONEDNN_FLOAT16, .cpu_computes_float16 = true});
    assert_true(is_half(result, m));
  }
}

/* If an edit puts a list reader into the infer list, it follows the writers of its list (pass 4), whatever is
 * between them. */
static void section_7_5_infer_reader_follows_its_writers(void **state) {
  (void)state;
  for (int converted = 0; converted <= 1; converted++)
    MIX_SCOPE {
      mix_amp_graph *graph = new_graph();
      int a = chain(graph, "a", "Const", -1), m = chain(graph, "m", "MatMul", a),
          w = add_writer(graph, "w", a);
      int p = add_push(graph, "p", w, converted ? m : a), r = add_reader(graph, "r", p);
      assert_true(mix_amp_graph_finish(graph));
      mix_amp_options options = cuda_options();
      options.edits[MIX_AMP_EDIT_INFER].add = "TensorListStack,TensorListPushBack";
      options.edits[MIX_AMP_EDIT_CLEAR].remove = "TensorListStack,TensorListPushBack";
      mix_amp_result *result = rewrite(graph, options);
      assert_true(is_half(result, m));
      assert_int_equal(after(result, p, 1) == MIX_AMP_DTYPE_FLOAT16, converted);
      assert_int_equal(after(result, r, 1) == MIX_AMP_DTYPE_FLOAT16, converted);
      char text[256];
      mix_amp_explain(result, mix_amp_signature_of(result, r)->first_type + 1, text, sizeof text);
      if (converted) assert_string_equal(text, "an infer op right behind the converted 'p'");
    }
}

static void section_7_5_next_iteration_without_merge(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_amp_graph *graph = new_graph();
    int m = chain(graph, "m", "MatMul", -1), n = chain(graph, "n", "NextIteration", m);
    chain(graph, "r", "Relu", n);
    assert_true(mix_amp_graph_finish(graph));
    mix_amp_result *result = rewrite(graph, cuda_options());
    assert_int_equal(result->status, MIX_AMP_FAILED_PRECONDITION);
    assert_non_null(strstr(result->message, "'r'"));
    assert_false(is_half(result, m));
    assert_int_equal(result->cast_count, 0);
  }
}

static void section_7_5_references_are_never_forced(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_amp_graph *graph = new_graph();
    int v = mix_amp_graph_add_node(graph, &(const mix_amp_node_spec){.name = "v", .op = "Custom"});
    static const int zero = 0;
    mix_amp_graph_add_type(graph, &(const mix_amp_type_spec){.id = "T",
                                                             .dtype = MIX_AMP_DTYPE_FLOAT32,
                                                             .allowed = ANY_FLOAT,
                                                             .kernel = HALF,
                                                             .reference = true,
                                                             .output_count = 1,
                                                             .outputs = &zero});
    int r = chain(graph, "r", "Relu", v);
    assert_true(mix_amp_graph_finish(graph));
    mix_amp_options options = cuda_options();
    options.level = MIX_AMP_UNSAFE_FORCE_ALL;
    mix_amp_result *result = rewrite(graph, options);
    assert_false(is_half(result, v));
    assert_true(is_half(result, r));
    assert_int_equal(result->cast_count, 1);
  }
}

/* What TensorFlow 2.21 does with x -> FusedBatchNorm -> Tanh: the op is renamed in each mode although nothing
 * is converted, but not if the lists conflict. */
static void batch_norms_stay_renamed(void **state) {
  (void)state;
  static const mix_amp_mode modes[] = {MIX_AMP_CUDA_FLOAT16, MIX_AMP_CPU_FLOAT16, MIX_AMP_ONEDNN_BFLOAT16};
  for (int i = 0; i < 4; i++)
    MIX_SCOPE {
      const bool conflict = i == 3;
      mix_amp_graph *graph = new_graph();
      int x = chain(graph, "x", "Placeholder", -1);
      int norm = mix_amp_graph_add_node(
          graph, &(const mix_amp_node_spec){
                     .name = "bn", .op = "FusedBatchNorm", .renamed = "FusedBatchNormV2", .input_count = 2});
      assert_true(add_type(graph, "T", MIX_AMP_DTYPE_FLOAT32, 2, 0, 1, 0));
      static const int ports[] = {0, 1};
      for (int t = 0; t < 2; t++)
        assert_true(mix_amp_graph_add_type(graph, &(const mix_amp_type_spec){.id = t ? "U" : "T",
                                                                             .renamed = true,
                                                                             .dtype = MIX_AMP_DTYPE_FLOAT32,
                                                                             .allowed = ANY_FLOAT,
                                                                             .kernel = HALF,
                                                                             .input_count = 1,
                                                                             .output_count = !t,
                                                                             .inputs = ports + t,
                                                                             .outputs = ports}));
      for (int input = 0; input < 2; input++) assert_true(mix_amp_graph_connect(graph, norm, input, x, 0));
      chain(graph, "t", "Tanh", norm);
      assert_true(mix_amp_graph_finish(graph));
      mix_amp_options options = cuda_options();
      if (!conflict) options.mode = modes[i];
      if (conflict) options.edits[MIX_AMP_EDIT_ALLOW].add = "Exp";
      options.has_gpu = options.mode == MIX_AMP_CUDA_FLOAT16;
      mix_amp_result *result = rewrite(graph, options);
      assert_int_equal(result->status, conflict ? MIX_AMP_INVALID_ARGUMENT : MIX_AMP_OK);
      assert_int_equal(result->renamed[norm], !conflict);
      assert_int_equal(result->cast_count, 0);
      for (int t = 0; t < (conflict ? 1 : 2); t++)
        assert_int_equal(after(result, norm, t), MIX_AMP_DTYPE_FLOAT32);
    }
}

/* ---- reports ---- */

static void reasons(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_amp_graph *graph = new_graph();
    int a = chain(graph, "a", "Const", -1), relu = chain(graph, "relu1", "Relu", a),
        m = chain(graph, "m1", "MatMul", relu);
    int tanh = chain(graph, "tanh1", "Tanh", m), relu2 = chain(graph, "relu2", "Relu", tanh),
        m2 = chain(graph, "m2", "MatMul", relu2);
    int bias = chain(graph, "bias1", "BiasAdd", m2), e = chain(graph, "exp1", "Exp", bias),
        s = chain(graph, "sqrt1", "Sqrt", e);
    int sin = chain(graph, "sin1", "Sin", s), alone = chain(graph, "relu3", "Relu", sin),
        log = chain(graph, "log1", "Log", alone);
    int f = chain(graph, "f", "Identity", log);
    graph->nodes[f].preserved = true;
    assert_true(mix_amp_graph_finish(graph));
    mix_amp_result *result = rewrite(graph, cuda_options());
    const struct {
      int node;
      const char *reason;
    } rows[] = {{a, "a constant, which is cast where it is read"},
                {relu, "a clear op that clear ops join to the converted 'm1'"},
                {m, "its op is in the allow list"},
                {tanh, "lies between the allow ops 'm1' and 'm2'"},
                {relu2, "lies between the allow ops 'm1' and 'm2'"},
                {bias, "an infer op right behind the converted 'm2'"},
                {e, "its op is in the deny list"},
                {s, "the deny op 'exp1' reaches it"},
                {sin, "its op is in no list"},
                {alone, "no clear ops join it to a converted op (a variable's Identity is never converted)"},
                {log, "an infer op neither between allow ops nor right behind a converted one"},
                {f, "fetched, fed or kept: its dtype stays"}};
    char text[512];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
      assert_string_equal(
          mix_amp_explain(result, graph->nodes[rows[i].node].as_is.first_type, text, sizeof text),
          rows[i].reason);
    for (size_t size = 1; size < 60; size++) { /* cut at the size of the buffer */
      char *exact = malloc(size);
      assert_true(strlen(mix_amp_explain(result, graph->nodes[tanh].as_is.first_type, exact, size)) < size);
      free(exact);
    }
    char *table = mix_amp_report(result);
    assert_non_null(table);
    int lines = 0;
    for (const char *p = table; *p; p++) lines += *p == '\n';
    /* heading, nodes; an empty line, heading, casts; an empty line, totals */
    assert_int_equal(lines, 1 + 13 + 4 + 3);
    assert_non_null(strstr(
        table,
        "converted 6 of 13 nodes, inserted 2 casts (0 to float16 besides those of constants and variables)"));
    mix_free(table);
  }
}

/* ---- memory and time ---- */

static void every_allocation_may_fail(void **state) {
  (void)state;
  bool whole = false;
  for (int64_t k = 0; !whole; k++) {
    assert_true(k < 10000);
    MIX_SCOPE {
      mix_inject_allocation_failure(k);
      mix_amp_graph *graph = mix_amp_graph_new("g");
      int a = graph ? chain(graph, "a", "Const", -1) : -1, m = a < 0 ? -1 : chain(graph, "m", "MatMul", a),
          r = m < 0 ? -1 : chain(graph, "r", "Relu", m);
      mix_amp_options options = {.mode = MIX_AMP_CPU_FLOAT16};
      mix_amp_result *result =
          r >= 0 && mix_amp_graph_finish(graph) ? mix_amp_rewrite(graph, &options) : NULL;
      char *table = result ? mix_amp_report(result) : NULL;
      mix_inject_allocation_failure(-1);
      whole = table != NULL;
      assert_int_equal(mix_error(), whole ? MIX_OK : MIX_MEMORY_ERROR);
      mix_free(table);
    }
    mix_error_clear();
  }
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* processor time: other processes do not count */
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

enum { LARGE = 100000 };

/* A hundred thousand nodes: chains of all classes, fan-outs of a thousand, and a list with as many writers as
 * readers, where an edge for each pair would be 10^8. Returns the processor seconds of the rewrite alone. */
static double rewrite_large(mix_amp_options options, int *converted) {
  static const char *const ops[] = {"MatMul",  "Relu", "Tanh", "Exp",    "Identity",
                                    "Reshape", "Add",  "Sin",  "Conv2D", "Sqrt"};
  double took = 0;
  MIX_SCOPE {
    mix_amp_graph *graph = mix_amp_graph_new("large");
    char name[32];
    int source = chain(graph, "source", "Const", -1), handle = add_writer(graph, "list", source),
        last = source;
    for (int i = 0; graph->node_count < LARGE; i++) {
      snprintf(name, sizeof name, "n%d", i);
      if (i % 10 == 8)
        handle = add_push(graph, name, handle, last);
      else if (i % 10 == 9)
        add_reader(graph, name, handle);
      else
        last = chain(graph, name, ops[((uint32_t)i * 2654435761u >> 20) % 10], i % 1000 ? last : source);
    }
    if (!mix_amp_graph_finish(graph)) fail_msg("%s", mix_error_message());
    double start = seconds();
    mix_amp_result *result = rewrite(graph, options);
    took = seconds() - start;
    *converted = result->converted_nodes;
    assert_int_equal(result->status, MIX_AMP_OK);
  }
  return took;
}

static void a_hundred_thousand_nodes(void **state) {
  (void)state;
  mix_amp_options edited = cuda_options(), emulated = {.mode = MIX_AMP_CPU_FLOAT16};
  /* Readers that pass 4 visits one by one. */
  edited.edits[MIX_AMP_EDIT_INFER].add = "TensorListStack,TensorListPushBack";
  edited.edits[MIX_AMP_EDIT_CLEAR].remove = "TensorListStack,TensorListPushBack";
  edited.edits[MIX_AMP_EDIT_DENY].remove = "Exp";
  const mix_amp_options rows[] = {cuda_options(), emulated, edited};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const double limit = 5.0;
#else
  const double limit = 0.5; /* the required limit; about 30 ms are usual */
#endif
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int converted;
    double took = rewrite_large(rows[i], &converted);
    assert_true(converted > LARGE / 10);
    if (took > limit) fail_msg("options %d: %.3f s", (int)i, took);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cycles),
      cmocka_unit_test(ports_and_names),
      cmocka_unit_test(section_7_3_devices),
      cmocka_unit_test(section_7_5_infer_reader_follows_its_writers),
      cmocka_unit_test(section_7_5_next_iteration_without_merge),
      cmocka_unit_test(section_7_5_references_are_never_forced),
      cmocka_unit_test(batch_norms_stay_renamed),
      cmocka_unit_test(reasons),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(a_hundred_thousand_nodes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
