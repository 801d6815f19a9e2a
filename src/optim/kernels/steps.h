// The steps there are. Whoever adds an optimizer adds its step here.
#pragma once

#include "optim/kernels/adadelta.h"
#include "optim/kernels/adagrad.h"
#include "optim/kernels/adagrad_da.h"
#include "optim/kernels/adam.h"
#include "optim/kernels/adamw.h"
#include "optim/kernels/ftrl.h"
#include "optim/kernels/lamb.h"
#include "optim/kernels/momentum.h"
#include "optim/kernels/moving_average.h"
#include "optim/kernels/proximal_adagrad.h"
#include "optim/kernels/proximal_gradient_descent.h"
#include "optim/kernels/rms_prop.h"
#include "optim/kernels/sgd.h"

/// `M(Step<T>)` for every step, with T the type of its numbers.
#define WEIR_FOR_EACH_STEP_OF(T, M) \
  M(SgdStep<T>)                     \
  M(MomentumStep<T>)                \
  M(NesterovStep<T>)                \
  M(AdagradStep<T>)                 \
  M(AdagradDaStep<T>)               \
  M(AdadeltaStep<T>)                \
  M(AdamStep<T>)                    \
  M(AdamWStep<T>)                   \
  M(LambDirectionStep<T>)           \
  M(FtrlSqrtStep<T>)                \
  M(FtrlPowerStep<T>)               \
  M(RmsPropStep<T>)                 \
  M(CenteredRmsPropStep<T>)         \
  M(ProximalGradientDescentStep<T>) \
  M(ProximalAdagradStep<T>)         \
  M(MovingAverageStep<T>)
#define WEIR_FOR_EACH_STEP(M) WEIR_FOR_EACH_STEP_OF(float, M) WEIR_FOR_EACH_STEP_OF(double, M)
