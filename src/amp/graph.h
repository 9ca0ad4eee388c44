/* A graph as the automatic mixed precision rewrite sees it (spec 7.4): nodes, their type vertices, and edges
 * between ports. A type vertex is one type attribute of one node ("T", element 2 of a list "T[2]") or a type
 * that the op fixes ("=int32"). Every port belongs to exactly one vertex. Graphs come from TensorFlow
 * recordings (cli/amp/graph_json.c) and from captured functions (amp/amp_pass.c).
 *
 * To build one, add each node followed by its types, connect the ports, and call finish, which checks. The
 * order of the nodes is part of the graph: pass 4 depends on it. */
#pragma once

#include "base/object.h"
#include "amp/names.h"

/* TensorFlow's dtypes: code, name, quantised. The four floats that a rewrite reads or produces come first. */
#define MIX_AMP_DTYPE_LIST(X)                                                                                \
  X(FLOAT16, "float16", false)                                                                               \
  X(BFLOAT16, "bfloat16", false)                                                                             \
  X(FLOAT32, "float32", false)                                                                               \
  X(FLOAT64, "float64", false)                                                                               \
  X(VARIANT, "variant", false)                                                                               \
  X(RESOURCE, "resource", false)                                                                             \
  X(BOOL, "bool", false)                                                                                     \
  X(STRING, "string", false)                                                                                 \
  X(INT2, "int2", false)                                                                                     \
  X(INT4, "int4", false)                                                                                     \
  X(INT8, "int8", false)                                                                                     \
  X(INT16, "int16", false)                                                                                   \
  X(INT32, "int32", false)                                                                                   \
  X(INT64, "int64", false)                                                                                   \
  X(UINT2, "uint2", false)                                                                                   \
  X(UINT4, "uint4", false)                                                                                   \
  X(UINT8, "uint8", false)                                                                                   \
  X(UINT16, "uint16", false)                                                                                 \
  X(UINT32, "uint32", false)                                                                                 \
  X(UINT64, "uint64", false)                                                                                 \
  X(COMPLEX64, "complex64", false)                                                                           \
  X(COMPLEX128, "complex128", false)                                                                         \
  X(QINT8, "qint8", true)                                                                                    \
  X(QUINT8, "quint8", true)                                                                                  \
  X(QINT16, "qint16", true)                                                                                  \
  X(QUINT16, "quint16", true)                                                                                \
  X(QINT32, "qint32", true)                                                                                  \
  X(FLOAT8_E5M2, "float8_e5m2", false)                                                                       \
  X(FLOAT8_E4M3FN, "float8_e4m3fn", false)                                                                   \
  X(FLOAT8_E4M3FNUZ, "float8_e4m3fnuz", false)                                                               \
  X(FLOAT8_E4M3B11FNUZ, "float8_e4m3b11fnuz", false)                                                         \
  X(FLOAT8_E5M2FNUZ, "float8_e5m2fnuz", false)                                                               \
  X(FLOAT4_E2M1FN, "float4_e2m1fn", false)

typedef enum mix_amp_dtype {
#define MIX_AMP_DTYPE_ENUM(code, name, quantised) MIX_AMP_DTYPE_##code,
  MIX_AMP_DTYPE_LIST(MIX_AMP_DTYPE_ENUM)
#undef MIX_AMP_DTYPE_ENUM
      MIX_AMP_DTYPES
} mix_amp_dtype;

const char *mix_amp_dtype_name(int dtype);
/* -1: no dtype has that name. */
int mix_amp_dtype_of(const char *name);
bool mix_amp_dtype_quantised(int dtype);

typedef struct mix_amp_type {
  const char *id; /* "T", "T[2]", "=int32" */
  int node;
  uint8_t dtype; /* mix_amp_dtype, before the rewrite */
  /* bit 1 << dtype for each of the four floats that the op's definition allows */
  uint8_t allowed;
  /* likewise: a kernel is registered on the node's device for this attribute alone set to the dtype */
  uint8_t kernel;
  bool fixed;     /* by the op: "=float32" */
  bool element;   /* of a list-typed attribute */
  bool reference; /* a mutable reference, such as a TF1 variable */
} mix_amp_type;

