/* Recurrent layers: cells, layers that run a cell over sequences, and wrappers. Sequences have the shape
 * (batch, steps, ...), under .time_major (steps, batch, ...). Formulas and weights are those of Keras
 * (docs/spec/keras.md, 4). A layer is one mix_scan, however many steps there are. */
#ifndef MIXTAPE_RECURRENT_H
#define MIXTAPE_RECURRENT_H

#include <mixtape/layers.h>

MIX_BEGIN_DECLARATIONS

/* ---- cells ----
 * A cell computes one step. Its inputs are those of the step, (batch, ...), its further arguments
 * (.arguments) the states before it; its results are the output and the states after it. */

/* Arguments of the cells and of the layers around them. kernel (in, gates * units), recurrent_kernel (units,
 * gates * units), bias (gates * units); GRU with its reset gate after the product: bias (2, gates * units).
 */
#define MIX_CELL_OPTIONS                                                                                     \
  int64_t units; /* required, positive (ValueError) */                                                       \
  MIX_GATE_OPTIONS                                                                                           \
  bool reset_before; /* GRU; Keras: reset_after=True, the reset gate after the product with the state */
#define MIX_GATE_OPTIONS                                                                                     \
  const char *activation;           /* NULL: "tanh" */                                                       \
  const char *recurrent_activation; /* NULL: "sigmoid"; SimpleRNN has none */                                \
  bool no_bias;                     /* Keras: use_bias=True */                                               \
  const char *kernel_initializer;   /* NULL: "glorot_uniform" */                                             \
  mix_initializer *kernel_initializer_object;                                                                \
  const char *recurrent_initializer; /* NULL: "orthogonal" */                                                \
  mix_initializer *recurrent_initializer_object;                                                             \
  const char *bias_initializer; /* NULL: "zeros" */                                                          \
  mix_initializer *bias_initializer_object;                                                                  \
  mix_regularizer *kernel_regularizer, *recurrent_regularizer, *bias_regularizer;                            \
  mix_constraint *kernel_constraint, *recurrent_constraint, *bias_constraint;                                \
  /* Of the inputs and of the state, in training: which elements drop is decided once a call, for all steps. \
   * Clamped to [0, 1]; as in Keras, 1 drops nothing. */                                                     \
  double dropout, recurrent_dropout;                                                                         \
  uint64_t seed;       /* 0: derived from the global seed */                                                 \
  bool no_forget_bias; /* LSTM; Keras: unit_forget_bias=True, the bias of the forget gate begins at 1 */

typedef struct mix_cell_options {
  size_t size;
  MIX_LAYER_OPTIONS
  MIX_CELL_OPTIONS
} mix_cell_options;
MIX_API mix_layer *mix_simple_rnn_cell_with(const mix_cell_options *options);
MIX_API mix_layer *mix_lstm_cell_with(const mix_cell_options *options);
MIX_API mix_layer *mix_gru_cell_with(const mix_cell_options *options);

/* StackedRNNCells: each cell reads the output of the one before. The states are those of all, in order. */
typedef struct mix_stacked_rnn_cells_options {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_list *cells; /* required: a list of cells, one or more */
} mix_stacked_rnn_cells_options;
MIX_API mix_layer *mix_stacked_rnn_cells_with(const mix_stacked_rnn_cells_options *options);

/* ---- layers over cells ----
 * The result is the output of the last step, or with return_sequences of all steps; with return_state the
 * states follow. `initial_state` of a call has one tensor a state; without it they are zeros in the compute
 * dtype. A mask (batch, steps) of the call: a masked step keeps the states, and repeats the output of the
 * step before (zeros at first), or gives zeros with zero_output_for_mask. ValueError: initial states of
 * another number or shape, a mask of another shape, a sequence without steps, a cell whose states change
 * their shape. */
#define MIX_RNN_OPTIONS                                                                                      \
  bool return_sequences, return_state;                                                                       \
  bool go_backwards; /* from the last step to the first; the outputs are in the order of computation */      \
  /* The states of a batch are those with which the next call begins; the batch size is fixed then. Their    \
   * variables are no weights of the layer. */                                                               \
  bool stateful;                                                                                             \
  bool unroll;     /* requires a known number of steps (ValueError), and changes nothing else */             \
  bool time_major; /* tf_keras; keras3 has no such argument (ValueError) */                                  \
  bool zero_output_for_mask;

