/* A weight map: which tensor of a safetensors file becomes which weight, for files that another library
 * wrote under names and with axes of its own, and for files that are written so. */
#pragma once

#include <mixtape/tensor.h>

typedef struct mix_weight_map mix_weight_map; /* an object */

/* What a weight is made of. */
typedef struct mix_mapped_weight {
  const char *tensor; /* the name, in the scope */
  /* The tensor is the `part`-th of so many equal ones along that axis; parts 0: all of it. */
  int axis;
  int64_t part, parts;
  int rank; /* of the transposition, which comes next; 0: none */
  int transpose[MIX_MAX_RANK];
  bool reshape; /* then to the weight's shape, row by row */
  /* Where the map says so: how many axes of the weight each axis before the reshape holds. 0: it does not. */
  int joined_rank;
  int joined[MIX_MAX_RANK];
} mix_mapped_weight;

/* Reads the map of a file, as docs/manual/safetensors.md describes it, or the library's own of that name.
 * Scoped. ValueError, which names the rule, for what is no map. `call` begins messages. */
mix_weight_map *mix_weight_map_read(const char *path, const char *call);
/* known_weight_maps.c: the text of the library's map of that name, as a file would have it; NULL: none. */
const char *mix_known_weight_map(const char *name);
typedef bool mix_has_tensor(const void *context, const char *tensor);
/* What the first rule that fits the weight's name says; its own name where none fits, or `map` is NULL. Of
 * several names of a tensor that which `has` says is there, or the first. False with the error recorded. */
bool mix_weight_map_find(const mix_weight_map *map, const char *weight, mix_has_tensor *has,
                         const void *context, mix_mapped_weight *found);
/* May the tensor be left out? `equal` becomes the name of the tensor whose values it must have for that, in
 * the scope, or NULL. */
bool mix_weight_map_leaves(const mix_weight_map *map, const char *tensor, mix_has_tensor *has,
                           const void *context, const char **equal);
/* The tensor as the weight gets it. NULL with the error recorded. */
mix_tensor *mix_mapped_weight_value(const mix_mapped_weight *mapped, mix_tensor *tensor, mix_shape shape);
/* The shape before the reshape of a weight of that shape; rank -1: the map joins another number of axes. */
mix_shape mix_mapped_weight_joined(const mix_mapped_weight *mapped, mix_shape weight);
enum { MIX_MAX_PARTS = 1024 };
/* unmap_weights.c: the tensors of which the map makes these weights, evaluated or not: names and values, at
 * most `count`, into arrays of the caller; all in the scope. The first of several names counts, without
 * prefixes. Returns how many; -1 with the error recorded, which names the weight: the map cannot be reversed.
 */
int mix_unmap_weights(const mix_weight_map *map, int count, const char *const *weights,
                      mix_tensor *const *values, const char **names, mix_tensor **tensors);
/* Does it take the tensor as it is? */
bool mix_mapped_weight_is_plain(const mix_mapped_weight *mapped);
