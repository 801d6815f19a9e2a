// The loops, to be compiled once for each instruction set. Included by kernels_baseline.cc and
// kernels_avx2.cc alone.
//
// Nothing here may have external linkage, and nothing inline of the standard library may be called:
// the linker keeps one copy of such a function for the whole program, and it could be the one made
// of instructions that the machine does not have. Hence the unnamed namespace, and step.h.
#pragma once

#include <cstdint>
#include <utility>

#include "optim/kernels/kernels.h"
#include "store/hogwild.h"

namespace weir::optim {
namespace {  // NOLINT(google-build-namespaces)

/// Calls `step` on the elements [begin, end), each loaded and stored once.
template <bool kHasGradient, typename Step, std::size_t... kSlot>
WEIR_STEP void Loop(const Step& step, const Operands<Step>& at, std::int64_t begin,
                    std::int64_t end, std::index_sequence<kSlot...>) {
  using T = typename Step::Number;
  for (std::int64_t i = begin; i < end; ++i) {
    T w = at.w[i];
    T slots[] = {at.slots[kSlot][i]..., T(0)};
    step(kHasGradient ? at.g[i] : T(0), w, slots[kSlot]...);
    ((at.slots[kSlot][i] = slots[kSlot]), ...);
    at.w[i] = w;
  }
}

template <typename Step>
using SlotsOf = std::make_index_sequence<Step::kSlots>;

// Steps and operands are copied, so that no store can be thought to change them.
template <typename Step>
WEIR_HOGWILD void Dense(const Step& step, const Operands<Step>& at, std::int64_t begin,
                        std::int64_t end) {
  const Step numbers = step;
  const Operands<Step> arrays = at;
  Loop<true>(numbers, arrays, begin, end, SlotsOf<Step>());
}

template <typename Step>
WEIR_HOGWILD void Idle(const Step& step, const Operands<Step>& at, std::int64_t begin,
                       std::int64_t end) {
  const Step numbers = step;
  const Operands<Step> arrays = at;
  Loop<false>(numbers, arrays, begin, end, SlotsOf<Step>());
}

template <typename Step>
WEIR_HOGWILD void Rows(const Step& step, const Operands<Step>& at, const std::int64_t* rows,
                       std::int64_t width, std::int64_t begin, std::int64_t end) {
  const Step numbers = step;
  for (std::int64_t k = begin; k < end; ++k) {
    const std::int64_t offset = rows[k] * width;
    Operands<Step> row = {.w = at.w + offset, .g = at.g + k * width};
    for (int slot = 0; slot < Step::kSlots; ++slot) row.slots[slot] = at.slots[slot] + offset;
    Loop<true>(numbers, row, 0, width, SlotsOf<Step>());
  }
}

template <typename Step>
constexpr Passes<Step> kLoops = {.dense = Dense<Step>, .idle = Idle<Step>, .rows = Rows<Step>};

}  // namespace
}  // namespace weir::optim
