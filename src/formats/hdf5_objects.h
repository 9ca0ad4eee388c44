/* What an HDF5 file in the making holds: groups, data sets and attributes, found by their paths. */
#pragma once

#include <mixtape/tensor.h>

/* An attribute: a text of variable length, texts of one length, or an empty list of numbers. */
typedef struct mix_hdf5_text {
  char *name;
  bool variable;
  int count;           /* of the texts; 1 if variable */
  size_t width;        /* of each, padded by zeros; the length if variable */
  char *bytes;         /* NULL: the empty list */
  uint64_t collection; /* where the file has the text of variable length */
  int index;
} mix_hdf5_text;

typedef struct mix_hdf5_object {
  char *name; /* of its link */
  bool is_group;
  struct mix_hdf5_object **members; /* of a group, in the order of their names as bytes */
  int count, capacity;
  mix_hdf5_text *texts; /* its attributes */
  int text_count, text_capacity;
  mix_dtype dtype; /* of a data set */
  mix_shape shape;
  mix_tensor *tensor; /* retained until it is written */
  uint64_t data;      /* address of the elements; none where there are none */
  size_t data_size;
  uint64_t header; /* addresses of the object header, and of the group's tree and names */
  uint64_t tree, heap;
} mix_hdf5_object;

/* In the order of creation: a group before its members, the root first. */
typedef struct mix_hdf5_objects {
  mix_hdf5_object **items;
  int count, capacity;
} mix_hdf5_objects;

/* Makes the root. False with the error recorded. */
bool mix_hdf5_objects_begin(mix_hdf5_objects *objects);
void mix_hdf5_objects_end(mix_hdf5_objects *objects);
/* The object of that path ("": the root). NULL without an error if there is none. */
mix_hdf5_object *mix_hdf5_find_object(const mix_hdf5_objects *objects, const char *path);
/* True if a new object may be put there: nothing has the path, and nothing on the way is a data set. */
bool mix_hdf5_path_is_free(const mix_hdf5_objects *objects, const char *path);
/* Makes the objects of the path that are missing, which are groups, but for the last where `is_group` is
 * false. NULL with the error recorded: a data set is on the way, or out of memory. */
mix_hdf5_object *mix_hdf5_make_object(mix_hdf5_objects *objects, const char *path, bool is_group,
                                      const char *call);
/* Takes the bytes, which are freed where it fails. ValueError if the object has an attribute of that name. */
bool mix_hdf5_add_text(mix_hdf5_object *object, mix_hdf5_text text, const char *call);