/* A node's op with its types: the mapping from ports to vertices. */
typedef struct mix_amp_signature {
  const char *op; /* NULL: the node has no second signature */
  int first_type, type_count;
  int ports; /* in mix_amp_graph.ports: the type of each input, then of each output */
  int output_count;
} mix_amp_signature;

typedef struct mix_amp_node {
  const char *name, *device; /* device: "gpu", "cpu", "/device:GPU:0", "" for unplaced */
  mix_amp_signature as_is;
  mix_amp_signature renamed; /* FusedBatchNorm, FusedBatchNormGrad: the V2 op (spec 7.5, step 1) */
  int first_input, input_count;
  int first_output; /* outputs are numbered across all nodes */
  bool preserved;   /* fetched, fed or kept */
  bool stateful;
  bool function; /* a call of a function in the graph's library */
} mix_amp_node;

typedef struct mix_amp_input {
  int node, source, port; /* the consumer, the producer (-1: not connected) and its output */
} mix_amp_input;

typedef struct mix_amp_graph {
  mix_object object;
  const char *label; /* the file or function, for messages */
  mix_amp_node *nodes;
  int node_count, node_capacity;
  mix_amp_type *types;
  int type_count, type_capacity;
  mix_amp_input *inputs;
  int input_count, input_capacity;
  mix_amp_names names; /* nodes by name */
  /* after finish: */
  int *ports;
  int output_count; /* of all nodes */
  /* by output: where its inputs start in `consumers`; output_count + 1 entries */
  int *first_consumer;
  int *consumers; /* numbers of inputs, in order of nodes */
  /* nodes, producers first (without the edges NextIteration -> Merge) */
  int *order;
  /* while building: */
  struct mix_amp_claim *claims; /* a type claims a port */
  int claim_count, claim_capacity;
  struct mix_amp_control *controls; /* control inputs: relevant only for cycles */
  int control_count, control_capacity;
  struct mix_amp_text *texts; /* memory of names */
} mix_amp_graph;

/* An empty graph, owned by the scope. */
mix_amp_graph *mix_amp_graph_new(const char *label);
/* A copy of a text that lives as long as the graph. */
const char *mix_amp_graph_text(mix_amp_graph *graph, const char *text);

typedef struct mix_amp_node_spec {
  /* copied; renamed: the op of the second signature, or NULL */
  const char *name, *op, *device, *renamed;
  int input_count;
  bool preserved, stateful, function;
} mix_amp_node_spec;
/* The node's number; -1 with the error recorded (duplicate name). */
int mix_amp_graph_add_node(mix_amp_graph *graph, const mix_amp_node_spec *spec);

typedef struct mix_amp_type_spec {
  const char *id; /* copied */
  int dtype;
  unsigned allowed, kernel;
  bool reference;
  /* belongs to the second signature, whose types come after those of the first */
  bool renamed;
  int input_count, output_count;
  const int *inputs, *outputs; /* the ports that have this type */
} mix_amp_type_spec;
/* Adds a type to the latest node. */
bool mix_amp_graph_add_type(mix_amp_graph *graph, const mix_amp_type_spec *spec);
bool mix_amp_graph_connect(mix_amp_graph *graph, int node, int input, int source, int port);
bool mix_amp_graph_control(mix_amp_graph *graph, int node, int source);
/* Checks that every port has one type, that every input has a producer with that port and the same dtype, and
 * that all cycles are loops closed by NextIteration -> Merge. Then builds the tables of ports and consumers.
 * False with an error that names the node. */
bool mix_amp_graph_finish(mix_amp_graph *graph);

static inline int mix_amp_input_type(const mix_amp_graph *graph, const mix_amp_signature *signature,
                                     int input) {
  return graph->ports[signature->ports + input];
}
static inline int mix_amp_output_type(const mix_amp_graph *graph, const mix_amp_node *node,
                                      const mix_amp_signature *signature, int output) {
  return graph->ports[signature->ports + node->input_count + output];
}
