/* Models for other runtimes: ONNX. */
#ifndef MIXTAPE_EXPORT_H
#define MIXTAPE_EXPORT_H

#include <mixtape/model.h>

MIX_BEGIN_DECLARATIONS

typedef enum mix_export_weights {
  MIX_EXPORT_COMPUTE, /* what a layer rounds to 16 bits is in the file so */
  MIX_EXPORT_FLOAT32, /* as the variables are, with casts behind them */
} mix_export_weights;

typedef enum mix_export_attention {
  MIX_EXPORT_PRODUCTS, /* products and a softmax, which every opset has */
  /* ONNX's Attention, of opset 23. Products stay where it would not compute the same: with a bias of the
   * scores, a cap of these, and a mask under which rows that see nothing are zeros. */
  MIX_EXPORT_OPERATOR,
} mix_export_attention;

typedef struct mix_export_options {
  size_t size;
  const char *path; /* required: ends in .onnx */
  /* The version of ONNX's operators, 17 to 23. 0: what the model needs: 17, 18 for operations on bits, 19 for
   * float8, 22 for bfloat16, 23 for Attention. ValueError for one that lacks an operation or its dtype, as
   * that of convolutions, pooling and recurrent layers in bfloat16 below 22. */
  int opset;
  mix_export_weights weights;
  /* float16 and bfloat16 become float32, for a runtime that has no kernels for them. */
  bool widen;
  /* Weights of more bytes than this in all are beside the file, in PATH.data; 0: 2^31 less what the graph may
   * take, as protobuf wants. Below 0: always */
  int64_t external_bytes;
  int64_t batch; /* fixes the number of examples, where an operation is written for one; 0: any */
  /* Multiplications and additions by channel behind a convolution in float32, as of BatchNormalization,
   * become part of its kernel and bias. */
  bool fold_normalization;
  mix_export_attention attention;
} mix_export_options;
/* Writes what mix_model_predict computes as ONNX: inputs by the names of the input layers, outputs as Keras's
 * own export names them ("Identity:0", "Identity_1:0", ...), axis 0 of all of them any batch, dtypes as the
 * policies say, weights by their paths. Recurrent layers are LSTM, GRU and RNN where these compute the same,
 * and Loop with a mask or another cell. The file is replaced whole or not at all, after its PATH.data where
 * it has one. NotImplementedError, which names operation and layer, for what ONNX has no operator for and for
 * a layer that changes its state as it predicts; ValueError for an input of which more than the batch is
 * unknown, a model without weights yet, and another name. Reads the model. */
MIX_API mix_status mix_model_export_with(mix_model *model, const mix_export_options *options);
#ifndef __cplusplus
/* mix_model_export(model, "model.onnx", .opset = 22) */
#define mix_model_export(model, ...)                                                                         \
  mix_model_export_with(model, MIX_ARGUMENTS("mix_model_export", "path", #__VA_ARGS__, mix_export_options,   \
                                             .path = __VA_ARGS__))
#endif

MIX_END_DECLARATIONS
#endif
