/* Inside the rewrite: colours of types, edges between types, tensor lists, flood fills. */
#pragma once

#include "amp/rewrite.h"

typedef struct mix_amp_painting {
  mix_amp_result *result;
  const mix_amp_graph *graph;
  int types;      /* vertices */
  uint8_t *class; /* by type: mix_amp_class of its op; none if its signature is not in use */
  bool *open;     /* by type: the node may be processed and uses this signature */
  /* Edges: the types that a type reads (fanin), and the types that read it (fanout). */
  int *first_fanin, *fanins, *first_fanout, *fanouts;
  bool *reads_variable; /* by node: Identity of a TF1 variable, or Enter of such an Identity */
  /* Tensor lists. By node: role, float32 type of the elements, and type of the handle (-1: none). */
  uint8_t *role; /* mix_amp_list_role */
  int *list_float, *list_handle;
  /* clusters: float types of list ops with connected handles */
  int *first_member, *members, lists;
  /* Flood fill scratch. States: a type; types + handle: a handle passed downstream; 2 types + handle:
   * upstream. */
  int *queue, *origin;   /* origin: the root that reached a state first */
  uint8_t *seen, *enter; /* enter, by type: may be entered */
  int head, tail;
} mix_amp_painting;

enum mix_amp_list_role { MIX_AMP_NO_LIST, MIX_AMP_LIST_OTHER, MIX_AMP_LIST_READER, MIX_AMP_LIST_WRITER };

enum { MIX_AMP_DOWN = 1, MIX_AMP_UP = 2 };

/* view.c: edges, variables, flood fills. */
bool mix_amp_painting_make(mix_amp_painting *painting, mix_amp_result *result);
void mix_amp_painting_free(mix_amp_painting *painting);
/* Clear resets a flood fill, root adds a start, and flood spreads from the roots through types with `enter`,
 * also along the implicit edges from list writers to list readers. seen[type]: it was reached (roots too);
 * origin[type]: from which root. */
void mix_amp_flood_clear(mix_amp_painting *painting);
void mix_amp_flood_root(mix_amp_painting *painting, int type);
void mix_amp_flood(mix_amp_painting *painting, int directions);
/* Likewise, but only along explicit edges, without those implied by lists. */
void mix_amp_flood_edges(mix_amp_painting *painting, int directions);

/* tensor_list_ops.c: clusters (step 3), their colours (steps 7 and 12). */
bool mix_amp_find_lists(mix_amp_painting *painting);
void mix_amp_match_lists(mix_amp_painting *painting);

/* paint.c: steps 5 to 14. False: the error is recorded, or the result's status gives the reason. */
bool mix_amp_paint(mix_amp_painting *painting);

/* insert_casts.c: step 15. False with the error recorded. */
bool mix_amp_materialise(mix_amp_result *result);

static inline bool mix_amp_is_float32(const mix_amp_type *type) {
  return type->dtype == MIX_AMP_DTYPE_FLOAT32 && !type->reference;
}
/* Does the type belong to the signature that its node uses? */
static inline bool mix_amp_in_force(const mix_amp_result *result, int type) {
  const mix_amp_signature *signature = mix_amp_signature_of(result, result->graph->types[type].node);
  return type >= signature->first_type && type < signature->first_type + signature->type_count;
}
/* Does the op's definition allow the target? */
static inline bool mix_amp_takes(const mix_amp_result *result, int type) {
  return result->graph->types[type].allowed >> result->target & 1;
}
static inline bool mix_amp_supports(const mix_amp_result *result, int type) {
  return mix_amp_takes(result, type) && result->graph->types[type].kernel >> result->target & 1;
}
static inline bool mix_amp_is_allow(const mix_amp_result *result, int type) {
  return result->colour[type] & MIX_AMP_COLOUR_ALLOW;
}
static inline bool mix_amp_is_deny(const mix_amp_result *result, int type) {
  return result->colour[type] & MIX_AMP_COLOUR_DENY;
}

static inline void mix_amp_set(mix_amp_result *result, int type, uint8_t colour, mix_amp_reason reason,
                               int cause, int other) {
  result->colour[type] |= colour;
  result->reason[type] = (uint8_t)reason;
  result->cause[type] = cause;
  result->other[type] = other;
}
static inline void mix_amp_unset(mix_amp_result *result, int type, mix_amp_reason reason, int cause) {
  result->colour[type] &= (uint8_t)~MIX_AMP_COLOUR_ALLOW;
  result->reason[type] = (uint8_t)reason;
  result->cause[type] = cause;
  result->other[type] = -1;
}
