/* The communicators that plans keep. */
#pragma once

#include "backend/communicator.h"
#include "distribute/exchange.h"

/* A communicator for the calls of this exchange. It stays where it is for ever, because plans name it: one
 * that was let go serves the next exchange of the same rank and number of ranks, with the plans compiled for
 * it. NULL with the error recorded if there are too many. */
mix_communicator *mix_communicator_take(mix_exchange *exchange);
/* Its calls fail from now on. */
void mix_communicator_let_go(mix_communicator *communicator);
