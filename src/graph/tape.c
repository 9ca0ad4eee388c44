#include "graph/tape.h"

#include "base/alloc.h"
#include "base/error.h"
#include "graph/capture.h"

void mix_tape_drop_records(mix_tape *tape) {
  for (int i = 0; i < tape->node_count; i++) {
    tape->nodes[i]->recorded--;
    mix_node_detach(tape->nodes[i]);
    mix_release(tape->nodes[i]);
  }
  tape->node_count = 0;
}

void mix_tape_close(mix_tape *tape) {
  mix_tape *open = mix_tapes_innermost();
  while (open && open != tape) open = open->outer;
  while (open) {
    mix_tape *closing = mix_tapes_set(mix_tapes_innermost()->outer);
    closing->open = false;
    if (closing == tape) break;
  }
}

static void tape_finalize(void *object) {
  mix_tape *tape = object;
  mix_tape_close(tape);
  mix_tape_drop_records(tape);
  for (int i = 0; i < tape->watched_count; i++) mix_release(tape->watched[i].edge.node);
  mix_free(tape->nodes);
  mix_free(tape->watched);
}

const mix_class mix_tape_class = {.name = "tape", .finalize = tape_finalize};

mix_tape *mix_tape_begin_with(const mix_tape_options *given) {
  MIX_OPTIONS(mix_tape_options, options, given, "tape_begin");
  mix_tape *tape = mix_object_new(sizeof *tape, &mix_tape_class);
  if (!tape) return NULL;
  tape->persistent = options.persistent;
  tape->watch_accessed = !options.no_watch_accessed;
  tape->open = true;
  tape->outer = mix_tapes_set(tape);
  return mix_scoped(tape);
}

void mix_tape_end(mix_tape *tape) {
  if (mix_is(tape, &mix_tape_class)) mix_tape_close(tape);
}

mix_node *const *mix_tape_nodes(const mix_tape *tape, int *count) {
  *count = tape ? tape->node_count : 0;
  return tape ? tape->nodes : NULL;
}

mix_status mix_tape_watch(mix_tape *tape, mix_tensor *tensor) {
  if (mix_failed()) return mix_error();
  if (!mix_is(tape, &mix_tape_class)) return mix_fail_status(MIX_TYPE_ERROR, "tape_watch: expected a tape");
  if (!mix_is(tensor, &mix_tensor_class))
    return mix_fail_status(MIX_TYPE_ERROR, "tape_watch: got %s; expected a tensor",
                           tensor ? "another object" : "NULL");
  if (!mix_dtype_is_real(mix_tensor_value(tensor)->dtype))
    return mix_fail_status(MIX_TYPE_ERROR,
                           "tape_watch: a tensor of dtype %s has no gradient; expected a floating dtype",
                           mix_dtype_name(mix_tensor_value(tensor)->dtype));
  if (!mix_reserve(&tape->watched, &tape->watched_capacity, tape->watched_count + 1, sizeof *tape->watched))
    return mix_error();
  tape->watched[tape->watched_count++] =
      (mix_watched){{mix_retain(tensor->node), tensor->output}, mix_node_next_sequence()};
  return MIX_OK;
}