typedef struct mix_rnn_options {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_layer *cell; /* required: a cell of the library, or of a class with `cell_states` */
  MIX_RNN_OPTIONS
} mix_rnn_options;
MIX_API mix_layer *mix_rnn_with(const mix_rnn_options *options);

/* SimpleRNN, LSTM, GRU: a layer and its cell in one. The inputs of all steps are projected in one product. */
typedef struct mix_recurrent_options {
  size_t size;
  MIX_LAYER_OPTIONS
  MIX_CELL_OPTIONS
  MIX_RNN_OPTIONS
} mix_recurrent_options;
MIX_API mix_layer *mix_simple_rnn_with(const mix_recurrent_options *options);
MIX_API mix_layer *mix_lstm_with(const mix_recurrent_options *options);
MIX_API mix_layer *mix_gru_with(const mix_recurrent_options *options);

/* ConvLSTM1D, 2D, 3D (Shi et al.: Convolutional LSTM network; NIPS 2015): LSTM with convolutions instead of
 * products, on sequences (batch, steps, spatial..., channels). That of the inputs has these strides, this
 * padding and this dilation; that of the state keeps its size. Each gate has dropout masks of its own.
 * Weights: kernel (spatial..., channels, 4 filters), recurrent_kernel (spatial..., filters, 4 filters), bias
 * (4 filters). recurrent_activation NULL: keras3 "sigmoid", else "hard_sigmoid". ValueError as of mix_conv2d,
 * for a padding that is neither "valid" nor "same", and in keras3 for a spatial size that is not known. */
#define MIX_CELL_WINDOW_OPTIONS                                                                              \
  int64_t kernel;                   /* kernel_size of all axes */                                            \
  mix_shape kernel_size;            /* or one number for each axis; positive, one of both is required */     \
  mix_shape strides, dilation_rate; /* rank 0: 1 */                                                          \
  const char *padding;              /* NULL: "valid"; "same" */                                              \
  const char *data_format; /* NULL: "channels_last"; "channels_first": (batch, steps, channels, spatial...)  \
                            */
typedef struct mix_conv_lstm_options {
  size_t size;
  MIX_LAYER_OPTIONS
  int64_t filters; /* required, positive */
  MIX_CELL_WINDOW_OPTIONS
  MIX_GATE_OPTIONS
  MIX_RNN_OPTIONS
} mix_conv_lstm_options;
MIX_API mix_layer *mix_conv_lstm1d_with(const mix_conv_lstm_options *options);
MIX_API mix_layer *mix_conv_lstm2d_with(const mix_conv_lstm_options *options);
MIX_API mix_layer *mix_conv_lstm3d_with(const mix_conv_lstm_options *options);

/* Sets the states of stateful layers, this one and those inside it, to zeros. */
MIX_API mix_status mix_layer_reset_states(mix_layer *layer);

/* ---- wrappers ---- */

/* Bidirectional: copies of a layer, one of which runs backwards; or that layer and another one, which must
 * run in the other direction with the same stateful, return_sequences and return_state (ValueError). Their
 * sequences are merged in the order of the input. With return_state the states of both follow. Of an
 * initial_state the first half is for the forward layer. */
typedef struct mix_bidirectional_options {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_layer *layer;          /* required */
  const char *merge_mode;    /* "concat" (NULL), "sum", "mul", "ave", or "none": two results */
  mix_layer *backward_layer; /* NULL: a copy of `layer` */
} mix_bidirectional_options;
MIX_API mix_layer *mix_bidirectional_with(const mix_bidirectional_options *options);

/* TimeDistributed: a layer on each step. tf_keras: in one call on a batch of all steps. keras3: in a call for
 * each step, where that is not the same: BatchNormalization has the moments of a step and moves its
 * statistics with each, stateful layers go on from step to step, layers of a user's see a batch of one step;
 * a graph then has as many calls as there are steps. */
