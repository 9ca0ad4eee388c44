/* Graphs of TensorFlow in the format of its recorded rewrites, for `mixtape amp`: reading graphs, writing
 * decisions. */
#pragma once

#include "amp/rewrite.h"

/* A graph with the mode, GPU and environment of its file. */
typedef struct cli_rewrite_case {
  mix_object object;
  const char *name; /* the file's "name" */
  mix_amp_graph *graph;
  mix_amp_options options; /* texts live as long as the case; those of `base` are borrowed */
} cli_rewrite_case;

/* Reads the text of a file. `base` (may be NULL) holds options that the file's mode, gpu and env override.
 * NULL with an error that names file and node: MIX_FORMAT_ERROR if it is not a valid graph. Owned by the
 * scope. */
cli_rewrite_case *cli_rewrite_read(const char *label, const void *data, size_t size,
                                   const mix_amp_options *base);

/* One line of JSON: the name and the fields of the format's `expected`. Freed with mix_free; NULL with the
 * error recorded. */
char *cli_rewrite_text(const cli_rewrite_case *item, const mix_amp_result *result);
/* One line of JSON: every op with its list; dtype before and after and the reason for each of its types;
 * inserted casts; the pass that removes each cast. */
char *cli_explain_text(const cli_rewrite_case *item, const mix_amp_result *result);
/* redundant_casts.c: on a recorded graph no passes run; finds the Casts that "remove_identities" and
 * "simplify_casts" would remove. The result may be NULL. */
void cli_find_redundant_casts(mix_amp_result *result);
