/* Variables in the graph: storage, the node that reads it, and the value that a capture binds it to.
 * Creation and assignment, which evaluate, are in compile/assign.c; reads with a cast are in
 * ops/read_variable.c. */
#pragma once

#include "graph/capture.h"

struct mix_variable {
  mix_object object;
  const char *name; /* interned; layers give the full path "dense_1/kernel" */
  mix_dtype dtype;  /* the stored dtype, without autocast */
  mix_shape shape;
  /* Its storage. Runs of other threads may read it without a lock (graph/retired_storage.h). */
  _Atomic(mix_memory *) memory;
  /* The storage is a part of a file's mapping, which nothing writes: the first write gives it its own. */
  atomic_bool in_file;
  bool trainable, autocast;
  bool saved_first; /* of its layer, in files: a weight that is stored as integers, or frozen beside LoRA */
  bool fixed;       /* its value follows from shapes: files must have it, too */
  bool overwrite_with_gradient; /* optimizers assign its gradient to it, and have no slots for it */
  /* Outside captures: the finished node that shares the storage until the next write; retained, or NULL. */
  _Atomic(mix_node *) read;
  _Atomic uint64_t version; /* incremented after every write, before another one begins */
  /* Copies rounded to float16 and bfloat16, stored as such and as float32, for plans that cache weight
   * casts; retained. */
  mix_variable *copies[4];
  mix_variable *original;           /* of a copy: its original, borrowed */
  mix_dtype rounded;                /* of a copy: the 16-bit dtype that its values were rounded to */
  _Atomic uint64_t copied_version;  /* of a copy: the version of the original that it holds */
  void *constraint;                 /* nn: retained object or NULL */
  void *regularizer;                /* nn: retained object or NULL */
  struct mix_variable_share *share; /* of one that is divided among the ranks (graph/divided_variable.h) */
  struct mix_lora *lora;            /* nn: of a frozen kernel what trains in its place; retained, or NULL */
};

extern const mix_class mix_variable_class;

/* Differs before and after each change of the value. What is derived from a value is up to date while the
 * stamp is the one that was read before the value. */
static inline uint64_t mix_variable_stamp(const mix_variable *variable) {
  return variable->original ? variable->copied_version : variable->version;
}

/* The dtype that autocast variables have when read on this thread; MIX_DTYPE_NONE: no cast. A layer call
 * sets its compute dtype, or NONE if that is not floating, and restores the former one. */
mix_dtype mix_cast_dtype(void);
mix_dtype mix_cast_dtype_set(mix_dtype dtype);
/* True if assign_add and assign_sub read autocast variables in the cast dtype, where there is one. Set
 * returns the former value, to be restored. */
bool mix_cast_updates(void);
bool mix_cast_updates_set(bool cast);

/* The value that a capture binds a variable to. */
typedef struct mix_binding {
  mix_variable *variable; /* retained */
  mix_node *entry;        /* its value on entry: a placeholder */
  mix_edge current;       /* its current value (retained); `entry` until assigned */
  mix_node *read;         /* the read node of the current value, made once; retained */
  bool assigned;
} mix_binding;

typedef struct mix_capture {
  struct mix_capture *outer;
  mix_binding *bindings;
  int binding_count, binding_capacity;
  mix_node **stateful; /* its nodes that run though nothing may need their results; retained */
  int stateful_count, stateful_capacity;
  int checks_shared; /* of these, those whose checks all ranks share (distribute/shared_checks.c) */
} mix_capture;

void mix_capture_clear(mix_capture *capture);
/* Inside a capture: binds the variable to a new value of its stored dtype and shape. */
bool mix_capture_assign(mix_capture *capture, mix_variable *variable, mix_tensor *value);

/* The hidden copy of a floating variable, rounded to a 16-bit dtype, stored in that dtype or, if
 * `widened`, as float32. Created on first use, and stale then. Borrowed; NULL with the error recorded. */
mix_variable *mix_variable_copy(mix_variable *variable, mix_dtype rounded, bool widened);
/* Updates a copy from its original. False with the error recorded. */
bool mix_variable_refresh(mix_variable *copy);
/* The storage is `memory` from now on, which holds the new value and is a part of a file's mapping; retains
 * it. False without an error where it cannot be: a capture is open, or the storage is not the host's. False
 * with the error recorded: out of memory. A run of another thread that reads the variable meanwhile reads
 * either value. */
bool mix_variable_borrow(mix_variable *variable, mix_memory *memory);
/* Moves the storage to memory of a device. False with the error recorded. */
bool mix_variable_move(mix_variable *variable, const mix_memory_device *device);
/* The storage is `memory` from now on, which a run has made; takes the reference. Nothing reads the former
 * storage through a node (mix_variable_before_write). */
void mix_variable_replace(mix_variable *variable, mix_memory *memory);
/* Call before the storage changes: gives readers that outlive the write a copy of the old value. Waits for
 * the threads that pin the storages. Other threads cannot read the variable while the graph stays locked.
 * Returns false with the error recorded. */
bool mix_variable_before_write(mix_variable *variable);
/* Incremented when what a capture takes as a constant changes: `trainable` of a variable or layer, limits of
 * clipping. Part of the key of compiled functions. */
uint64_t mix_capture_epoch(void);
void mix_capture_epoch_move(void);
