/* The automatic mixed precision rewrite (spec 7.5): which float32 types of a graph become 16-bit, and the
 * casts between them. The graph is not modified; the result describes the changes. */
#pragma once

#include "amp/active_lists.h"

/* TensorFlow's statuses. After any other than OK the graph is unchanged. */
#define MIX_AMP_STATUS_LIST(X)                                                                               \
  X(OK, "ok")                                                                                                \
  X(INVALID_ARGUMENT, "InvalidArgument")                                                                     \
  X(FAILED_PRECONDITION, "FailedPrecondition")                                                               \
  X(INTERNAL, "Internal")
typedef enum mix_amp_status {
#define MIX_AMP_STATUS_ENUM(code, name) MIX_AMP_##code,
  MIX_AMP_STATUS_LIST(MIX_AMP_STATUS_ENUM)
#undef MIX_AMP_STATUS_ENUM
} mix_amp_status;
const char *mix_amp_status_name(mix_amp_status status);

/* Why a type was converted or not. */
typedef enum mix_amp_reason {
  MIX_AMP_UNDECIDED, /* no rule reached it; the report explains why */
  /* converted */
  MIX_AMP_LISTED,       /* its op is in the allow list */
  MIX_AMP_FORCED,       /* UNSAFE_FORCE_ALL */
  MIX_AMP_LIST_ALLOWED, /* its tensor list has the converted member `cause` */
  MIX_AMP_BETWEEN,      /* between the allow ops `cause` and `other` */
  MIX_AMP_BEHIND,       /* an infer op directly after `cause` */
  MIX_AMP_BESIDE,       /* a clear op connected to `cause` through clear ops only */
  MIX_AMP_LOOP_ALLOWED, /* a NextIteration whose Merges are converted */
  MIX_AMP_CAST_ALLOWED, /* a Cast with only converted readers */
  /* not converted */
  MIX_AMP_PRESERVED,   /* fetched or fed */
  MIX_AMP_ELSEWHERE,   /* on a device that the mode does not process */
  MIX_AMP_OLD_GPU,     /* on a GPU older than 7.0 */
  MIX_AMP_DENIED,      /* its op is in the deny list */
  MIX_AMP_REACHED,     /* the deny op `cause` reaches it */
  MIX_AMP_UNSAFE_LIST, /* its tensor list reaches `cause`, beyond which the rewrite cannot see */
  MIX_AMP_LIST_DENIED, /* its tensor list has the denied member `cause` */
  MIX_AMP_LOOP_DENIED, /* the Merge `cause` of its loop edge is not converted */
  MIX_AMP_NOT_TAKEN,   /* on the allow list, but the op cannot take the target type */
} mix_amp_reason;

/* One inserted cast. Its readers are inputs of nodes, and later casts whose `cast` is its number. */
typedef struct mix_amp_cast {
  int cast;                 /* the cast that it reads, or -1 */
  int node, port;           /* the output port that it, or the first cast before it, reads */
  uint8_t dtype;            /* mix_amp_dtype of its result */
  int first_use, use_count; /* in mix_amp_result.uses: inputs of nodes */
} mix_amp_cast;

typedef struct mix_amp_result {
  mix_object object;
  mix_amp_graph *graph;    /* retained */
  mix_amp_options options; /* texts are borrowed: do not read them later */
  mix_amp_dtype target;
  mix_amp_status status;
  char message[512]; /* of the status, or why the graph is unchanged */
  char unknown[200]; /* an op that only an edit of the lists names; "": none */
  bool emulated;     /* dtypes stay and casts round */

  /* By node. */
  uint8_t *class; /* mix_amp_class of the node's op after renaming */
  /* 0: processable; else MIX_AMP_PRESERVED, MIX_AMP_ELSEWHERE or MIX_AMP_OLD_GPU */
  uint8_t *left;
  bool *renamed;
  /* By type. Types of an unused signature have no edges. */
  uint8_t *colour; /* mix_amp_colour bits */
  uint8_t *reason;
  int *cause, *other; /* types; -1: none */
  uint8_t *after;     /* mix_amp_dtype */
  /* By input: the cast that it reads; -1: none. */
  int *input_cast;

  mix_amp_cast *casts; /* sorted by producer and port; a cast comes before its readers */
  int cast_count, cast_capacity;
  int *uses;
  int use_count, use_capacity;
  /* casts_to_target does not count casts of constants and variables */
  int converted_nodes, casts_to_target;
  /* By cast, and by node for the graph's own Casts: the pass that removes it after the rewrite; NULL:
   * none. */
  const char **cast_removed, **node_removed;
  /* only for captured functions, whose shapes are known: saved by smaller results; written by remaining
   * casts */
  int64_t bytes_saved, bytes_cast;
} mix_amp_result;

enum mix_amp_colour { MIX_AMP_COLOUR_ALLOW = 1, MIX_AMP_COLOUR_DENY = 2 };

/* Runs the rewrite on a finished graph, in linear time. A status other than ok is logged as a warning and is
 * not an error. NULL with the error recorded (memory). */
mix_amp_result *mix_amp_rewrite(mix_amp_graph *graph, const mix_amp_options *options);

static inline const mix_amp_signature *mix_amp_signature_of(const mix_amp_result *result, int node) {
  return result->renamed[node] ? &result->graph->nodes[node].renamed : &result->graph->nodes[node].as_is;
}

/* ---- the report (report.c) ---- */

/* "allow", "infer", "deny", "clear", "none". */
const char *mix_amp_class_name(mix_amp_class class);
/* The reason for a type's dtype after the rewrite, as a phrase about its op. Returns `text`. */
const char *mix_amp_explain(const mix_amp_result *result, int type, char *text, size_t size);
/* A table of all ops (list, dtypes before and after, reason), a table of the casts, and totals. Freed with
 * mix_free; NULL with the error recorded. */
char *mix_amp_report(const mix_amp_result *result);
/* graphviz.c: the graph in graphviz's language. Freed with mix_free; NULL with the error recorded. */
/* whole: of the whole step, else of its forward pass. *nodes: how many it draws. */
char *mix_amp_picture(const mix_amp_result *result, bool whole, int *nodes);
