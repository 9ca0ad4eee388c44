/* Incremental decoding: a model of sequences computes each new token alone, because its attention layers keep
 * the keys and values of the tokens before; and the generation of text with it.
 *
 * A model can be decoded if it has one input of tokens (batch, positions), beside it at most one named
 * padding_mask, as KerasHub's have, one output (batch, positions, vocabulary), and layers that compute each
 * position by itself: Embedding, Dense, EinsumDense, normalizations along the features, activations, sums,
 * elementwise operations of files. Attention is MultiHeadAttention or GroupQueryAttention with
 * use_causal_mask, whose value has the positions of its query. A layer of a class of one's own says that it
 * is such a layer (.decodes in mixtape/layer.h), and asks mix_call_positions where its tokens are. Any other
 * layer is refused by its name.
 *
 * Logits are those of the whole window but for roundings (docs/NUMERICS.md, "Incremental decoding"). */
#ifndef MIXTAPE_GENERATE_H
#define MIXTAPE_GENERATE_H

#include <mixtape/model.h>

MIX_BEGIN_DECLARATIONS

/* ---- one step at a time ---- */

typedef struct mix_decode_options {
  size_t size;
  int64_t batch;  /* sequences, side by side; 0: 1 */
  int64_t window; /* positions that the caches hold; 0: the length of the model's input, if it has one */
  /* The name of an input that takes the positions of the tokens, (batch, positions) of integers, in a model
   * that has it beside that of the tokens; NULL: none. */
  const char *positions;
} mix_decode_options;
/* The caches of a model, at position 0. They are variables of a fixed size: (batch, heads of keys, window,
 * dimensions) for keys and values of each call of an attention layer, in the dtype in which it computes. The
 * state retains the model, and reads its weights as they are at each call; its dropout is off. One thread at
 * a time uses a state; several threads may have one each for one model. ValueError if the model cannot be
 * decoded, or without a window. Reads the model. */
MIX_API mix_decode_state *mix_decode_state_with(mix_model *model, const mix_decode_options *options);
/* Feeds the next tokens of all sequences, integers (batch, count), and returns the logits of the token that
 * follows each, (batch, count, vocabulary) in the dtype of the model's output. A last softmax that the model
 * has is left out. One call with a count is compiled once, and used at all positions. ValueError, and no
 * change, if the window does not hold them; RuntimeError while a function is captured, whose plan would stay
 * at one position. A token that the model does not have is its layers' error; a device with a queue reports
 * that where the logits are read, and the state is to be rewound. */
MIX_API mix_tensor *mix_decode(mix_decode_state *state, mix_tensor *tokens);
/* How many tokens were fed; -1 if that is no state. */
MIX_API int64_t mix_decode_position(const mix_decode_state *state);
/* Goes back: as if only the first `position` tokens had been fed; 0 begins anew. ValueError for a position
 * that is negative or lies ahead. */
MIX_API mix_status mix_decode_rewind(mix_decode_state *state, int64_t position);
/* Sequence i goes on from what sequence parents[i] was fed; integers (batch). For searches. ValueError if
 * one is out of range. */
MIX_API mix_status mix_decode_reorder(mix_decode_state *state, mix_tensor *parents);

/* ---- generation ---- */

typedef struct mix_generate_options {
  size_t size;
  /* Required: tokens to go on from, integers (batch, length) or (length). Sequences of different lengths end
   * with padding. */
  mix_tensor *prompt;
  mix_tensor *lengths; /* how many tokens of each sequence are its prompt, integers (batch); NULL: all */
  int64_t tokens;      /* required: how many follow the longest prompt, at most */
  /* Greedy without these: the token of the largest logit, the first of several. With one of them a token is
   * drawn from the softmax of logits / temperature, of the top_k largest tokens, and of these from the fewest
   * largest whose probabilities add up to top_p. */
  double temperature; /* 0: 1 */
  int64_t top_k;      /* 0: all */
  double top_p;       /* in (0, 1]; 0: 1 */
  /* Of the draws: Philox with this key, the position as its counter, and the sequence's number as its index.
   * So equal seeds give equal draws, with any number of threads. 0: derived from the global seed. */
  uint64_t seed;
  /* Beam search, not with a draw: the continuation of the largest sum of log-probabilities that was found
   * by keeping this many at each position. One that has ended keeps its sum. 0: 1, which is greedy. */
  int64_t beams;
  mix_shape end_tokens;  /* a sequence ends behind one of these: MIX_SHAPE(2) for token 2; rank 0: none */
  int64_t pad_token;     /* stands behind the end of a sequence */
  int64_t window;        /* of the caches; 0: what prompt and tokens need */
  const char *positions; /* as of mix_decode_options */
  /* Of the model, with a batch of the prompt's times `beams`: it is rewound to 0 and keeps its window and its
   * compiled steps, instead of a new one. NULL: a new one. */
  mix_decode_state *state;
} mix_generate_options;
/* The prompts and what follows: int32 (batch, length of prompts + tokens), shorter if all sequences ended. A
 * shorter prompt goes on behind its own end, so that padding is never fed. ValueError for a model that cannot
 * be decoded, and for a window, or a length of the model's input, that is too short: nothing slides. Reads
 * the model. */
MIX_API mix_tensor *mix_generate_with(mix_model *model, const mix_generate_options *options);

#ifndef __cplusplus
/* mix_decode_state_new(model, .window = 512) */
#define mix_decode_state_new(model, ...)                                                                     \
  mix_decode_state_with(model, MIX_ARGUMENTS("mix_decode_state_new", "!batch, !window", #__VA_ARGS__,        \
                                             mix_decode_options, __VA_ARGS__))
/* mix_generate(model, prompt, .tokens = 100, .temperature = 0.8, .top_k = 40) */
#define mix_generate(model, ...)                                                                             \
  mix_generate_with(model, MIX_ARGUMENTS("mix_generate", "prompt; MIX_SHAPE(end_tokens)", #__VA_ARGS__,      \
                                         mix_generate_options, __VA_ARGS__))
#endif

MIX_END_DECLARATIONS
#endif
