/* Graphs for tests of the mixed precision rewrite, built node by node. */
#ifndef MIX_TESTS_AMP_AMP_SUPPORT_H
#define MIX_TESTS_AMP_AMP_SUPPORT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "amp/rewrite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  HALF = 1 << MIX_AMP_DTYPE_FLOAT16 | 1 << MIX_AMP_DTYPE_BFLOAT16,
  ANY_FLOAT = HALF | 1 << MIX_AMP_DTYPE_FLOAT32 | 1 << MIX_AMP_DTYPE_FLOAT64
};

static inline bool add_type(mix_amp_graph *graph, const char *id, int dtype, int inputs, int first_input,
                            int outputs, int first_output) {
  int in[8], out[8];
  for (int i = 0; i < inputs; i++) in[i] = first_input + i;
  for (int i = 0; i < outputs; i++) out[i] = first_output + i;
  bool fixed = id[0] == '=';
  return mix_amp_graph_add_type(graph, &(const mix_amp_type_spec){.id = id,
                                                                  .dtype = dtype,
                                                                  .allowed = fixed ? 0 : ANY_FLOAT,
                                                                  .kernel = fixed ? 0 : HALF,
                                                                  .input_count = inputs,
                                                                  .output_count = outputs,
                                                                  .inputs = in,
                                                                  .outputs = out});
}

/* A node with one type T for all its inputs and its one output. Returns the node's index. */
static inline int add(mix_amp_graph *graph, const char *name, const char *op, int inputs) {
  int node = mix_amp_graph_add_node(
      graph, &(const mix_amp_node_spec){.name = name, .op = op, .input_count = inputs});
  return node >= 0 && add_type(graph, "T", MIX_AMP_DTYPE_FLOAT32, inputs, 0, 1, 0) ? node : -1;
}

/* The same, with each input connected to output 0 of a node. */
static inline int chain(mix_amp_graph *graph, const char *name, const char *op, int source) {
  int node = add(graph, name, op, source < 0 ? 0 : 1);
  return node >= 0 && (source < 0 || mix_amp_graph_connect(graph, node, 0, source, 0)) ? node : -1;
}

/* List ops: FromTensor (element in, handle out) and Stack (handle in, element out). */
static inline int add_writer(mix_amp_graph *graph, const char *name, int element) {
  int node = mix_amp_graph_add_node(
      graph, &(const mix_amp_node_spec){.name = name, .op = "TensorListFromTensor", .input_count = 1});
  assert_true(add_type(graph, "=variant", MIX_AMP_DTYPE_VARIANT, 0, 0, 1, 0));
  assert_true(add_type(graph, "element_dtype", MIX_AMP_DTYPE_FLOAT32, 1, 0, 0, 0));
  assert_true(mix_amp_graph_connect(graph, node, 0, element, 0));
  return node;
}
static inline int add_push(mix_amp_graph *graph, const char *name, int handle, int element) {
  int node = mix_amp_graph_add_node(
      graph, &(const mix_amp_node_spec){.name = name, .op = "TensorListPushBack", .input_count = 2});
  assert_true(add_type(graph, "=variant", MIX_AMP_DTYPE_VARIANT, 1, 0, 1, 0));
  assert_true(add_type(graph, "element_dtype", MIX_AMP_DTYPE_FLOAT32, 1, 1, 0, 0));
  assert_true(mix_amp_graph_connect(graph, node, 0, handle, 0) &&
              mix_amp_graph_connect(graph, node, 1, element, 0));
  return node;
}
static inline int add_reader(mix_amp_graph *graph, const char *name, int handle) {
  int node = mix_amp_graph_add_node(
      graph, &(const mix_amp_node_spec){.name = name, .op = "TensorListStack", .input_count = 1});
  assert_true(add_type(graph, "=variant", MIX_AMP_DTYPE_VARIANT, 1, 0, 0, 0));
  assert_true(add_type(graph, "element_dtype", MIX_AMP_DTYPE_FLOAT32, 0, 0, 1, 0));
  assert_true(mix_amp_graph_connect(graph, node, 0, handle, 0));
  return node;
}

static inline mix_amp_options cuda_options(void) {
  return (mix_amp_options){
      .mode = MIX_AMP_CUDA_FLOAT16, .has_gpu = true, .architecture = {8, 0}, .cuda = 11050, .cudnn = 8302};
}

static inline mix_amp_result *rewrite(mix_amp_graph *graph, mix_amp_options options) {
  mix_amp_result *result = mix_amp_rewrite(graph, &options);
  if (!result) fail_msg("%s", mix_error_message());
  return result;
}

/* The dtype of the node's `type`-th type after the rewrite. */
static inline int after(const mix_amp_result *result, int node, int type) {
  return result->after[mix_amp_signature_of(result, node)->first_type + type];
}
static inline bool is_half(const mix_amp_result *result, int node) {
  return after(result, node, 0) == MIX_AMP_DTYPE_FLOAT16;
}

#define assert_error(status, part)                                                                           \
  do {                                                                                                       \
    if (mix_error() != (status) || !strstr(mix_error_message(), part))                                       \
      fail_msg("%s: \"%s\", expected \"%s\"", mix_status_name(mix_error()), mix_error_message(), part);      \
    mix_error_clear();                                                                                       \
  } while (0)

#endif
