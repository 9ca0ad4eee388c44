/* Moves the start of an exchange to where its operand is ready and the wait for it to where its result is
 * read, so that what is computed between hides it. Collectives keep their order. */
#include "passes/passes.h"

#include <stdlib.h>
#include <string.h>

/* Nodes are sorted by `key`, then by their present place. Place p of another node has the key 4 p. */
typedef struct place {
  int64_t key;
  int node;
} place;

static int64_t after(int node) { return 4 * (int64_t)node + 2; }
static int64_t before(int node) { return 4 * (int64_t)node - 1; }

static bool is_collective(const mix_ir *ir, int n) {
  return !ir->nodes[n].dead && mix_op_is_collective(ir->nodes[n].op);
}

/* By collective: as soon as its operands and the collective before it are there. */
static void find_earliest(const mix_ir *ir, int64_t *earliest) {
  int64_t latest = INT64_MIN;
  for (int n = 0; n < ir->node_count; n++) {
    if (!is_collective(ir, n)) continue;
    for (int i = 0; i < ir->nodes[n].input_count; i++) {
      const int producer = mix_ir_producer(ir, ir->nodes[n].inputs[i]);
      const int64_t ready = is_collective(ir, producer) ? earliest[producer] : after(producer);
      if (ready > latest) latest = ready;
    }
    earliest[n] = latest;
  }
}

/* By node: the first other node that reads one of its results; node_count: none. */
static void find_readers(const mix_ir *ir, int *reader) {
  for (int n = 0; n < ir->node_count; n++) reader[n] = ir->node_count;
  for (int n = ir->node_count - 1; n >= 0; n--) {
    const mix_ir_node *node = &ir->nodes[n];
    if (node->dead || is_collective(ir, n)) continue;
    for (int i = 0; i < node->input_count; i++) reader[mix_ir_producer(ir, node->inputs[i])] = n;
    const int guard = node->guard >= 0 ? node->guard : node->guard_key;
    if (guard >= 0) reader[mix_ir_producer(ir, guard)] = n;
  }
}

/* A collective that only waits comes as late as its reader and the next collective allow. */
static void place_collectives(const mix_ir *ir, const int64_t *earliest, const int *reader, place *places) {
  int64_t next = INT64_MAX;
  for (int n = ir->node_count - 1; n >= 0; n--) {
    if (!is_collective(ir, n)) continue;
    int64_t key = earliest[n];
    if (ir->nodes[n].op->flags & MIX_OP_WAITS) {
      const int64_t read = before(reader[n]);
      key = read < next ? read : next;
      if (key < earliest[n]) key = earliest[n];
    }
    places[n].key = next = key;
  }
}

static int compare(const void *x, const void *y) {
  const place *a = x, *b = y;
  return a->key != b->key ? (a->key > b->key) - (a->key < b->key) : a->node - b->node;
}

static void reorder(mix_ir *ir, const place *places, mix_ir_node *sorted) {
  for (int i = 0; i < ir->node_count; i++) {
    sorted[i] = ir->nodes[places[i].node];
    for (int o = 0; o < sorted[i].output_count; o++) ir->values[sorted[i].first_output + o].node = i;
  }
  memcpy(ir->nodes, sorted, sizeof *sorted * (size_t)ir->node_count);
}

bool mix_pass_overlap_collectives(mix_ir *ir) {
  const int count = ir->node_count;
  bool any = false;
  for (int n = 0; n < ir->node_count; n++) any = any || is_collective(ir, n);
  if (!any) return true;
  place *places = mix_ir_array(ir, count + 1, sizeof *places);
  int64_t *earliest = mix_ir_array(ir, count + 1, sizeof *earliest);
  int *reader = mix_ir_ints(ir, count + 1);
  mix_ir_node *sorted = mix_ir_array(ir, count + 1, sizeof *sorted);
  if (!places || !earliest || !reader || !sorted) return false;
  for (int n = 0; n < ir->node_count; n++) places[n] = (place){4 * (int64_t)n, n};
  find_earliest(ir, earliest);
  find_readers(ir, reader);
  place_collectives(ir, earliest, reader, places);
  qsort(places, (size_t)count, sizeof *places, compare);
  reorder(ir, places, sorted);
  return true;
}
