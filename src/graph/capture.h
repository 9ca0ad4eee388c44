/* The context of new nodes on this thread: the layer, the capture and the open tapes. */
#pragma once

#include "graph/node.h"
#include <mixtape/tape.h>

/* The interned path of the layer that is being called. Set returns the former path, to be restored. */
const char *mix_graph_scope_set(const char *path);
const char *mix_graph_scope(void);
/* True if the automatic mixed precision rewrite must leave new nodes unchanged. Set returns the former
 * value, to be restored. */
bool mix_graph_keep_set(bool keep);
bool mix_graph_keep(void);
/* Are nodes being made by the gradient of an op? */
bool mix_graph_backward_set(bool is);
bool mix_graph_backward(void);

/* The capture of this thread, or NULL (graph/variable.h). Set returns the former one. */
struct mix_capture *mix_capture_current(void);
struct mix_capture *mix_capture_set(struct mix_capture *capture);
/* Adds a new node to the capture of this thread if its op is stateful. Returns false with the error recorded
 * if memory runs out. */
bool mix_capture_record(mix_node *node);

/* Records a new node on every open tape of this thread. Returns false with the error recorded if memory
 * runs out. */
bool mix_tapes_record(mix_node *node);
/* True if a tape is open on this thread. */
bool mix_tapes_open(void);
/* The innermost open tape of this thread, or NULL; its `outer` tapes record too. Set returns the former
 * one. */
mix_tape *mix_tapes_innermost(void);
mix_tape *mix_tapes_set(mix_tape *tape);
