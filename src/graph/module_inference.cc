#include "graph/module_inference.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "graph/merge_outputs.h"
#include "graph/module_replicas.h"
#include "graph/random_state.h"

namespace weir::graph {
namespace {

// Sizes given to unknown dimensions, as in aten_inference.cc: two primes, so that a product or a
// sum of them is no known dimension by accident; 1, where forwards often do something else; and
// sizes that many numbers divide, large enough for what windows and strides leave of them.
constexpr std::int64_t kFirst = 7;
constexpr std::int64_t kSecond = 11;
constexpr std::int64_t kOne = 1;
constexpr std::int64_t kDivisible[] = {24, 120};

// Bounds of the search: each try runs the module in earnest. But for the first sizes, inputs of
// more elements than this are not tried, for the sake of deep nets on large images.
constexpr std::int64_t kElementsMax = 1 << 19;
constexpr std::size_t kTriesMax = 200;
constexpr std::size_t kCandidatesMax = 16;
constexpr std::size_t kCandidatesOfTwo = 12;  // tried in all combinations of two
constexpr std::int64_t kSizeMax = 1 << 16;

using Sizes = std::vector<std::vector<std::int64_t>>;  // of the inputs; -1 where unknown
using Guess = std::vector<std::int64_t>;               // a size for each unknown dimension

struct Dimension {
  std::size_t input = 0;
  std::size_t dim = 0;
};

std::int64_t NumElements(const Sizes& sizes) {
  std::int64_t all = 0;
  for (const auto& shape : sizes) {
    std::int64_t elements = 1;
    for (const std::int64_t dim : shape) elements *= dim;
    all += elements;
  }
  return all;
}

// Runs forward on zeros.
class ModuleProbe {
 public:
  ModuleProbe(const ModuleForward& forward, std::vector<at::ScalarType> dtypes)
      : forward_(forward), dtypes_(std::move(dtypes)) {}

  absl::Status CopyModule(const torch::nn::Module& module) {
    return CatchAs(absl::StatusCode::kInvalidArgument, "cannot be cloned", [&] {
      copy_ = CopyOf(module);
      for (const at::Tensor& tensor : module.parameters()) state_.push_back(tensor.detach());
      for (const at::Tensor& tensor : module.buffers()) state_.push_back(tensor);
    });
  }

  absl::StatusOr<std::vector<OutputInfo>> Ask(const Sizes& sizes) {
    std::vector<at::Tensor> outputs;
    WEIR_RETURN_IF_ERROR(CatchAs(absl::StatusCode::kInvalidArgument, "its forward threw",
                                 [&] { outputs = Run(sizes); }));
    if (outputs.empty()) return absl::InvalidArgumentError("its forward returned nothing");
    if (!std::ranges::all_of(outputs, [](const at::Tensor& y) { return y.defined(); }))
      return absl::InvalidArgumentError("its forward returned a tensor that is undefined");
    std::vector<OutputInfo> infos;
    for (const at::Tensor& output : outputs) {
      infos.push_back({.dtype = output.scalar_type(),
                       .shape = output.sizes().vec(),
                       .differentiable = at::isFloatingType(output.scalar_type())});
    }
    return infos;
  }

  /// Sizes of the module's own tensors: the likeliest ones of a dimension that only one size suits.
  const std::vector<at::Tensor>& state() const { return state_; }

 private:
  // Forward may write to its parameters and buffers: each run sees the first values.
  std::vector<at::Tensor> Run(const Sizes& sizes) {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> state;
    for (const at::Tensor& tensor : state_) state.push_back(tensor.clone());
    copy_->Bind(state);
    std::vector<at::Tensor> zeros;
    for (std::size_t i = 0; i < sizes.size(); ++i) zeros.push_back(at::zeros(sizes[i], dtypes_[i]));
    const KeptRandomState random_state;
    return forward_(*copy_->module, zeros);
  }

  const ModuleForward& forward_;
  std::vector<at::ScalarType> dtypes_;
  std::unique_ptr<ModuleReplica> copy_;
  std::vector<at::Tensor> state_;
};

class Inference {
 public:
  Inference(ModuleProbe probe, Sizes sizes) : probe_(std::move(probe)), sizes_(std::move(sizes)) {
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      for (std::size_t d = 0; d < sizes_[i].size(); ++d)
        if (sizes_[i][d] < 0) unknown_.push_back({i, d});
    }
  }

  absl::StatusOr<std::vector<OutputInfo>> Run() {
    if (unknown_.empty()) return probe_.Ask(sizes_);
    for (const std::int64_t size : {kFirst, kSecond, kOne}) Try(Guess(unknown_.size(), size));
    const bool any_size_fits = fits_.size() >= 2;
    for (const std::int64_t size : kDivisible) TryAll(size);
    if (!any_size_fits) Search();
    if (fits_.empty()) return NoFit();
    VaryEach(Guess(fits_.front()));
    VaryEach(Guess(fits_.back()));
    if (sizes_differ_)
      return absl::InvalidArgumentError("its forward returns now more, now fewer tensors");
    if (fits_.size() == 1) ForgetDims();  // it may be an accident, and others give others
    return *std::move(outputs_);
  }

