// Everything a program needs.
#pragma once

#include "weir/batches.h"
#include "weir/device_setter.h"
#include "weir/embedding.h"
#include "weir/graph.h"
#include "weir/initializer.h"
#include "weir/job.h"
#include "weir/learning_rate.h"
#include "weir/mnist.h"
#include "weir/moving_average.h"
#include "weir/ops.h"
#include "weir/optimizer.h"
#include "weir/partitioner.h"
#include "weir/safetensors.h"
#include "weir/session.h"
#include "weir/strategy.h"
#include "weir/version.h"
