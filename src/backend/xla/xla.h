/* Inside the backend "xla": programs that XLA compiles, run by a PJRT plug-in. */
#ifndef MIX_BACKEND_XLA_XLA_H
#define MIX_BACKEND_XLA_XLA_H

#include "backend/backend.h"
#include "backend/xla/pjrt.h"

/* ---- the plug-in of the process (plugin.c) ---- */

/* The plug-in in use, or NULL. */
const mix_pjrt *mix_xla_plugin(void);
/* Loads the plug-in unless one is in use: the chosen one, else that of MIXTAPE_PJRT_PLUGIN, else the first
 * that is found by name. NULL: it is in use; else the reason why there is none, which lives as long as the
 * process. A library that has failed is not tried again. */
const char *mix_xla_load(void);
/* Adds the names and folders that are searched. */
void mix_xla_put_places(mix_text *text);

/* ---- memory (memory.c) ---- */

extern const mix_memory_device mix_xla_memory;
/* The memory that a handle is a part of, or itself. */
mix_memory *mix_xla_whole(mix_memory *memory);
/* The bytes, also of the host's memory, as an argument of this type. `own`: the caller frees it. NULL with the
 * error recorded. */
pjrt_buffer *mix_xla_buffer(mix_memory *memory, mix_type type, bool *own);
/* May a run take the buffer for another one? Not while somebody else holds or maps the memory. */
bool mix_xla_may_donate(mix_memory *memory);
/* A run has taken it: whoever reads the memory from now on gets an error. */
void mix_xla_take_buffer(mix_memory *memory);
/* The value of the memory is that of the buffer, which it owns from now on. */
void mix_xla_give_buffer(mix_memory *memory, pjrt_buffer *buffer, mix_type type);

/* ---- executables and runs ---- */

mix_executable *mix_xla_compile(mix_ir *ir, const mix_context *context);
void mix_xla_destroy(mix_executable *executable);
void mix_xla_facts(const mix_executable *executable, mix_executable_facts *facts);
mix_ticket mix_xla_enqueue(mix_executable *executable, const mix_bindings *bindings);
mix_status mix_xla_wait(mix_ticket ticket);

#endif
