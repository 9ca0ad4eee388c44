/* Variables in the graph: storage, the node that reads it, and what a capture binds it to. Creating and assigning, which evaluate,
 * are in
 * compile/assign.c; reading with a cast in ops/read_variable.c. */
#ifndef MIX_GRAPH_VARIABLE_H
#define MIX_GRAPH_VARIABLE_H

#include "graph/trace.h"
#include <mixtape/variable.h>

struct mix_variable {
  mix_object object;
  const char *name;     /* interned; layers give the full path "dense_1/kernel" */
  mix_dtype dtype;      /* the true one */
  mix_shape shape;
  void *data;           /* one fixed address for life */
  size_t bytes;
  bool trainable, autocast;
  _Atomic(mix_node *) read; /* outside captures: the finished node that shares the storage until the next write; retained or NULL */
  uint64_t version;     /* moves with every write */
  mix_variable *copies[4]; /* its values in float16 and bfloat16, and both held as float32, where plans keep such; retained */
  mix_variable *original;  /* of a copy: whose; borrowed */
  mix_dtype rounded;       /* of a copy: the 16-bit dtype that its values were rounded to */
  _Atomic uint64_t copied_version; /* of a copy: the original's version that it holds */
  void *constraint;     /* nn: retained object or NULL */
  void *regularizer;    /* nn: retained object or NULL */
};

extern const mix_class mix_variable_class;

/* The dtype that autocast variables read as on this thread (MIX_DTYPE_NONE: no cast). A layer call sets its compute dtype, or NONE
 * for one that is not floating, and puts the former back. */
mix_dtype mix_cast_dtype(void);
mix_dtype mix_cast_dtype_set(mix_dtype dtype);

/* What a capture knows of a variable: the tensor it is bound to now. */
typedef struct mix_binding {
  mix_variable *variable; /* retained */
  mix_node *entry;        /* its value on entry: a placeholder */
  mix_edge current;       /* its value now (retained); entry while unassigned */
  mix_node *read;         /* the read node of the current value, made once; retained */
  struct { mix_dtype dtype; mix_node *node; } casts[4]; /* cast(read), one for each dtype; retained */
  bool assigned;
} mix_binding;

typedef struct mix_capture {
  struct mix_capture *outer;
  mix_binding *bindings;
  int binding_count, binding_capacity;
} mix_capture;

mix_binding *mix_capture_binding(mix_capture *capture, mix_variable *variable); /* made on first use; NULL: error recorded */
void mix_capture_clear(mix_capture *capture);
/* Inside a capture: binds the variable to a new value of its true dtype and shape. */
bool mix_capture_assign(mix_capture *capture, mix_variable *variable, mix_tensor *value);

/* Is it a variable's storage, which the next write changes? With the graph locked. */
bool mix_buffer_is_storage(const mix_buffer *buffer);
/* The hidden copy of a floating variable, rounded to a 16-bit dtype and held in that or, `widened`, as float32; made on first use and
 * stale then. Borrowed. NULL with the error recorded. */
mix_variable *mix_variable_copy(mix_variable *variable, mix_dtype rounded, bool widened);
/* Brings a copy up to date with its original. */
void mix_variable_refresh(mix_variable *copy);
/* Before the storage changes: a reader that outlives the write gets its own copy of the old value. Waits for the threads that hold the
 * storages. While the graph stays locked nobody else reads the variable. */
bool mix_variable_before_write(mix_variable *variable);
/* Moves when any variable's or layer's `trainable` changes: part of the key of compiled functions. */
uint64_t mix_trainable_epoch(void);
void mix_trainable_epoch_move(void);

#endif
