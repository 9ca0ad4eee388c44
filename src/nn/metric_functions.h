/* The values that accuracies average: labels already have the predictions' dtype. */
#ifndef MIX_NN_METRIC_FUNCTIONS_H
#define MIX_NN_METRIC_FUNCTIONS_H

#include "nn/metric.h"

mix_tensor *mix_metric_accuracy(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);
mix_tensor *mix_metric_binary_accuracy(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);
mix_tensor *mix_metric_categorical_accuracy(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);
mix_tensor *mix_metric_sparse_categorical_accuracy(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);
mix_tensor *mix_metric_top_k(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);
mix_tensor *mix_metric_sparse_top_k(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);
mix_tensor *mix_metric_squared_error(const mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred);

#endif
