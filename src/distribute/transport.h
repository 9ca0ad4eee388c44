/* What a plug-in offers: messages between processes. A plug-in is a shared library of one MPI flavour, which
 * exports `mix_transport_plugin`. This header is all that it shares with the library. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { MIX_TRANSPORT_VERSION = 3, MIX_TRANSPORT_STOPPED = -2 };

/* The ranks of one communicator. One thread at a time makes calls on it. */
typedef struct mix_transport_link mix_transport_link;

/* What one rank tells all others beside their calls. It is heard by those that wait. */
typedef enum mix_note_kind { MIX_NOTE_WAITING, MIX_NOTE_CLOSING, MIX_NOTE_FAILED } mix_note_kind;
typedef struct mix_transport_note {
  int kind;
  unsigned step; /* calls that all ranks make, up to this note */
  char text[248];
} mix_transport_note;

typedef struct mix_transport_request {
  /* The Fortran handle of a communicator of the host program, which has started MPI and ends it. NULL: all
   * processes, with an MPI that the link starts and ends. */
  const int *communicator;
  /* Asked again and again while a call waits: true ends the call with MIX_TRANSPORT_STOPPED. */
  bool (*gives_up)(void *context);
  void (*heard)(void *context, int rank, const mix_transport_note *note);
  void *context;
} mix_transport_request;

typedef struct mix_transport_place {
  int rank, ranks;
  bool on_caller; /* all calls must be made by the threads that call the library */
} mix_transport_place;

typedef struct mix_transport {
  unsigned version;   /* MIX_TRANSPORT_VERSION */
  const char *flavor; /* "Open MPI", "MPICH" */
  /* Functions return 0, or a code that error_text explains. */
  /* Of a host's communicator it waits for nobody. */
  int (*open)(const mix_transport_request *request, mix_transport_link **link, mix_transport_place *place);
  /* Waits for all ranks, before the first message. */
  int (*join)(mix_transport_link *link);
  /* The rank among all processes of the job. */
  int (*process_of)(mix_transport_link *link, int rank);
  /* Bytes [at[r], at[r + 1]) of `send` go to rank r, whose part for this one becomes the next `received`
   * bytes of `receive`, in the order of the ranks. */
  int (*exchange)(mix_transport_link *link, const void *send, const size_t *at, void *receive,
                  size_t received);
  /* Bytes [at[r], at[r + 1]) of `all` become those of rank r, whose own are at `part`. */
  int (*gather)(mix_transport_link *link, const void *part, void *all, const size_t *at);
  int (*broadcast)(mix_transport_link *link, void *data, size_t bytes, int root);
  /* Sends a note to all other ranks, and does not wait. */
  int (*tell)(mix_transport_link *link, const mix_transport_note *note);
  /* Calls `heard` for the notes that are there. */
  int (*listen)(mix_transport_link *link);
  /* Has the host program ended MPI? On any thread. */
  bool (*host_is_over)(void);
  /* Ends the link, whatever it returns. All ranks have told that they close it, unless it is over. */
  int (*close)(mix_transport_link *link);
  void (*end_job)(mix_transport_link *link, int code); /* ends all processes */
  void (*error_text)(int code, char *text, size_t size);
} mix_transport;

typedef const mix_transport *mix_transport_plugin_function(void);
