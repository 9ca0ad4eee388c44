/* Weights that Keras's CuDNNLSTM and CuDNNGRU wrote into legacy files, read into LSTM and GRU. */
#pragma once

#include "saving/read_weights.h"

enum { MIX_CUDNN_VARIABLES = 3 }; /* kernel, recurrent kernel, bias */

/* Are the three variables those of an LSTM or GRU below `layer`, and the file's bias, of the last path, in
 * cuDNN's layout? False, too, with the error recorded: ValueError for a GRU whose reset_after differs. */
bool mix_are_cudnn_weights(mix_weights_reader *reader, mix_layer *layer, const char *const *paths,
                           mix_variable *const *variables);
/* As mix_read_variable for each of the three, converted as Keras converts them. */
bool mix_read_cudnn_weights(mix_weights_reader *reader, const char *const *paths,
                            mix_variable *const *variables);
