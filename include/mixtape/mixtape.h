/* Mixtape: mixed precision neural network training in C, with the semantics of Keras's mixed precision
 * API. */
#ifndef MIXTAPE_MIXTAPE_H
#define MIXTAPE_MIXTAPE_H

#include <mixtape/activation.h>
#include <mixtape/allocator.h>
#include <mixtape/api.h>
#include <mixtape/arrays.h>
#include <mixtape/attention.h>
#include <mixtape/callback.h>
#include <mixtape/checkpoint.h>
#include <mixtape/cifar10.h>
#include <mixtape/convolution.h>
#include <mixtape/data_pipeline.h>
#include <mixtape/dataset.h>
#include <mixtape/device.h>
#include <mixtape/distribute.h>
#include <mixtape/dtype.h>
#include <mixtape/einsum.h>
#include <mixtape/function.h>
#include <mixtape/graph_rewrite.h>
#include <mixtape/image.h>
#include <mixtape/image_dataset.h>
#include <mixtape/initializer.h>
#include <mixtape/layer.h>
#include <mixtape/layers.h>
#include <mixtape/lora.h>
#include <mixtape/loss.h>
#include <mixtape/loss_scale.h>
#include <mixtape/metric.h>
#include <mixtape/mnist.h>
#include <mixtape/model.h>
#include <mixtape/numerics.h>
#include <mixtape/object.h>
#include <mixtape/ops.h>
#include <mixtape/optimizer.h>
#include <mixtape/policy.h>
#include <mixtape/policy_map.h>
#include <mixtape/pooling.h>
#include <mixtape/program.h>
#include <mixtape/random.h>
#include <mixtape/recurrent.h>
#include <mixtape/regularizer.h>
#include <mixtape/saving.h>
#include <mixtape/scan.h>
#include <mixtape/schedule.h>
#include <mixtape/semantics.h>
#include <mixtape/simulate.h>
#include <mixtape/status.h>
#include <mixtape/tape.h>
#include <mixtape/tensor.h>
#include <mixtape/trace.h>
#include <mixtape/tuning.h>
#include <mixtape/variable.h>
#include <mixtape/variable_lists.h>

#endif
