/* Symbol tables of HDF5 groups: a heap of names, leaves of links, a B-tree over the leaves. */
#include "base/alloc.h"
#include "formats/hdf5_encode.h"
#include "formats/hdf5_inside.h"
#include <string.h>

enum {
  LEAF_LINKS = 2 * MIX_HDF5_LEAF_K,
  LEAF_SIZE = 8 + 40 * LEAF_LINKS,
  NODE_CHILDREN = 2 * MIX_HDF5_TREE_K,
  NODE_SIZE = 24 + 8 * (2 * NODE_CHILDREN + 1)
};

/* A leaf or a node: where it lies, and its greatest name as a place in the heap. */
typedef struct child {
  uint64_t address, last;
} child;

/* Room that a reader takes for used once more entries come. */
static void fill_up(mix_hdf5_buffer *block, size_t begin, size_t size) {
  if (!block->failed) mix_hdf5_put_zeros(block, begin + size - block->size);
}

/* ---- names ---- */

static size_t padded(size_t size) { return (size + 7) / 8 * 8; }

/* The place of each name: the empty one first, which is less than all. */
static void put_names(mix_hdf5_buffer *block, mix_hdf5_object *group, uint64_t *places) {
  uint64_t size = 8;
  for (int i = 0; i < group->count; i++) {
    places[i] = size;
    size += padded(strlen(group->members[i]->name) + 1);
  }
  group->heap = mix_hdf5_here(block);
  mix_hdf5_put(block, "HEAP\0\0\0", 8);
  mix_hdf5_put_number(block, size, 8);
  mix_hdf5_put_number(block, 1, 8); /* nothing is free */
  mix_hdf5_put_number(block, group->heap + 32, 8);
  mix_hdf5_put_zeros(block, 8);
  for (int i = 0; i < group->count; i++) {
    mix_hdf5_put(block, group->members[i]->name, strlen(group->members[i]->name) + 1);
    mix_hdf5_align(block);
  }
}

/* ---- leaves ---- */

static void put_leaf(mix_hdf5_buffer *block, mix_hdf5_object *const *members, const uint64_t *places,
                     int count) {
  const size_t begin = block->size;
  mix_hdf5_put(block, "SNOD\1", 6);
  mix_hdf5_put_number(block, (uint64_t)count, 2);
  for (int i = 0; i < count; i++) {
    mix_hdf5_put_number(block, places[i], 8);
    mix_hdf5_put_number(block, members[i]->header, 8);
    mix_hdf5_put_zeros(block, 24);
  }
  fill_up(block, begin, LEAF_SIZE);
}

/* How many leaves. */
static int put_leaves(mix_hdf5_buffer *block, const mix_hdf5_object *group, const uint64_t *places,
                      child *leaves) {
  int count = 0;
  for (int first = 0; first < group->count; first += LEAF_LINKS) {
    const int links = group->count - first < LEAF_LINKS ? group->count - first : LEAF_LINKS;
    leaves[count++] = (child){mix_hdf5_here(block), places[first + links - 1]};
    put_leaf(block, group->members + first, places + first, links);
  }
  return count;
}

/* ---- the tree ---- */

/* `before`: the greatest name before the node's children. */
static void put_node(mix_hdf5_buffer *block, int level, const child *children, int count, uint64_t before,
                     bool is_first, bool is_last) {
  const size_t begin = block->size;
  const uint64_t here = mix_hdf5_here(block);
  mix_hdf5_put(block, "TREE", 5);
  mix_hdf5_put_number(block, (uint64_t)level, 1);
  mix_hdf5_put_number(block, (uint64_t)count, 2);
  mix_hdf5_put_number(block, is_first ? MIX_HDF5_NOWHERE : here - NODE_SIZE, 8);
  mix_hdf5_put_number(block, is_last ? MIX_HDF5_NOWHERE : here + NODE_SIZE, 8);
  mix_hdf5_put_number(block, before, 8);
  for (int i = 0; i < count; i++) {
    mix_hdf5_put_number(block, children[i].address, 8);
    mix_hdf5_put_number(block, children[i].last, 8);
  }
  fill_up(block, begin, NODE_SIZE);
}

/* The nodes of a level take the place of their children. Returns how many. */
static int put_level(mix_hdf5_buffer *block, int level, child *children, int count) {
  int nodes = 0;
  uint64_t before = 0;
  for (int first = 0; first < count || !nodes; first += NODE_CHILDREN) {
    const int left = count - first, used = left < NODE_CHILDREN ? left : NODE_CHILDREN;
    const child node = {mix_hdf5_here(block), used ? children[first + used - 1].last : 0};
    put_node(block, level, children + first, used, before, first == 0, left <= NODE_CHILDREN);
    before = node.last;
    children[nodes++] = node;
  }
  return nodes;
}

bool mix_hdf5_put_links(mix_hdf5_buffer *block, mix_hdf5_object *group) {
  uint64_t *places = mix_alloc(((size_t)group->count + 1) * sizeof *places);
  child *children = mix_alloc(((size_t)group->count / LEAF_LINKS + 2) * sizeof *children);
  if (places && children) {
    put_names(block, group, places);
    int count = put_leaves(block, group, places, children), level = 0;
    do count = put_level(block, level++, children, count);
    while (count > 1);
    group->tree = children[0].address;
  }
  mix_free(places);
  mix_free(children);
  return places && children && !block->failed;
}
