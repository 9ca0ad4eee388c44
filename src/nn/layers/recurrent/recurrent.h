/* Cells and the loop over them. */
#pragma once

#include "nn/layers/builtin.h"
#include <mixtape/recurrent.h>

/* ---- cells ---- */

enum { MIX_CELL_GATES = 4 };

typedef struct mix_cell_kind mix_cell_kind;

/* Options of ConvLSTM's cell, which begin as those of other cells: its units are filters. */
typedef struct mix_conv_lstm_cell_options {
  size_t size;
  MIX_LAYER_OPTIONS
  MIX_CELL_OPTIONS
  MIX_CELL_WINDOW_OPTIONS
} mix_conv_lstm_cell_options;

/* The instance of a cell of the library, whose class calls mix_cell_call. */
typedef struct mix_cell {
  union {
    mix_cell_options options;
    mix_stacked_rnn_cells_options stacked;
    mix_conv_lstm_cell_options conv_lstm;
  };
  const mix_cell_kind *kind;
  mix_variable *kernel, *recurrent, *bias; /* owned by the layer's list; bias NULL: none */
  mix_generator *generator;
} mix_cell;

typedef struct mix_cell_run mix_cell_run;

/* What a loop needs of a cell: the part that is the same for all steps, once for all of them, and the rest.
 */
struct mix_cell_kind {
  int gates;
  int states; /* for mix_cell_unit_states */
  bool masks_by_gate; /* a dropout mask for each gate, also without recurrent dropout */
  /* What stands for a product with a kernel, or with columns of one; NULL: one product of matrices. */
  mix_tensor *(*product)(const mix_cell_run *run, mix_tensor *x, mix_tensor *kernel, bool of_state);
  /* Draws the masks for inputs (batch, ...) of one step. NULL: those of the options. */
  bool (*begin)(mix_cell_run *run, mix_shape inputs, mix_dtype dtype);
  /* inputs (..., in) -> what a step reads of them */
  mix_tensor *(*project)(const mix_cell_run *run, mix_tensor *inputs);
  /* A list of the output and the next states. */
  mix_list *(*step)(const mix_cell_run *run, mix_tensor *projected, mix_tensor *const *states);
};

/* A cell during the call of a loop: its dropout masks are drawn once. */
struct mix_cell_run {
  mix_layer *layer;
  const mix_cell_kind *kind; /* NULL: a class of the user */
  bool training;
  int mask_count;                                                        /* 1, or one a gate */
  mix_tensor *input_masks[MIX_CELL_GATES], *state_masks[MIX_CELL_GATES]; /* NULL: nothing is dropped */
  mix_cell_run *inner;                                                   /* of stacked cells, in the scope */
  int inner_count;
};
/* Draws the masks for inputs (batch, ...) of one step. False with the error recorded. */
bool mix_cell_begin(mix_cell_run *run, mix_layer *cell, mix_shape inputs, mix_dtype dtype, bool training);
/* Inputs of one step or of all, before and in the step. */
mix_tensor *mix_cell_project(const mix_cell_run *run, mix_tensor *inputs);
mix_list *mix_cell_step(const mix_cell_run *run, mix_tensor *projected, mix_tensor *const *states);
/* Builds the cell for inputs of that shape, under the path of the layer around it. */
mix_status mix_cell_build(mix_layer *cell, mix_shape inputs);
/* The states of a cell; false with a TypeError if the layer is no cell. */
bool mix_cell_states_of(mix_layer *cell, mix_shape inputs, mix_cell_states *states);

/* The shape of states, or of outputs, of so many samples. */
mix_shape mix_with_batch(int64_t batch, mix_shape shape);

/* ---- parts of the cells of the library ---- */

mix_status mix_cell_build_weights(mix_layer *layer, int gates, mix_shape bias, const mix_shape *inputs);
mix_status mix_cell_add_weights(mix_layer *layer, mix_shape kernel, mix_shape recurrent, mix_shape bias);
mix_list *mix_cell_call(mix_layer *layer, const mix_call_args *args);
bool mix_cell_check(void *options, const mix_layer_kind *kind);
bool mix_cell_ready(mix_layer *layer, const mix_cell_kind *kind);
/* The kind's number of states, of `units` elements each. */
mix_status mix_cell_unit_states(mix_layer *layer, mix_shape inputs, mix_cell_states *states);
/* Columns [gate * units, (gate + count) * units) of (..., n). */
mix_tensor *mix_gate(mix_tensor *x, int gate, int count, int64_t units);
/* The product of the inputs with all gates; of masked inputs, a mask a gate, with their columns. */
mix_tensor *mix_cell_gates_of_inputs(const mix_cell_run *run, mix_tensor *inputs);
/* The same of a state. */
mix_tensor *mix_cell_gates_of_state(const mix_cell_run *run, mix_tensor *state, int gates);
/* The value of the bias, and of a row of one that has two. */
mix_tensor *mix_cell_bias(const mix_cell_run *run);
mix_tensor *mix_cell_bias_row(const mix_cell_run *run, int row);
static inline const mix_cell *mix_cell_of(const mix_cell_run *run) { return run->layer->data; }

/* ---- LSTM ---- */

