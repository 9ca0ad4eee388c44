/* Options of the rewrite (mode, level, list edits) from a struct or from TensorFlow's environment variables,
 * and the resulting four lists (spec 7.2 and 8). */
#pragma once

#include "amp/graph.h"
#include "graph/op.h"

/* The lists of the automatic mixed precision rewrite (docs/spec/mixed_precision.md, 8). The float16
 * and bfloat16 variants differ. */
typedef enum mix_amp_class {
  MIX_AMP_NONE,
  MIX_AMP_ALLOW,
  MIX_AMP_INFER,
  MIX_AMP_DENY,
  MIX_AMP_CLEAR
} mix_amp_class;

#define MIX_AMP_ENVIRONMENT "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_"

typedef enum mix_amp_mode {
  MIX_AMP_CUDA_FLOAT16,    /* nodes on a GPU of compute capability 7.0 or newer */
  MIX_AMP_CPU_FLOAT16,     /* nodes on the CPU, emulated by default */
  MIX_AMP_ONEDNN_BFLOAT16, /* nodes on the CPU */
  MIX_AMP_ONEDNN_FLOAT16,  /* nodes on the CPU, if it computes in float16 */
  MIX_AMP_MODES
} mix_amp_mode;
/* "cuda_float16", "cpu_float16", "onednn_bfloat16", "onednn_float16" */
const char *mix_amp_mode_name(mix_amp_mode mode);
/* -1: unknown */
int mix_amp_mode_of(const char *name);
/* MIX_AMP_DTYPE_FLOAT16 or MIX_AMP_DTYPE_BFLOAT16. */
mix_amp_dtype mix_amp_mode_target(mix_amp_mode mode);

typedef enum mix_amp_level {
  MIX_AMP_LEVEL_NORMAL,
  MIX_AMP_TENSOR_CORES_ONLY, /* float16 modes except oneDNN: only the allow list */
  MIX_AMP_UNSAFE_FORCE_ALL,  /* every op that can be forced */
  MIX_AMP_TREAT_INFER_AS_DENY,
} mix_amp_level;
const char *mix_amp_level_name(mix_amp_level level); /* NULL: normal */

/* The current list names, then the older spellings, which are applied after them. */
enum {
  MIX_AMP_EDIT_ALLOW,
  MIX_AMP_EDIT_INFER,
  MIX_AMP_EDIT_DENY,
  MIX_AMP_EDIT_CLEAR,
  MIX_AMP_EDIT_WHITE,
  MIX_AMP_EDIT_GRAY,
  MIX_AMP_EDIT_BLACK,
  MIX_AMP_EDITS
};
extern const char *const mix_amp_edit_names[MIX_AMP_EDITS]; /* "ALLOWLIST", ... */
const char *mix_amp_class_list(mix_amp_class class);        /* the current name of its list */
typedef struct mix_amp_edit {
  /* comma-separated op names, blanks not trimmed; NULL: none. Additions come first. */
  const char *add, *remove;
} mix_amp_edit;

typedef struct mix_amp_options {
  mix_amp_mode mode;
  mix_amp_level level;
  mix_amp_edit edits[MIX_AMP_EDITS];
  bool has_gpu;
  int architecture[2];       /* of the GPU: {8, 0} */
  int cuda, cudnn;           /* 11050, 8302; 0: unknown */
  bool ignore_performance;   /* accept an old GPU */
  bool simulate_gpu;         /* without a GPU, assume one with capability 8.0, CUDA 11050 and cuDNN 8302 */
  bool no_emulation;         /* CPU mode: change dtypes instead of adding rounding casts */
  bool cpu_computes_float16; /* oneDNN float16: the processor supports it */
  const char *log_path;      /* a directory where the lists are written; NULL: none */
} mix_amp_options;

/* Sets an option from a variable ("LEVEL", "ALLOWLIST_ADD", ...; without the prefix). The value is borrowed.
 * As in TensorFlow an unknown name or level is ignored, with a warning that lists the known ones. False with
 * the error recorded if a boolean is invalid. */
bool mix_amp_options_set(mix_amp_options *options, const char *name, const char *value);
/* Reads the environment variables with that prefix. Their values must not change while the options are in
 * use. */
bool mix_amp_options_from_environment(mix_amp_options *options);
/* A hash of those variables. */
uint64_t mix_amp_environment_key(void);
/* "7.5" or "7": {7, 5}, {7, 0}; anything else {0, 0}. */
void mix_amp_parse_architecture(const char *text, int architecture[2]);
/* A version number; 0: invalid. */
int mix_amp_parse_version(const char *text);

typedef struct mix_amp_lists {
  mix_amp_names classes; /* op -> bits 1 << mix_amp_class, more than one if lists conflict */
  char *texts;           /* names from edits */
  int text_used;
  bool infer_denies;    /* LEVEL=TREAT_INFER_AS_DENY: infer ops count as deny ops */
  const char *conflict; /* an op in two lists, or NULL */
  const char *unknown;  /* the first edited op that is in no list and in no node of the graph, or NULL */
} mix_amp_lists;

/* The edited lists of a mode. Warns of edited ops that are in no list and, if a graph is given, in no node of
 * it. The texts of the options are copied. False with the error recorded; call free in either case. */
bool mix_amp_lists_make(mix_amp_lists *lists, const mix_amp_options *options, const mix_amp_graph *graph);
void mix_amp_lists_free(mix_amp_lists *lists);
mix_amp_class mix_amp_lists_class(const mix_amp_lists *lists, const char *op);
/* All lists that contain the op, as bits 1 << mix_amp_class. */
int mix_amp_lists_classes(const mix_amp_lists *lists, const char *op);
/* The ops of one list in alphabetical order. The caller frees the array; the lists own the names. NULL with
 * the error recorded. */
const char **mix_amp_lists_ops(const mix_amp_lists *lists, mix_amp_class class, int *count);
/* Writes paintbuckets_AutoMixedPrecision_<id>_<ms>.txt to options->log_path, as TensorFlow does after the
 * pass: the edited lists, independent of the level. */
bool mix_amp_lists_write(const mix_amp_lists *lists, const mix_amp_options *options, const char *id);