 private:
  absl::Status NoFit() const {
    std::set<std::int64_t> tried;
    for (const Guess& guess : tried_) tried.insert(guess.begin(), guess.end());
    return Annotate(refused_, absl::StrCat("of the sizes tried for the unknown dimensions of its "
                                           "inputs (",
                                           absl::StrJoin(tried, ", "),
                                           ") none suits it; say more of them, or see why"));
  }

  void TryAll(std::int64_t size) { TryIfSmall(Guess(unknown_.size(), size)); }

  void TryIfSmall(const Guess& guess) {
    if (tried_.size() < kTriesMax && NumElements(With(guess)) <= kElementsMax) Try(guess);
  }

  Sizes With(const Guess& guess) const {
    Sizes sizes = sizes_;
    for (std::size_t u = 0; u < unknown_.size(); ++u)
      sizes[unknown_[u].input][unknown_[u].dim] = guess[u];
    return sizes;
  }

  void Try(const Guess& guess) {
    if (!tried_.insert(guess).second) return;
    auto outputs = probe_.Ask(With(guess));
    if (!outputs.ok()) {
      if (refused_.ok()) refused_ = outputs.status();
      return;
    }
    fits_.push_back(guess);
    Merge(*std::move(outputs));
  }

  void Merge(std::vector<OutputInfo> outputs) {
    if (!outputs_) {
      outputs_ = std::move(outputs);
    } else if (outputs_->size() != outputs.size()) {
      sizes_differ_ = true;
    } else {
      MergeOutputs(outputs, *outputs_);
    }
  }

  // Each unknown dimension gets other sizes, alone and with each other one that may be bound to it:
  // what holds where all are equal need not hold else.
  void VaryEach(const Guess& fit) {
    for (std::size_t u = 0; u < fit.size(); ++u) {
      for (std::size_t v = u; v < fit.size(); ++v)
        if (fit[u] == fit[v]) VaryBoth(fit, u, v);
    }
  }

  void VaryBoth(Guess guess, std::size_t u, std::size_t v) {
    for (const std::int64_t size : {kFirst, kSecond, kDivisible[0], kDivisible[1]}) {
      guess[u] = size;
      guess[v] = size;
      TryIfSmall(guess);
    }
  }

  // Unknown dimensions that must equal a known one: sizes that occur in inputs and module. The
  // first unknown dimension is mostly that of the batch, which any size suits.
  void Search() {
    const Guess candidates = Candidates();
    for (const std::int64_t size : candidates) {
      TryAll(size);
      Guess but_first(unknown_.size(), size);
      but_first.front() = kFirst;
      TryIfSmall(but_first);
    }
    if (unknown_.size() != 2) return;
    const std::size_t most = std::min(candidates.size(), kCandidatesOfTwo);
    for (std::size_t a = 0; a < most; ++a)
      for (std::size_t b = 0; b < most; ++b) TryIfSmall({candidates[a], candidates[b]});
  }

  // The likeliest first, each once.
  Guess Candidates() const {
    Guess candidates = {kFirst, kSecond};
    const auto add = [&](std::int64_t size) {
      if (size > 0 && size <= kSizeMax && candidates.size() < kCandidatesMax &&
          std::ranges::find(candidates, size) == candidates.end()) {
        candidates.push_back(size);
      }
    };
    for (const auto& shape : sizes_) std::ranges::for_each(shape, add);
    std::ranges::for_each(kDivisible, add);
    for (const at::Tensor& tensor : probe_.state()) std::ranges::for_each(tensor.sizes(), add);
    return candidates;
  }

  void ForgetDims() {
    for (OutputInfo& output : *outputs_)
      if (output.shape) std::ranges::fill(*output.shape, -1);
  }

  ModuleProbe probe_;
  const Sizes sizes_;
  std::vector<Dimension> unknown_;
  std::set<Guess> tried_;
  std::vector<Guess> fits_;  // of those tried
  absl::Status refused_;     // why the first that does not fit does not
  bool sizes_differ_ = false;
  std::optional<std::vector<OutputInfo>> outputs_;  // what the fits agree on
};

}  // namespace

absl::StatusOr<std::vector<OutputInfo>> InferModule(const torch::nn::Module& module,
                                                    const ModuleForward& forward,
                                                    const std::vector<Output>& inputs) {
  Sizes sizes;
  std::vector<at::ScalarType> dtypes;
  for (const Output& input : inputs) {
    if (!input.shape()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the rank of its input '", input.name(), "' is unknown"));
    }
    if (input.dtype() == at::ScalarType::Undefined) {
      return absl::InvalidArgumentError(
          absl::StrCat("the dtype of its input '", input.name(), "' is unknown"));
    }
    sizes.push_back(*input.shape());
    dtypes.push_back(input.dtype());
  }
  ModuleProbe probe(forward, std::move(dtypes));
  WEIR_RETURN_IF_ERROR(probe.CopyModule(module));
  return Inference(std::move(probe), std::move(sizes)).Run();
}

}  // namespace weir::graph
