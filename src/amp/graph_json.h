/* Graphs of the mixed precision rewrite in the recorded format (reference/rewrite/README.md): reading graphs,
 * writing decisions. */
#ifndef MIX_AMP_GRAPH_JSON_H
#define MIX_AMP_GRAPH_JSON_H

#include "amp/rewrite.h"

/* A graph with the mode, GPU and environment of its file. */
typedef struct mix_rewrite_case {
  mix_object object;
  const char *name; /* the file's "name" */
  mix_amp_graph *graph;
  mix_amp_options options; /* texts live as long as the case; those of `base` are borrowed */
} mix_rewrite_case;

/* Reads a file. `base` (may be NULL) holds options that the file's mode, gpu and env override. NULL with an
 * error that names file and node: MIX_IO_ERROR if the file cannot be read, MIX_FORMAT_ERROR if it is not a
 * valid graph. Owned by the scope. */
mix_rewrite_case *mix_rewrite_read(const char *path, const mix_amp_options *base);
mix_rewrite_case *mix_rewrite_read_memory(const char *label, const void *data, size_t size,
                                          const mix_amp_options *base);

/* One line of JSON: the name and the fields of the format's `expected`. Freed with mix_free; NULL with the
 * error recorded. */
char *mix_rewrite_result_text(const mix_rewrite_case *item, const mix_amp_result *result);
/* One line of JSON: every op with its list; dtype before and after and the reason for each of its types;
 * inserted casts; the pass that removes each cast. */
char *mix_rewrite_explain_text(const mix_rewrite_case *item, const mix_amp_result *result);

#endif
