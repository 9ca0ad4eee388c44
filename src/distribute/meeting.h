/* Who of this machine has come, while ranks wait for each other and MPI cannot tell. */
#pragma once

#include "distribute/transport.h"

typedef struct mix_meeting mix_meeting;

/* Announces this rank by its number among the processes of the job (`link` NULL: the same number). Others see
 * it until the end of the meeting or of the process. NULL without an error if memory runs out. */
mix_meeting *mix_meeting_begin(const mix_transport *transport, mix_transport_link *link, int rank, int ranks);
void mix_meeting_end(mix_meeting *meeting);
/* Remembers who has come so far: a rank that gives up first may have gone when the last one asks. */
void mix_meeting_look(mix_meeting *meeting);
/* Says which ranks have not come, or cannot come because they are stopped. Returns the text. */
const char *mix_meeting_missing(mix_meeting *meeting, char *text, size_t size);