enum { MIX_LSTM_INPUT, MIX_LSTM_FORGET, MIX_LSTM_CELL, MIX_LSTM_OUTPUT, MIX_LSTM_GATES };
/* Sets the bias of the forget gate to 1, if the options ask for it. */
mix_status mix_lstm_set_forget_bias(mix_cell *cell);
mix_tensor *mix_lstm_project(const mix_cell_run *run, mix_tensor *inputs);
mix_list *mix_lstm_step(const mix_cell_run *run, mix_tensor *projected, mix_tensor *const *states);

extern const mix_value_kind mix_field_cell_activation, /* const char *: NULL is the row's text */
    mix_field_conv_lstm_gate, /* const char *: NULL is the generation's activation of ConvLSTM's gates */
    mix_field_layer,          /* mix_layer *, kept as it is */
    mix_field_layers;         /* mix_list * of layers */

/* The rows of arguments of cells and of layers, for options structs of these types. */
#define MIX_CELL_FIELD(type, member) MIX_FIELD(type, member)
#define MIX_CELL_FIELDS_BEGIN(type)                                                                          \
  {MIX_FIELD(type, units), &mix_field_integer, .range = MIX_POSITIVE}, {                                     \
    MIX_FIELD(type, activation), &mix_field_cell_activation, .text = "tanh"                                  \
  }
#define MIX_CELL_FIELDS_GATE(type)                                                                           \
  { MIX_FIELD(type, recurrent_activation), &mix_field_cell_activation, .text = "sigmoid" }
#define MIX_CELL_FIELDS_WEIGHTS(type)                                                                        \
  {"use_bias", offsetof(type, no_bias), &mix_field_negated},                                                 \
      MIX_INITIALIZER_FIELD(type, kernel_initializer, "glorot_uniform"),                                     \
      MIX_INITIALIZER_FIELD(type, recurrent_initializer, "orthogonal"),                                      \
      MIX_INITIALIZER_FIELD(type, bias_initializer, "zeros")
#define MIX_CELL_FIELDS_PENALTIES(type)                                                                      \
  {MIX_FIELD(type, kernel_regularizer), &mix_field_regularizer},                                             \
      {MIX_FIELD(type, recurrent_regularizer), &mix_field_regularizer}, {                                    \
    MIX_FIELD(type, bias_regularizer), &mix_field_regularizer                                                \
  }
#define MIX_CELL_FIELDS_END(type)                                                                            \
  {MIX_FIELD(type, kernel_constraint), &mix_field_constraint},                                               \
      {MIX_FIELD(type, recurrent_constraint), &mix_field_constraint},                                        \
      {MIX_FIELD(type, bias_constraint), &mix_field_constraint},                                             \
      {MIX_FIELD(type, dropout), &mix_field_number}, {                                                       \
    MIX_FIELD(type, recurrent_dropout), &mix_field_number                                                    \
  }
#define MIX_CELL_FIELD_SEED(type)                                                                            \
  { MIX_FIELD(type, seed), &mix_field_seed, .only = MIX_RULE(rnn_seed_saved) }
#define MIX_CELL_FIELD_IMPLEMENTATION                                                                        \
  { "implementation", 0, &mix_field_fixed, .text = "2", .optional = true, .only = MIX_RULE(rnn_time_major) }
#define MIX_RNN_FIELDS(type)                                                                                 \
  {MIX_FIELD(type, return_sequences), &mix_field_boolean},                                                   \
      {MIX_FIELD(type, return_state), &mix_field_boolean},                                                   \
      {MIX_FIELD(type, go_backwards), &mix_field_boolean}, {MIX_FIELD(type, stateful), &mix_field_boolean},  \
      {MIX_FIELD(type, unroll), &mix_field_boolean},                                                         \
      {MIX_FIELD(type, time_major), &mix_field_boolean, .only = MIX_RULE(rnn_time_major)}, {                 \
    MIX_FIELD(type, zero_output_for_mask), &mix_field_boolean, .except = MIX_RULE(rnn_time_major)            \
  }

/* ---- layers ---- */

typedef struct mix_rnn_flags {
  MIX_RNN_OPTIONS
} mix_rnn_flags;

/* The instance of a layer over a cell. */
typedef struct mix_rnn {
  union {
    mix_rnn_options rnn;
    mix_recurrent_options recurrent;
    mix_conv_lstm_options conv_lstm;
  } options;
  mix_rnn_flags flags;
  mix_layer *cell;                 /* in the layer's list */
  mix_cell_states sizes;           /* of the built cell */
  bool called, called_with_states; /* what the first call was given */
} mix_rnn;

/* The instance; NULL: another layer. */
mix_rnn *mix_rnn_of(const mix_layer *layer);
/* Takes the cell and the flags. False with the error recorded; NULL is a cell that failed. */
bool mix_rnn_ready(mix_layer *layer, mix_layer *cell, const void *flags);

#define MIX_RNN_CLASS(class_name, builds)                                                                    \
  .call_has_mask = true, .call_training = MIX_FALSE,                                                         \
  MIX_LAYER_CLASS(.name = class_name, .instance_size = sizeof(mix_rnn), .build = builds,                     \
                  .call = mix_rnn_call, .supports_masking = true, .compute_mask = mix_rnn_mask)
mix_status mix_rnn_build(mix_layer *layer, int count, const mix_shape *inputs);
mix_list *mix_rnn_call(mix_layer *layer, const mix_call_args *args);
mix_tensor *mix_rnn_mask(mix_layer *layer, const mix_call_args *args);
