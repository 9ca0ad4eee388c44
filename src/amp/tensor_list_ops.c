/* Tensor lists (spec 7.5, steps 3, 4, 7 and 12). The ops of a list share its handle, a variant, and must
 * agree on the dtype of its elements: ops with connected handles form a cluster of one colour. Elements from
 * a writer reach the readers of the list. These implicit edges are part of the flood fills of view.c. */
#include "base/alloc.h"
#include "base/error.h"
#include "amp/paint.h"

#include <string.h>

static const char *const readers[] = {"TensorListConcat",
                                      "TensorListConcatV2",
                                      "TensorListGather",
                                      "TensorListGetItem",
                                      "TensorListPopBack",
                                      "TensorListStack",
                                      NULL};
static const char *const writers[] = {"TensorListFromTensor",
                                      "TensorListPushBack",
                                      "TensorListPushBackBatch",
                                      "TensorListScatter",
                                      "TensorListScatterV2",
                                      "TensorListSetItem",
                                      "TensorListScatterIntoExistingList",
                                      "TensorListSplit",
                                      NULL};
/* Ops beyond which the list of a handle is unknown. */
static const char *const ends[] = {"_Arg",
                                   "_Retval",
                                   "OptionalFromValue",
                                   "OptionalGetValue",
                                   "PartitionedCall",
                                   "Placeholder",
                                   "StatefulPartitionedCall",
                                   NULL};

static bool among(const char *op, const char *const *ops) {
  for (; *ops; ops++)
    if (!strcmp(op, *ops)) return true;
  return false;
}

/* Determines the role of each node. Returns whether there are tensor lists. */
static bool find_roles(mix_amp_painting *p) {
  bool any = false;
  for (int n = 0; n < p->graph->node_count; n++) {
    const mix_amp_signature *signature = mix_amp_signature_of(p->result, n);
    p->role[n] = MIX_AMP_NO_LIST;
    p->list_float[n] = p->list_handle[n] = -1;
    if (!strstr(signature->op, "TensorList")) continue;
    any = true;
    p->role[n] = among(signature->op, readers)   ? MIX_AMP_LIST_READER
                 : among(signature->op, writers) ? MIX_AMP_LIST_WRITER
                                                 : MIX_AMP_LIST_OTHER;
    for (int t = signature->first_type; t < signature->first_type + signature->type_count; t++) {
      const mix_amp_type *type = &p->graph->types[t];
      if (type->fixed && type->dtype == MIX_AMP_DTYPE_VARIANT && p->list_handle[n] < 0) p->list_handle[n] = t;
      if (!type->fixed && !type->element && mix_amp_is_float32(type) && p->list_float[n] < 0)
        p->list_float[n] = t;
    }
  }
  return any;
}

/* Collects the cluster of a handle, that is everything connected to it. Its list ops become members. If the
 * list is not safe, the root is denied. */
static void collect_cluster(mix_amp_painting *p, int root, int *member_count) {
  int from = p->tail, node = p->graph->types[root].node;
  mix_amp_flood_root(p, root);
  mix_amp_flood_edges(p, MIX_AMP_DOWN | MIX_AMP_UP);
  for (int i = from; i < p->tail; i++) {
    int n = p->graph->types[p->queue[i]].node;
    bool member = p->list_float[n] >= 0;
    if (member && p->list_handle[n] == p->queue[i]) p->members[(*member_count)++] = p->list_float[n];
    bool unsafe = member ? p->result->left[n] != 0
                         : p->graph->nodes[n].function || among(p->graph->nodes[n].as_is.op, ends);
    if (unsafe && !mix_amp_is_deny(p->result, p->list_float[node]))
      mix_amp_set(p->result, p->list_float[node], MIX_AMP_COLOUR_DENY, MIX_AMP_UNSAFE_LIST, p->queue[i], -1);
  }
}

bool mix_amp_find_lists(mix_amp_painting *p) {
  size_t nodes = (size_t)p->graph->node_count + 1;
  p->role = mix_alloc(nodes * sizeof *p->role);
  p->list_float = mix_alloc(nodes * sizeof *p->list_float);
  p->list_handle = mix_alloc(nodes * sizeof *p->list_handle);
  p->first_member = mix_calloc(nodes + 1, sizeof *p->first_member);
  p->members = mix_alloc(nodes * sizeof *p->members);
  if (!p->role || !p->list_float || !p->list_handle || !p->first_member || !p->members) return false;
  if (!find_roles(p)) return true;
  int member_count = 0;
  memset(p->enter, 1, (size_t)p->types);
  mix_amp_flood_clear(p);
  for (int n = 0; n < p->graph->node_count; n++) {
    int handle = p->list_handle[n];
    if (p->result->left[n] || handle < 0 || p->list_float[n] < 0 || p->seen[handle]) continue;
    collect_cluster(p, handle, &member_count);
    p->first_member[++p->lists] = member_count;
  }
  return true;
}

/* One denied member denies all members; otherwise one allowed member allows all. */
void mix_amp_match_lists(mix_amp_painting *p) {
  for (int list = 0; list < p->lists; list++) {
    int first = p->first_member[list], end = p->first_member[list + 1], deny = -1, allow = -1;
    for (int m = first; m < end; m++) {
      if (deny < 0 && mix_amp_is_deny(p->result, p->members[m])) deny = p->members[m];
      if (allow < 0 && mix_amp_is_allow(p->result, p->members[m])) allow = p->members[m];
    }
    for (int m = first; m < end && (deny >= 0 || allow >= 0); m++) {
      int type = p->members[m];
      if (deny >= 0) {
        if (!mix_amp_is_deny(p->result, type))
          mix_amp_set(p->result, type, MIX_AMP_COLOUR_DENY, MIX_AMP_LIST_DENIED, deny, -1);
        p->result->colour[type] &= (uint8_t)~MIX_AMP_COLOUR_ALLOW;
      } else if (!mix_amp_is_allow(p->result, type))
        mix_amp_set(p->result, type, MIX_AMP_COLOUR_ALLOW, MIX_AMP_LIST_ALLOWED, allow, -1);
    }
  }
}
