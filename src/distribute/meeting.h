/* Who of this machine has come, while ranks wait for each other and MPI cannot tell. */
#pragma once

#include "distribute/transport.h"

typedef struct mix_meeting mix_meeting;

/* Announces a process of this job by its number; other processes see it until the end of the meeting or of
 * the process. NULL without an error where nobody can be told. */
mix_meeting *mix_meeting_begin(int process);
void mix_meeting_end(mix_meeting *meeting);
/* Says which ranks have not come, or cannot come because they are stopped. `link` NULL: ranks are numbers of
 * processes. Returns the text. */
const char *mix_meeting_missing(const mix_transport *transport, mix_transport_link *link, int ranks,
                                char *text, size_t size);
