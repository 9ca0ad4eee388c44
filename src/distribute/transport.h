/* What a plug-in offers: messages between processes. A plug-in is a shared library of one MPI flavour, which
 * exports `mix_transport_plugin`. This header is all that it shares with the library. One thread makes all
 * calls. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { MIX_TRANSPORT_VERSION = 2, MIX_TRANSPORT_STOPPED = -2 };

typedef struct mix_transport {
  unsigned version;   /* MIX_TRANSPORT_VERSION */
  const char *flavor; /* "Open MPI", "MPICH" */
  /* Functions return 0, or a code that error_text explains. */
  /* Calls that wait give up with MIX_TRANSPORT_STOPPED once *stop is true. */
  int (*open)(int *rank, int *ranks, const atomic_bool *stop);
  /* Bytes [at[r], at[r + 1]) of `send` go to rank r, whose part for this one becomes the next `received`
   * bytes of `receive`, in the order of the ranks. */
  int (*exchange)(const void *send, const size_t *at, void *receive, size_t received);
  /* Bytes [at[r], at[r + 1]) of `all` become those of rank r, whose own are at `part`. */
  int (*gather)(const void *part, void *all, const size_t *at);
  int (*broadcast)(void *data, size_t bytes, int root);
  int (*close)(void);
  void (*end_job)(int code); /* ends all processes */
  void (*error_text)(int code, char *text, size_t size);
} mix_transport;

typedef const mix_transport *mix_transport_plugin_function(void);