typedef struct mix_time_distributed_options {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_layer *layer; /* required */
} mix_time_distributed_options;
MIX_API mix_layer *mix_time_distributed_with(const mix_time_distributed_options *options);

/* Options with `size` set, for C++. */
MIX_API mix_cell_options mix_cell_defaults(void);
MIX_API mix_stacked_rnn_cells_options mix_stacked_rnn_cells_defaults(void);
MIX_API mix_rnn_options mix_rnn_defaults(void);
MIX_API mix_recurrent_options mix_recurrent_defaults(void);
MIX_API mix_conv_lstm_options mix_conv_lstm_defaults(void);
MIX_API mix_bidirectional_options mix_bidirectional_defaults(void);
MIX_API mix_time_distributed_options mix_time_distributed_defaults(void);

#ifndef __cplusplus
#define mix_simple_rnn_cell(...)                                                                             \
  MIX_LAYER_OF(mix_simple_rnn_cell, "units, !activation", #__VA_ARGS__, mix_cell_options, __VA_ARGS__)
#define mix_lstm_cell(...)                                                                                   \
  MIX_LAYER_OF(mix_lstm_cell, "units, !activation, !recurrent_activation", #__VA_ARGS__, mix_cell_options,   \
               __VA_ARGS__)
#define mix_gru_cell(...)                                                                                    \
  MIX_LAYER_OF(mix_gru_cell, "units, !activation, !recurrent_activation", #__VA_ARGS__, mix_cell_options,    \
               __VA_ARGS__)
#define mix_stacked_rnn_cells(...)                                                                           \
  MIX_LAYER_OF(mix_stacked_rnn_cells, "cells", #__VA_ARGS__, mix_stacked_rnn_cells_options, __VA_ARGS__)
#define mix_rnn(...)                                                                                         \
  MIX_LAYER_OF(mix_rnn, "cell, return_sequences, return_state, go_backwards, stateful, unroll",              \
               #__VA_ARGS__, mix_rnn_options, __VA_ARGS__)
#define mix_simple_rnn(...)                                                                                  \
  MIX_LAYER_OF(mix_simple_rnn, "units, !activation", #__VA_ARGS__, mix_recurrent_options, __VA_ARGS__)
#define mix_lstm(...)                                                                                        \
  MIX_LAYER_OF(mix_lstm, "units, !activation, !recurrent_activation", #__VA_ARGS__, mix_recurrent_options,   \
               __VA_ARGS__)
#define mix_gru(...)                                                                                         \
  MIX_LAYER_OF(mix_gru, "units, !activation, !recurrent_activation", #__VA_ARGS__, mix_recurrent_options,    \
               __VA_ARGS__)
/* mix_conv_lstm2d(32, 3, .padding = "same") */
#define mix_conv_lstm1d(...)                                                                                 \
  MIX_LAYER_OF(mix_conv_lstm1d, "filters, !kernel; MIX_SHAPE(kernel_size, strides, dilation_rate)",          \
               #__VA_ARGS__, mix_conv_lstm_options, __VA_ARGS__)
#define mix_conv_lstm2d(...)                                                                                 \
  MIX_LAYER_OF(mix_conv_lstm2d, "filters, !kernel; MIX_SHAPE(kernel_size, strides, dilation_rate)",          \
               #__VA_ARGS__, mix_conv_lstm_options, __VA_ARGS__)
#define mix_conv_lstm3d(...)                                                                                 \
  MIX_LAYER_OF(mix_conv_lstm3d, "filters, !kernel; MIX_SHAPE(kernel_size, strides, dilation_rate)",          \
               #__VA_ARGS__, mix_conv_lstm_options, __VA_ARGS__)
#define mix_bidirectional(...)                                                                               \
  MIX_LAYER_OF(mix_bidirectional, "layer, !merge_mode", #__VA_ARGS__, mix_bidirectional_options, __VA_ARGS__)
#define mix_time_distributed(...)                                                                            \
  MIX_LAYER_OF(mix_time_distributed, "layer", #__VA_ARGS__, mix_time_distributed_options, __VA_ARGS__)
#endif

MIX_END_DECLARATIONS
#endif
