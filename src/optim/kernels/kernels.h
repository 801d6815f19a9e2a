// The passes over memory that apply gradients: one fused, vectorised loop for each step.
//
// Each is compiled twice from kernels_inl.h, once for any machine of the architecture and once for
// AVX2 and FMA, and chosen when the program runs. Both give the same bits: no multiplication and
// addition is fused behind our back (-ffp-contract=off), and where a rule wants them fused it says
// so, which a machine without the instruction then emulates (correctly, slowly).
#pragma once

#include <cstdint>

#include "optim/kernels/steps.h"

namespace weir::optim {

/// The arrays of one pass. Slots are in the order of the step's arguments.
template <typename Step>
struct Operands {
  using Number = typename Step::Number;
  Number* w = nullptr;
  const Number* g = nullptr;
  Number* slots[Step::kSlots == 0 ? 1 : Step::kSlots] = {};
};

/// Arrays may be the same or overlap; others may read and write them meanwhile (see
/// store/hogwild.h).
template <typename Step>
struct Passes {
  /// The elements [begin, end).
  void (*dense)(const Step& step, const Operands<Step>& at, std::int64_t begin, std::int64_t end);
  /// As dense with a gradient of zeros; g is not read.
  void (*idle)(const Step& step, const Operands<Step>& at, std::int64_t begin, std::int64_t end);
  /// Rows of `width` elements: row k of g, for k in [begin, end), goes to row rows[k] of the other
  /// arrays.
  void (*rows)(const Step& step, const Operands<Step>& at, const std::int64_t* rows,
               std::int64_t width, std::int64_t begin, std::int64_t end);
};

/// The fastest that this machine can run. Step is one of steps.h.
template <typename Step>
const Passes<Step>& FastestPasses();

template <typename Step>
const Passes<Step>& BaselinePasses();

/// Null where this build has none or this machine cannot run them.
template <typename Step>
const Passes<Step>* Avx2Passes();

}  // namespace weir::optim
