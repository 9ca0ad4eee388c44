/* The lists of TensorFlow 2.21 (spec section 8; recorded in reference/rewrite/lists.json). */
#include "compile/amp/tables.h"

#define OPS(...) ((const char *const[]){__VA_ARGS__, NULL})

const mix_amp_table mix_amp_tables[] = {
    {MIX_AMP_ALLOW, MIX_AMP_IN_ALL, 0, 0, OPS("Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "Einsum", "MatMul")},
    {MIX_AMP_ALLOW, MIX_AMP_IN_GPU_LISTS, 0, 0,
     OPS("BlockLSTM", "BlockLSTMV2", "BlockLSTMGrad", "BlockLSTMGradV2", "CudnnRNN", "CudnnRNNV2", "CudnnRNNV3", "CudnnRNNBackprop",
         "CudnnRNNBackpropV2", "CudnnRNNBackpropV3", "FusedConv2DBiasActivation", "FusedSparseConvGpuV2", "GRUBlockCell",
         "GRUBlockCellGrad", "LSTMBlockCell", "LSTMBlockCellGrad", "Mha", "MhaV2", "Tmlp", "TmlpV2", "TmlpV3", "Pmlp",
         "FastUnsortedSegmentMax", "VoxelMax")},
    {MIX_AMP_ALLOW, MIX_AMP_IN_ALL, 9010, 0, OPS("BatchMatMul", "BatchMatMulV2")},
    {MIX_AMP_ALLOW, MIX_AMP_IN_ALL, 0, 7602, OPS("Conv3D", "Conv3DBackpropFilterV2", "Conv3DBackpropInputV2")},
    {MIX_AMP_ALLOW, MIX_AMP_IN_FLOAT16, 0, 7602, OPS("Conv3DBackpropFilter", "Conv3DBackpropInput")},
    {MIX_AMP_ALLOW, MIX_AMP_IN_ALL, 0, 8000,
     OPS("DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2dNativeBackpropInput")},
    {MIX_AMP_ALLOW, MIX_AMP_IN_BF16, 0, 0, OPS("FusedPadConv2D")},

    {MIX_AMP_INFER, MIX_AMP_IN_ALL, 0, 0,
     OPS("Add", "AddN", "AddV2", "AvgPool", "AvgPool3D", "AvgPool3DGrad", "AvgPoolGrad", "BiasAdd", "BiasAddGrad", "BiasAddV1",
         "Elu", "EluGrad", "Erf", "Erfc", "FloorDiv", "FusedBatchNormV2", "FusedBatchNormGradV2", "FusedBatchNormV3",
         "FusedBatchNormGradV3", "_FusedBatchNormEx", "Inv", "LeakyRelu", "LeakyReluGrad", "Log", "Log1p", "LogSoftmax", "Mul",
         "Prod", "RealDiv", "Reciprocal", "Selu", "SeluGrad", "Sigmoid", "SigmoidGrad", "Softmax", "Softplus", "SoftplusGrad",
         "Softsign", "SoftsignGrad", "Sqrt", "Sub", "Tanh", "TanhGrad")},
    {MIX_AMP_INFER, MIX_AMP_IN_ONEDNN16 | MIX_AMP_IN_BF16, 0, 0, OPS("Rsqrt", "Square", "SquaredDifference")},
    {MIX_AMP_INFER, MIX_AMP_IN_BF16, 0, 0, OPS("Mean", "Sum")},

    {MIX_AMP_DENY, MIX_AMP_IN_ALL, 0, 0,
     OPS("Exp", "Expm1", "L2Loss", "Pow", "SaveV2", "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits")},
    {MIX_AMP_DENY, MIX_AMP_IN_FLOAT16, 0, 0, OPS("Mean", "Sum")},

    {MIX_AMP_CLEAR, MIX_AMP_IN_ALL, 0, 0,
     OPS("Abs", "ArgMax", "ArgMin", "BatchToSpace", "BatchToSpaceND", "BroadcastTo", "Ceil", "CheckNumerics", "ClipByValue",
         "Concat", "ConcatV2", "DepthToSpace", "DynamicPartition", "DynamicStitch", "EnsureShape", "Enter", "Equal", "Exit",
         "ExpandDims", "Fill", "Floor", "Gather", "GatherNd", "GatherV2", "Greater", "GreaterEqual", "Identity", "IdentityN",
         "IsFinite", "IsInf", "IsNan", "Less", "LessEqual", "Max", "MaxPool", "MaxPool3D", "MaxPool3DGrad", "MaxPoolGrad",
         "MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPoolGradV2", "MaxPoolV2", "Maximum", "Merge", "Min", "Minimum", "MirrorPad",
         "MirrorPadGrad", "Neg", "NextIteration", "NotEqual", "OnesLike", "Pack", "Pad", "PadV2", "PreventGradient", "Rank", "Relu",
         "Relu6", "Relu6Grad", "ReluGrad", "Reshape", "ResizeNearestNeighbor", "ResizeNearestNeighborGrad", "Reverse",
         "ReverseSequence", "ReverseV2", "Round", "Select", "SelectV2", "Shape", "ShapeN", "Sign", "Slice", "Snapshot",
         "SpaceToBatch", "SpaceToBatchND", "SpaceToDepth", "Split", "SplitV", "Squeeze", "StopGradient", "StridedSlice",
         "StridedSliceGrad", "Switch", "Tile", "TopK", "TopKV2", "Transpose", "Unpack", "Where", "ZerosLike")},
    {MIX_AMP_CLEAR, MIX_AMP_IN_FLOAT16, 0, 0, OPS("MaxPool3DGradGrad", "OneHot", "Size")},
    {MIX_AMP_CLEAR, MIX_AMP_IN_BF16, 0, 0, OPS("ResizeBilinear", "ScatterNd", "StatelessWhile", "While")},
    {MIX_AMP_CLEAR, MIX_AMP_IN_ALL, 0, 0,
     OPS("TensorListConcat", "TensorListConcatLists", "TensorListConcatV2", "TensorListFromTensor", "TensorListGather",
         "TensorListGetItem", "TensorListPopBack", "TensorListPushBack", "TensorListPushBackBatch", "TensorListScatter",
         "TensorListScatterIntoExistingList", "TensorListScatterV2", "TensorListSetItem", "TensorListSplit", "TensorListStack")},
};
const int mix_amp_table_count = sizeof mix_amp_tables / sizeof *mix_amp_tables;
