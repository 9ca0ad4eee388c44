/* RNN, SimpleRNN, LSTM and GRU: the loop (rnn.c) over a given cell, and over cells of their own. */
#include "nn/layers/recurrent/recurrent.h"
#include <string.h>

static bool rnn_ready(mix_layer *layer) {
  const mix_rnn_options *o = &((mix_rnn *)layer->data)->options.rnn;
  mix_cell_states sizes;
  if (!o->cell || !o->cell->class.cell_states) return mix_cell_states_of(o->cell, MIX_SHAPE(1), &sizes);
  return mix_rnn_ready(layer, o->cell, &o->return_sequences);
}

/* The cell of a layer that is both: of the same arguments, under its own name. */
static bool recurrent_ready(mix_layer *layer, mix_layer *(*make)(const mix_cell_options *),
                            const char *name) {
  const mix_recurrent_options *o = &((mix_rnn *)layer->data)->options.recurrent;
  mix_cell_options cell;
  memcpy(&cell, o, sizeof cell);
  cell.size = sizeof cell;
  cell.name = name;
  cell.activity_regularizer = NULL;
  return mix_rnn_ready(layer, make(&cell), &o->return_sequences);
}
static bool simple_rnn_ready(mix_layer *layer) {
  return recurrent_ready(layer, mix_simple_rnn_cell_with, "simple_rnn_cell");
}
static bool lstm_ready(mix_layer *layer) { return recurrent_ready(layer, mix_lstm_cell_with, "lstm_cell"); }
static bool gru_ready(mix_layer *layer) { return recurrent_ready(layer, mix_gru_cell_with, "gru_cell"); }

static const mix_field_row rnn_fields[] = {
    MIX_RNN_FIELDS(mix_rnn_options),
    {MIX_FIELD(mix_rnn_options, cell), &mix_field_layer, .required = true},
    {0}};
MIX_LAYER_KIND(rnn, mix_rnn_options, .fields = rnn_fields, .ready = rnn_ready,
               MIX_RNN_CLASS("RNN", mix_rnn_build))

#define O mix_recurrent_options
#define ACTIVITY                                                                                             \
  { MIX_FIELD(O, activity_regularizer), &mix_field_regularizer }
static const mix_field_row simple_rnn_fields[] = {MIX_RNN_FIELDS(O),
                                                  MIX_CELL_FIELDS_BEGIN(O),
                                                  MIX_CELL_FIELDS_WEIGHTS(O),
                                                  MIX_CELL_FIELDS_PENALTIES(O),
                                                  ACTIVITY,
                                                  MIX_CELL_FIELDS_END(O),
                                                  {0}};
MIX_LAYER_KIND_ONLY(simple_rnn, O, .fields = simple_rnn_fields, .check = mix_cell_check,
                    .ready = simple_rnn_ready, MIX_RNN_CLASS("SimpleRNN", mix_rnn_build))

static const mix_field_row lstm_fields[] = {
    MIX_RNN_FIELDS(O),
    MIX_CELL_FIELDS_BEGIN(O),
    MIX_CELL_FIELDS_GATE(O),
    MIX_CELL_FIELDS_WEIGHTS(O),
    {"unit_forget_bias", offsetof(O, no_forget_bias), &mix_field_negated},
    MIX_CELL_FIELDS_PENALTIES(O),
    ACTIVITY,
    MIX_CELL_FIELDS_END(O),
    MIX_CELL_FIELD_IMPLEMENTATION,
    MIX_CELL_FIELD_SEED(O),
    {0}};
MIX_LAYER_KIND_ONLY(lstm, O, .fields = lstm_fields, .check = mix_cell_check, .ready = lstm_ready,
                    MIX_RNN_CLASS("LSTM", mix_rnn_build))

static const mix_field_row gru_fields[] = {MIX_RNN_FIELDS(O),
                                           MIX_CELL_FIELDS_BEGIN(O),
                                           MIX_CELL_FIELDS_GATE(O),
                                           MIX_CELL_FIELDS_WEIGHTS(O),
                                           MIX_CELL_FIELDS_PENALTIES(O),
                                           ACTIVITY,
                                           MIX_CELL_FIELDS_END(O),
                                           MIX_CELL_FIELD_IMPLEMENTATION,
                                           {"reset_after", offsetof(O, reset_before), &mix_field_negated},
                                           MIX_CELL_FIELD_SEED(O),
                                           {0}};
MIX_LAYER_KIND_ONLY(gru, O, .fields = gru_fields, .check = mix_cell_check, .ready = gru_ready,
                    MIX_RNN_CLASS("GRU", mix_rnn_build))
mix_recurrent_options mix_recurrent_defaults(void) { return (O){.size = sizeof(O)}; }
