/* The variables that the body of a loop assigns while it is built: they become part of the carry. */
#pragma once

#include "graph/variable.h"

typedef struct mix_loop_variable {
  mix_variable *variable; /* retained */
  mix_tensor *value;      /* in the step, where it has been built to; retained */
} mix_loop_variable;

typedef struct mix_loop_capture {
  struct mix_loop_capture *outer; /* of the loop around this one */
  mix_loop_variable *variables;
  int count, capacity;
} mix_loop_capture;

/* The innermost body that this thread builds, or NULL. Set returns the former one. */
mix_loop_capture *mix_loop_capture_current(void);
mix_loop_capture *mix_loop_capture_set(mix_loop_capture *trace);
/* The value that a variable has inside the bodies of this thread; NULL: none of them has assigned it. */
mix_tensor *mix_loop_value(const mix_variable *variable);
/* Gives it a value in this body. False: out of memory, recorded. */
bool mix_loop_assign(mix_loop_capture *trace, mix_variable *variable, mix_tensor *value);
void mix_loop_capture_clear(mix_loop_capture *trace);
