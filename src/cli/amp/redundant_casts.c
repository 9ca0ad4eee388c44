/* Redundant casts in a rewritten recorded graph, as the passes would find them (passes/remove_identities.c,
 * simplify_casts.c): a Cast whose dtypes are now equal, and one that undoes an inserted cast to float32,
 * which is lossless. */
#include "cli/amp/graph_json.h"

#include <string.h>

static int result_type(const mix_amp_result *r, int node, int port) {
  return mix_amp_output_type(r->graph, &r->graph->nodes[node], mix_amp_signature_of(r, node), port);
}

void cli_find_redundant_casts(mix_amp_result *r) {
  /* In emulation casts exist to round. */
  if (!r || r->emulated) return;
  const mix_amp_graph *graph = r->graph;
  for (int n = 0; n < graph->node_count; n++) {
    const mix_amp_node *node = &graph->nodes[n];
    const mix_amp_signature *signature = mix_amp_signature_of(r, n);
    if (strcmp(signature->op, "Cast") != 0 || node->input_count < 1 || signature->output_count != 1) continue;
    const mix_amp_input *input = &graph->inputs[node->first_input];
    const int cast = r->input_cast[node->first_input], to = r->after[result_type(r, n, 0)];
    const int given = r->after[result_type(r, input->source, input->port)];
    if (node->preserved)
      continue;
    else if (cast < 0 && given == to)
      r->node_removed[n] = "remove_identities";
    else if (cast >= 0 && given == to && r->casts[cast].dtype == MIX_AMP_DTYPE_FLOAT32)
      r->node_removed[n] = "simplify_casts";
  }
  for (int c = 0; c < r->cast_count; c++) {
    bool read = false;
    for (int u = r->casts[c].first_use; u < r->casts[c].first_use + r->casts[c].use_count; u++)
      read |= !r->node_removed[graph->inputs[r->uses[u]].node];
    if (!read) r->cast_removed[c] = "dce";
  }
}
